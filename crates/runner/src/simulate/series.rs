//! Time series of each class's requests and responses: `series.json`.

use serde_json::{Map, Value, json};
use weir_simulator::server::Served;
use weir_study::Run;

/// Counts and response times of each class by bin of the measured interval, by intended time.
pub(super) struct Series {
    names: Vec<String>,
    bin_ns: u64,
    from_ns: u64,
    /// By class.
    bins: Vec<Vec<Bin>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Bin {
    requests: u64,
    answered: u64,
    missed: u64,
    response_ns: u128,
    longest_ns: u64,
}

impl Series {
    /// An empty series; `None` if the run keeps none.
    pub(super) fn new(run: &Run) -> Option<Self> {
        let bin_ns = (run.series_s? * 1e9).round().max(1.0) as u64;
        let ns = |at_ns: i64| u64::try_from(at_ns).unwrap_or(0);
        let (from_ns, end_ns) = (ns(run.warmup_ns()), ns(run.length_ns()));
        let bins = end_ns.saturating_sub(from_ns).div_ceil(bin_ns) as usize;
        let names: Vec<String> = run.classes.iter().map(|class| class.name.clone()).collect();
        let bins = vec![vec![Bin::default(); bins]; names.len()];
        Some(Series { names, bin_ns, from_ns, bins })
    }

    /// Adds a request.
    pub(super) fn add(&mut self, served: &Served) {
        let Some(since_ns) = served.ask.intended_ns.checked_sub(self.from_ns) else { return };
        let bins = self.bins.get_mut(usize::from(served.class));
        let Some(bin) = bins.and_then(|bins| bins.get_mut((since_ns / self.bin_ns) as usize)) else { return };
        bin.requests += 1;
        if let Some(deadline_ns) = served.ask.deadline_ns {
            bin.missed += u64::from(served.completed_ns.is_none_or(|done_ns| done_ns > deadline_ns));
        }
        if let Some(done_ns) = served.completed_ns {
            let response_ns = done_ns - served.ask.intended_ns;
            bin.answered += 1;
            bin.response_ns += u128::from(response_ns);
            bin.longest_ns = bin.longest_ns.max(response_ns);
        }
    }

    /// Document of the series: a list for each figure, one entry for each bin; response times are of completed requests, in ms.
    pub(super) fn document(&self) -> Value {
        let of_class = |bins: &Vec<Bin>| {
            let list = |figure: &dyn Fn(&Bin) -> Value| Value::Array(bins.iter().map(figure).collect());
            let answered = |bin: &Bin, ns: f64| (bin.answered > 0).then_some(ns / 1e6);
            let mean_ns = |bin: &Bin| bin.response_ns as f64 / bin.answered.max(1) as f64;
            json!({
                "requests": list(&|bin| json!(bin.requests)),
                "unfinished": list(&|bin| json!(bin.requests - bin.answered)),
                "missed": list(&|bin| json!(bin.missed)),
                "response_mean_ms": list(&|bin| json!(answered(bin, mean_ns(bin)))),
                "response_max_ms": list(&|bin| json!(answered(bin, bin.longest_ns as f64))),
            })
        };
        let classes: Map<String, Value> =
            self.names.iter().cloned().zip(self.bins.iter().map(of_class)).collect();
        let bin_s = self.bin_ns as f64 / 1e9;
        json!({"format": 1, "bin_s": bin_s, "from_s": self.from_ns as f64 / 1e9, "classes": classes})
    }
}
