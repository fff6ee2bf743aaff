//! Transit of requests between client and block server, by class: its time, and whether the kernel split requests.

use std::collections::BTreeMap;
use std::sync::Arc;

use weir_records::Request;
use weir_study::{Engine, Run};

use crate::device::server_scheduler::InForce;
use crate::load::fio::Overstated;

/// Transit of a class's requests between client and block server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Transit {
    /// No request was split. Bounds of the mean transit of request and answer, in ms; they differ where the client's own times
    /// are not exact.
    Whole { least_ms: f64, most_ms: f64 },
    /// The kernel split requests: how many the client sent, and how many the server received.
    Cut { asked: u64, came: u64 },
}

/// Requests and response times of each class at its clients.
pub(crate) struct Waits {
    end_ns: i64,
    classes: BTreeMap<Arc<str>, Wait>,
}

#[derive(Default)]
struct Wait {
    asked: u64,
    answered: u64,
    /// Of the answered ones.
    waited_ns: i64,
    overstated: Overstated,
}

impl Waits {
    pub(crate) fn new(run: &Run) -> Self {
        Waits { end_ns: run.length_ns(), classes: BTreeMap::new() }
    }

    /// Adds a request.
    pub(crate) fn add(&mut self, row: &Request) {
        let wait = match self.classes.get_mut(&row.class) {
            Some(wait) => wait,
            None => self.classes.entry(Arc::clone(&row.class)).or_default(),
        };
        wait.asked += 1;
        if let Some(completed_ns) = row.completed_ns.filter(|_| row.status == 0) {
            wait.answered += 1;
            wait.waited_ns += completed_ns - row.submitted_ns.unwrap_or(row.intended_ns);
        }
        wait.overstated.add(self.end_ns, row);
    }
}

/// Transit of each class: response times at the clients minus those at the server. Only of devices with one of weir's
/// schedulers, and only of classes of which the server received all requests.
pub(crate) fn of_classes(
    run: &Run,
    waits: &Waits,
    live: &BTreeMap<String, InForce>,
) -> Vec<(String, Transit)> {
    let own = live.iter().filter(|(device, _)| !run.scheduler_of(device).is_of_kernel());
    let classes = own.filter_map(|(_, live)| live.stats.as_ref()).flat_map(|stats| &stats.classes);
    classes
        .filter_map(|class| {
            let Wait { asked, answered, waited_ns, overstated } = waits.classes.get(class.name.as_str())?;
            if class.requests > *asked {
                return Some((class.name.clone(), Transit::Cut { asked: *asked, came: class.requests }));
            }
            let is_whole = *answered > 0 && *answered == class.requests;
            let ms = |ns: i64| ns as f64 / *answered as f64 / 1e6;
            let most_ms = ms(*waited_ns) - class.mean_ms;
            let of_fio = run.classes.iter().any(|of| of.name == class.name && of.engine == Engine::Fio);
            let unknown_ms = if of_fio { ms(overstated.total_ns()) } else { 0.0 };
            let transit = Transit::Whole { least_ms: most_ms - unknown_ms, most_ms };
            is_whole.then(|| (class.name.clone(), transit))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use weir_blockserver::SchedulingStats;

    use super::*;

    fn row(class: &str, submitted_ns: i64, completed_ns: Option<i64>) -> Request {
        Request {
            request: 0,
            class: class.into(),
            client: 0,
            device: None,
            file: None,
            op: weir_records::Op::Read,
            offset: 0,
            size_bytes: 4096,
            intended_ns: 0,
            submitted_ns: Some(submitted_ns),
            completed_ns,
            deadline_ns: None,
            served_ns: None,
            status: 0,
            warmup: false,
        }
    }

    #[test]
    fn a_class_is_on_its_way_for_what_its_server_does_not_know_of() {
        let run: Run = serde_json::from_str(RUN).unwrap();
        let class = |name: &str, requests, mean_ms| weir_blockserver::ClassStats {
            name: name.to_owned(),
            requests,
            mean_ms,
            ..Default::default()
        };
        let classes = vec![class("text", 2, 3.0), class("video", 7, 1.0)];
        let stats = SchedulingStats { classes, ..SchedulingStats::default() };
        let live = BTreeMap::from([("shared".to_owned(), InForce::of_stats(stats))]);
        let ms = |ms: i64| ms * 1_000_000;
        let rows = [
            row("text", ms(1), Some(ms(4))),
            row("text", ms(2), Some(ms(8))),
            row("video", 0, Some(9)),
            row("text", 0, None),
        ];
        // Three and six ms, of which the server knows three each; of video the kernel made seven of one.
        let cut = Transit::Cut { asked: 1, came: 7 };
        let mut waits = Waits::new(&run);
        rows.iter().for_each(|row| waits.add(row));
        assert_eq!(
            of_classes(&run, &waits, &live),
            [("text".to_owned(), Transit::Whole { least_ms: 1.5, most_ms: 1.5 }), ("video".to_owned(), cut)]
        );
        let kernels = Run { settings: weir_study::Settings::default(), ..run };
        assert!(of_classes(&kernels, &waits, &live).is_empty());
    }

    /// A run without classes under hds.
    const RUN: &str = r#"{"format": 1, "id": "r", "study": "s", "question": "", "testbed": "device", "cell": "", "levels": {},
        "settings": {"scheduler": "hds"}, "repetition": 0, "block": 0, "order": 0, "seed": 0, "warmup_s": 0, "duration_s": 1,
        "capture": "none", "allowed_loss": 0, "fill_losses": false, "classes": [], "devices": []}"#;
}
