//! Transit of requests between client and block server, by class: its time, and whether the kernel split requests.

use std::collections::BTreeMap;

use weir_records::Request;
use weir_study::{Engine, Run};

use crate::device::server_scheduler::InForce;
use crate::load::fio;

/// Transit of a class's requests between client and block server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Transit {
    /// No request was split. Bounds of the mean transit of request and answer, in ms; they differ where the client's own times
    /// are not exact.
    Whole { least_ms: f64, most_ms: f64 },
    /// The kernel split requests: how many the client sent, and how many the server received.
    Cut { asked: u64, came: u64 },
}

/// Transit of each class: response times at the clients minus those at the server. Only of devices with one of weir's
/// schedulers, and only of classes of which the server received all requests.
pub(crate) fn of_classes(
    run: &Run,
    rows: &[Request],
    live: &BTreeMap<String, InForce>,
) -> Vec<(String, Transit)> {
    let own = live.iter().filter(|(device, _)| !run.scheduler_of(device).is_of_kernel());
    let classes = own.filter_map(|(_, live)| live.stats.as_ref()).flat_map(|stats| &stats.classes);
    let end_ns = run.length_ns();
    classes
        .filter_map(|class| {
            let of_class = || rows.iter().filter(|row| *row.class == *class.name);
            let waited_ns: Vec<i64> = of_class()
                .filter(|row| row.status == 0)
                .filter_map(|row| Some(row.completed_ns? - row.submitted_ns.unwrap_or(row.intended_ns)))
                .collect();
            let asked = of_class().count() as u64;
            if asked > 0 && class.requests > asked {
                return Some((class.name.clone(), Transit::Cut { asked, came: class.requests }));
            }
            let is_whole = !waited_ns.is_empty() && waited_ns.len() as u64 == class.requests;
            let mean_ms = waited_ns.iter().sum::<i64>() as f64 / waited_ns.len() as f64 / 1e6;
            let most_ms = mean_ms - class.mean_ms;
            let of_fio = run.classes.iter().any(|of| of.name == class.name && of.engine == Engine::Fio);
            let unknown_ns = if of_fio { fio::overstated_ns(end_ns, of_class()) } else { 0 };
            let unknown_ms = unknown_ns as f64 / waited_ns.len() as f64 / 1e6;
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
        assert_eq!(
            of_classes(&run, &rows, &live),
            [("text".to_owned(), Transit::Whole { least_ms: 1.5, most_ms: 1.5 }), ("video".to_owned(), cut)]
        );
        let kernels = Run { settings: weir_study::Settings::default(), ..run };
        assert!(of_classes(&kernels, &rows, &live).is_empty());
    }

    /// A run without classes under hds.
    const RUN: &str = r#"{"format": 1, "id": "r", "study": "s", "question": "", "testbed": "device", "cell": "", "levels": {},
        "settings": {"scheduler": "hds"}, "repetition": 0, "block": 0, "order": 0, "seed": 0, "warmup_s": 0, "duration_s": 1,
        "capture": "none", "allowed_loss": 0, "fill_losses": false, "classes": [], "devices": []}"#;
}
