//! SCAN-EDF: deadline order, and SCAN order among equal deadlines.
//!
//! A. L. N. Reddy and J. C. Wyllie, "Disk scheduling in a multimedia I/O system", ACM Multimedia 1993; the same, IEEE
//! Computer 27(3), 1994. The gain depends on the number of equal deadlines. The authors round deadlines to steps;
//! `batch_ms` treats close deadlines as equal and leaves them unchanged.

use std::collections::BTreeMap;

use crate::by_offset::ByOffset;
use crate::entry::Entry;
use crate::model::ServiceModel;
use crate::policy::{Decision, Policy};
use crate::request::Request;
use crate::sweep::{Sweep, Turn};

pub(crate) const ENTRY: Entry = Entry {
    name: "scan-edf",
    label: "SCAN-EDF",
    about: "earliest deadline first, and equal deadlines in SCAN order (Reddy and Wyllie 1993)",
    promises: "work conserving; no other request's deadline is earlier by more than batch_ms; within a batch offsets \
               go as in the sweep",
    settings: &[
        (
            "batch_ms",
            "deadlines that are later than the earliest by at most this time count as equal, in ms; default 0",
        ),
        (
            "sweep",
            "SCAN order of equal deadlines. scan: up and down; c-scan: upwards only, as section 2.1 of Shenoy, Goyal and Vin \
             defines SCAN; default scan",
        ),
    ],
    build: |_, settings| {
        let turn = match settings.word("sweep", &["scan", "c-scan"])? {
            "c-scan" => Turn::ToTheStart,
            _ => Turn::Around,
        };
        Ok(Box::new(ScanEdf {
            batch_ns: settings.ms("batch_ms", 0.0)?,
            sweep: Sweep::new(turn),
            first_due_ns: 0,
            batch: ByOffset::default(),
            later: BTreeMap::new(),
            arrivals: 0,
        }))
    },
};

/// The batch in service, and all other requests by deadline.
#[derive(Debug)]
struct ScanEdf {
    batch_ns: u64,
    sweep: Sweep,
    /// Earliest deadline of the batch. All others in the batch are later by at most `batch_ns`.
    first_due_ns: u64,
    batch: ByOffset,
    /// By deadline and number of arrival.
    later: BTreeMap<(u64, u64), Request>,
    arrivals: u64,
}

impl ScanEdf {
    fn last_due_ns(&self) -> u64 {
        self.first_due_ns.saturating_add(self.batch_ns)
    }

    fn put_off(&mut self, request: Request) {
        self.later.insert((request.due_ns(), self.arrivals), request);
        self.arrivals += 1;
    }

    /// Starts the batch again at an earlier deadline; requests with deadlines beyond `batch_ns` leave it.
    fn begin_earlier(&mut self, first_due_ns: u64) {
        self.first_due_ns = first_due_ns;
        let last_due_ns = self.last_due_ns();
        let leaving: Vec<_> = self
            .batch
            .iter()
            .filter(|(_, request)| request.due_ns() > last_due_ns)
            .map(|(key, _)| *key)
            .collect();
        for key in leaving {
            if let Some(request) = self.batch.remove(key) {
                self.put_off(request);
            }
        }
    }

    fn fill(&mut self) {
        let Some(((first_due_ns, _), _)) = self.later.first_key_value() else { return };
        self.first_due_ns = *first_due_ns;
        let last_due_ns = self.last_due_ns();
        while let Some(entry) = self.later.first_entry() {
            if entry.key().0 > last_due_ns {
                break;
            }
            self.batch.insert(entry.remove());
        }
    }
}

impl Policy for ScanEdf {
    fn arrive(&mut self, _: u64, request: Request, _: &dyn ServiceModel) {
        let due_ns = request.due_ns();
        if self.waiting() == 0 {
            // It is the batch, until others come.
            self.first_due_ns = due_ns;
        } else if self.batch.is_empty() || due_ns > self.last_due_ns() {
            return self.put_off(request);
        } else if due_ns < self.first_due_ns {
            self.begin_earlier(due_ns);
        }
        self.batch.insert(request);
    }

    fn next(&mut self, _: u64, model: &dyn ServiceModel) -> Decision {
        if self.batch.is_empty() {
            self.fill();
        }
        self.sweep.take(&mut self.batch, model.head_bytes()).map_or(Decision::Idle, Decision::Serve)
    }

    fn waiting(&self) -> usize {
        self.batch.len() + self.later.len()
    }
}

#[cfg(test)]
mod tests {
    use crate::fixture::{device, offsets, policy, read};
    use crate::policy::Decision;
    use crate::request::Request;

    fn due(offset_bytes: u64, deadline_ns: u64) -> Request {
        Request { deadline_ns: Some(deadline_ns), ..read(offset_bytes) }
    }

    #[test]
    fn equal_deadlines_are_swept() {
        let requests = [due(90, 5), due(10, 5), due(50, 5), due(70, 1), due(60, 9), due(20, 9)];
        assert_eq!(offsets(&mut *policy("scan-edf", &[]), &requests, 0), [70, 90, 50, 10, 20, 60]);
        let upwards = [("sweep", "c-scan")];
        assert_eq!(offsets(&mut *policy("scan-edf", &upwards), &requests, 0), [70, 90, 10, 50, 60, 20]);
    }

    #[test]
    fn deadlines_within_a_batch_count_as_equal() {
        let requests = [due(90, 0), due(10, 1_000_000), due(50, 1_000_001)];
        assert_eq!(offsets(&mut *policy("scan-edf", &[]), &requests, 0), [90, 10, 50]);
        assert_eq!(offsets(&mut *policy("scan-edf", &[("batch_ms", "1")]), &requests, 0), [10, 90, 50]);
    }

    #[test]
    fn an_earlier_deadline_breaks_a_batch() {
        let mut policy = policy("scan-edf", &[("batch_ms", "1")]);
        let device = device(0);
        for request in [due(10, 2_000_000), due(20, 2_500_000), due(30, 3_000_000)] {
            policy.arrive(0, request, &device);
        }
        let mut next = || match policy.next(0, &device) {
            Decision::Serve(request) => request.offset_bytes,
            other => panic!("{other:?}"),
        };
        assert_eq!(next(), 10);
        policy.arrive(0, due(40, 1_500_000), &device);
        let mut next = || match policy.next(0, &device) {
            Decision::Serve(request) => request.offset_bytes,
            other => panic!("{other:?}"),
        };
        // 2.5 ms is still within 1 ms of 1.5 ms; 3 ms is not any more.
        assert_eq!([next(), next(), next()], [20, 40, 30]);
    }
}
