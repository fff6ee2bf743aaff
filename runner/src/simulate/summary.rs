//! What a simulated run came to, by class: `summary.json`.

use hdrhistogram::Histogram;
use serde::Serialize;
use serde::ser::SerializeStruct;
use weir_simulator::server::Served;
use weir_studies::Run;

use crate::Error;

/// Longest response that is told apart, in ns: an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;
/// Digits of quantiles.
const DIGITS: u8 = 3;

/// Counts, means and quantiles of the requests that were intended within the measured interval.
#[derive(Debug, Serialize)]
pub struct Summary {
    /// Version of this layout.
    pub format: u32,
    /// By class, in the order of the run.
    pub classes: Vec<ClassSummary>,
}

/// Those of a class.
#[derive(Debug)]
pub struct ClassSummary {
    /// Its name.
    pub class: String,
    /// Requests that were asked.
    pub requests: u64,
    /// Of these, answered.
    pub answered: u64,
    /// Requests with a deadline.
    pub with_deadline: u64,
    /// Of these, answered late or never.
    pub missed: u64,
    /// Bytes that were answered.
    pub bytes: u64,
    response_ns: u128,
    queueing_ns: u128,
    responses: Histogram<u64>,
}

impl Summary {
    pub(super) fn new(run: &Run) -> Result<Self, Error> {
        let class = |class: &weir_studies::RunClass| ClassSummary::new(class.name.clone());
        Ok(Summary { format: 1, classes: run.classes.iter().map(class).collect::<Result<_, _>>()? })
    }

    pub(super) fn add(&mut self, served: &Served) {
        self.classes[usize::from(served.class)].add(served);
    }
}

impl ClassSummary {
    fn new(class: String) -> Result<Self, Error> {
        let responses = Histogram::new_with_bounds(1000, LONGEST_NS, DIGITS)
            .map_err(|error| Error::Failed(format!("class {class}: no histogram: {error}")))?;
        Ok(ClassSummary {
            class,
            requests: 0,
            answered: 0,
            with_deadline: 0,
            missed: 0,
            bytes: 0,
            response_ns: 0,
            queueing_ns: 0,
            responses,
        })
    }

    fn add(&mut self, served: &Served) {
        let ask = &served.ask;
        self.requests += 1;
        if let Some(deadline_ns) = ask.deadline_ns {
            self.with_deadline += 1;
            self.missed += u64::from(served.completed_ns.is_none_or(|done_ns| done_ns > deadline_ns));
        }
        if let Some(done_ns) = served.completed_ns {
            let response_ns = done_ns - ask.intended_ns;
            self.answered += 1;
            self.bytes += ask.size_bytes;
            self.response_ns += u128::from(response_ns);
            self.queueing_ns += u128::from(served.served_ns.unwrap_or(ask.intended_ns) - ask.intended_ns);
            self.responses.saturating_record(response_ns);
        }
    }
}

impl Serialize for ClassSummary {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mean_ms = |sum_ns: u128| (self.answered > 0).then(|| sum_ns as f64 / self.answered as f64 / 1e6);
        let quantile_ms =
            |q: f64| (self.answered > 0).then(|| self.responses.value_at_quantile(q) as f64 / 1e6);
        let mut fields = to.serialize_struct("ClassSummary", 14)?;
        fields.serialize_field("class", &self.class)?;
        fields.serialize_field("requests", &self.requests)?;
        fields.serialize_field("answered", &self.answered)?;
        fields.serialize_field("with_deadline", &self.with_deadline)?;
        fields.serialize_field("missed", &self.missed)?;
        fields.serialize_field("bytes", &self.bytes)?;
        fields.serialize_field("mean_response_ms", &mean_ms(self.response_ns))?;
        fields.serialize_field("mean_queueing_ms", &mean_ms(self.queueing_ns))?;
        fields.serialize_field("mean_service_ms", &mean_ms(self.response_ns - self.queueing_ns))?;
        fields.serialize_field("p50_response_ms", &quantile_ms(0.5))?;
        fields.serialize_field("p90_response_ms", &quantile_ms(0.9))?;
        fields.serialize_field("p95_response_ms", &quantile_ms(0.95))?;
        fields.serialize_field("p99_response_ms", &quantile_ms(0.99))?;
        fields.serialize_field(
            "max_response_ms",
            &(self.answered > 0).then(|| self.responses.max() as f64 / 1e6),
        )?;
        fields.end()
    }
}
