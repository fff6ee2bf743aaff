//! Tally of completed requests, merged into distributions in batches to keep the cost of each request low.

use weir_simulator::Op;

use super::class_stats::Counts;
use super::classes::ClassSpec;
use crate::stats::{OpCount, Stats, Times};

/// Requests that are counted together.
const BATCH: usize = 64;

/// A completed request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Finished {
    /// Time of completion, by the device.
    pub(super) done_ns: u64,
    /// Delay until the completion was noticed.
    pub(super) noticed_after_ns: u64,
    pub(super) service_ns: u64,
    pub(super) response_ns: u64,
    pub(super) op: Op,
    pub(super) size_bytes: u32,
    pub(super) class: u16,
    /// Whether it missed its deadline.
    pub(super) is_late: bool,
    pub(super) has_failed: bool,
}

/// Counts of classes, and of all requests. A reader sees all completed requests.
#[derive(Debug)]
pub(super) struct Tally {
    reads: OpCount,
    writes: OpCount,
    classes: Vec<Counts>,
    times: Times,
    uncounted: Vec<Finished>,
}

impl Tally {
    pub(super) fn new(classes: &[ClassSpec]) -> Self {
        Tally {
            reads: OpCount::default(),
            writes: OpCount::default(),
            classes: classes.iter().map(Counts::new).collect(),
            times: Times::default(),
            uncounted: Vec::with_capacity(BATCH),
        }
    }

    /// Records an arrival of a class; an unknown number means the last class. Returns the class, and the request's deadline.
    pub(super) fn arrived(&mut self, class: u16, now_ns: u64) -> (u16, Option<u64>) {
        let place = usize::from(class).min(self.classes.len().saturating_sub(1));
        let Some(counts) = self.classes.get_mut(place) else { return (0, None) };
        counts.queue += 1;
        (place as u16, counts.deadline_after_ns.map(|after_ns| now_ns.saturating_add(after_ns)))
    }

    /// Records that an arrived request was refused.
    pub(super) fn refused(&mut self, class: u16) {
        if let Some(counts) = self.classes.get_mut(usize::from(class)) {
            counts.queue -= 1;
        }
    }

    /// Records a completion.
    pub(super) fn finished(&mut self, request: Finished) {
        self.uncounted.push(request);
        if self.uncounted.len() == BATCH {
            self.count();
        }
    }

    #[inline(never)]
    fn count(&mut self) {
        let mut uncounted = std::mem::take(&mut self.uncounted);
        for request in uncounted.drain(..) {
            if !request.has_failed {
                self.answered(request.op, request.size_bytes);
            }
            self.times.record(request.noticed_after_ns, request.service_ns, request.response_ns);
            if let Some(counts) = self.classes.get_mut(usize::from(request.class)) {
                counts.add(&request);
            }
        }
        // Its memory is reused.
        self.uncounted = uncounted;
    }

    /// The classes, in their order.
    pub(super) fn specs(&self) -> impl Iterator<Item = &ClassSpec> {
        self.classes.iter().map(|counts| &counts.spec)
    }

    /// Counts of the classes.
    pub(super) fn classes_mut(&mut self) -> &mut Vec<Counts> {
        self.count();
        &mut self.classes
    }

    /// Records a reply: the only count of requests that bypass scheduler and model.
    pub(super) fn answered(&mut self, op: Op, size_bytes: u32) {
        let counts = if op == Op::Read { &mut self.reads } else { &mut self.writes };
        counts.add(size_bytes);
    }

    /// Fills in the statistics.
    pub(super) fn show(&mut self, stats: &mut Stats) {
        self.count();
        (stats.read, stats.write) = (self.reads, self.writes);
        self.times.show(stats);
    }

    /// Resets all counts.
    pub(super) fn reset(&mut self) {
        self.reset_classes();
        (self.reads, self.writes) = (OpCount::default(), OpCount::default());
        self.times.reset();
    }

    /// Resets the counts of classes.
    pub(super) fn reset_classes(&mut self) {
        self.classes_mut().iter_mut().for_each(Counts::reset);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// A reader sees every change, however many are deferred.
        #[test]
        fn nothing_is_seen_late(
            requests in prop::collection::vec(
                (0u16..2, 1u32..1 << 20, any::<bool>(), any::<bool>(), any::<bool>(), 0u64..1_000_000_000),
                1..3 * BATCH,
            ),
            looks_every in 1usize..2 * BATCH,
        ) {
            let specs = [ClassSpec::named("a"), ClassSpec::named("b")];
            let mut tally = Tally::new(&specs);
            let (mut now_ns, mut wanted) = (0, [[0u64; 4]; 2]);
            let (mut reads, mut writes, mut times) = (OpCount::default(), OpCount::default(), 0);
            for (number, (class, size_bytes, is_late, has_failed, is_read, after_ns)) in requests.into_iter().enumerate() {
                now_ns += after_ns;
                prop_assert_eq!(tally.arrived(class, now_ns).0, class);
                let op = if is_read { Op::Read } else { Op::Write };
                let (noticed_after_ns, service_ns, response_ns) = (1, 10, 100);
                tally.finished(Finished {
                    done_ns: now_ns, noticed_after_ns, service_ns, response_ns, op, size_bytes, class, is_late, has_failed,
                });
                times += 1;
                let counts = &mut wanted[usize::from(class)];
                counts[2] += u64::from(is_late);
                counts[3] += u64::from(has_failed);
                if !has_failed {
                    counts[0] += 1;
                    counts[1] += u64::from(size_bytes);
                    if is_read { reads.add(size_bytes) } else { writes.add(size_bytes) }
                }
                if number % looks_every == 0 {
                    let mut stats = Stats::default();
                    tally.show(&mut stats);
                    prop_assert_eq!((stats.read, stats.write, stats.response.count), (reads, writes, times));
                    let found: Vec<_> = tally.classes_mut().iter_mut().map(|counts| counts.stats(now_ns)).collect();
                    for (found, wanted) in found.iter().zip(wanted) {
                        prop_assert_eq!([found.requests, found.bytes, found.misses, found.errors], wanted);
                        prop_assert_eq!(found.queue, 0);
                    }
                }
            }
        }
    }

    #[test]
    fn what_arrives_waits_until_it_is_done_or_refused() {
        let mut tally = Tally::new(&[ClassSpec::named("a")]);
        let queue = |tally: &mut Tally| tally.classes_mut()[0].queue;
        assert_eq!(tally.arrived(7, 5), (0, None), "a number that no class has");
        tally.arrived(0, 5);
        assert_eq!(queue(&mut tally), 2);
        tally.refused(0);
        assert_eq!(queue(&mut tally), 1);
    }
}
