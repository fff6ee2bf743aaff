//! Missed completions, filled from a second source.

use std::collections::{HashMap, HashSet};

use weir_records::{BlockOp, BlockRequest};
use weir_trace::blktrace::{Event, Record};

use crate::assemble::op_of;
use crate::disk::Disk;

/// Maximum difference of a completion's times in two sources: both read the clock in the same event, and an interrupt may
/// come between.
const SAME_COMPLETION_NS: i64 = 1_000_000;

/// What requests and completions of two sources have in common. Zeroing is a write in traces of the block layer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    sector: u64,
    size_bytes: u32,
    op: BlockOp,
    device: String,
}

impl Key {
    fn new(device: &str, sector: u64, size_bytes: u32, op: BlockOp) -> Self {
        let op = if op == BlockOp::WriteZeroes { BlockOp::Write } else { op };
        Key { sector, size_bytes, op, device: device.to_owned() }
    }
}

/// A completion as a second source saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    key: Key,
    pub(crate) completed_ns: i64,
    status: i32,
}

impl Completion {
    /// The completion of a record; `None` if it is another event, or of another disk. Its time is relative to `epoch_ns`.
    pub(crate) fn of(record: &Record, disks: &[Disk], epoch_ns: i64) -> Option<Self> {
        let disk = disks.iter().find(|disk| disk.kernel_dev() == record.device)?;
        let completed_ns = i64::try_from(record.time_ns).ok()?.checked_sub(epoch_ns)?;
        (record.event() == Event::Complete).then(|| Completion {
            key: Key::new(&disk.name, record.sector, record.bytes, op_of(record.categories())),
            completed_ns,
            status: i32::from(record.error),
        })
    }
}

/// Rows without a completion, and the completions of a second source that may be theirs.
///
/// A row and its completion have the same device, sector, size and operation. Completions that a row already has are taken out; of
/// the others, a row gets the first one after its issue.
#[derive(Default)]
pub struct Gaps {
    by_key: HashMap<Key, Vec<Completion>>,
    /// Sectors of the keys: most rows have another one, which is found without a key.
    sectors: HashSet<u64>,
}

fn key(row: &BlockRequest) -> Key {
    Key::new(&row.device, row.sector, row.size_bytes, row.op)
}

impl Gaps {
    /// Adds a row if it has no completion. First, all rows must be noted.
    ///
    /// A write that is durable, or that a flush precedes, is not filled: its data may complete before the request, with the same key.
    pub fn note(&mut self, row: &BlockRequest) {
        let in_flush_sequence = row.flags.split('|').any(|flag| matches!(flag, "fua" | "preflush"));
        if row.completed_ns.is_none() && row.issued_ns.is_some() && !in_flush_sequence {
            self.by_key.entry(key(row)).or_default();
            self.sectors.insert(row.sector);
        }
    }

    /// Adds a completion of the second source. Second, all completions must be offered.
    pub fn offer(&mut self, completion: Completion) {
        if let Some(found) = self.by_key.get_mut(&completion.key) {
            found.push(completion);
        }
    }

    /// Takes out the completion that a row has. Third, this must be done for all rows.
    pub fn exclude(&mut self, row: &BlockRequest) {
        let Some(completed_ns) = row.completed_ns.filter(|_| self.sectors.contains(&row.sector)) else {
            return;
        };
        let Some(found) = self.by_key.get_mut(&key(row)) else { return };
        let distance = |at: usize| (found[at].completed_ns - completed_ns).abs();
        let nearest = (0..found.len()).min_by_key(|at| distance(*at));
        if let Some(at) = nearest.filter(|at| distance(*at) <= SAME_COMPLETION_NS) {
            found.swap_remove(at);
        }
    }

    /// Fills a row without a completion. The row then names `source`, too. Returns whether it was filled.
    pub fn fill(&mut self, row: &mut BlockRequest, source: &str) -> bool {
        let (None, Some(issued_ns)) = (row.completed_ns, row.issued_ns) else { return false };
        let Some(found) = self.by_key.get_mut(&key(row)) else { return false };
        let after = (0..found.len()).filter(|at| found[*at].completed_ns >= issued_ns);
        let Some(at) = after.min_by_key(|at| found[*at].completed_ns) else { return false };
        let completion = found.swap_remove(at);
        row.completed_ns = Some(completion.completed_ns);
        row.status = completion.status;
        row.source = format!("{}+{source}", row.source).into();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(sector: u64, issued_ns: i64, completed_ns: Option<i64>) -> BlockRequest {
        BlockRequest {
            device: "loop9".into(),
            sector,
            size_bytes: 4096,
            op: BlockOp::Read,
            flags: "".into(),
            priority: None,
            pid: 1,
            comm: "".into(),
            cgroup: None,
            queued_ns: None,
            inserted_ns: None,
            issued_ns: Some(issued_ns),
            completed_ns,
            status: 0,
            source: "bpf".into(),
        }
    }

    fn completion(sector: u64, completed_ns: i64) -> Completion {
        let key = Key::new("loop9", sector, 4096, BlockOp::Read);
        Completion { key, completed_ns, status: 5 }
    }

    fn filled(rows: &mut [BlockRequest], completions: &[Completion]) -> usize {
        let mut gaps = Gaps::default();
        rows.iter().for_each(|row| gaps.note(row));
        completions.iter().for_each(|completion| gaps.offer(completion.clone()));
        rows.iter().for_each(|row| gaps.exclude(row));
        rows.iter_mut().filter_map(|row| gaps.fill(row, "ftrace").then_some(())).count()
    }

    #[test]
    fn a_row_gets_the_first_completion_after_its_issue_and_each_is_used_once() {
        let mut rows = [row(8, 1_000, None), row(8, 90_000, None), row(16, 5, Some(9))];
        let others = [completion(8, 95_000), completion(8, 500), completion(8, 3_000), completion(16, 10)];
        assert_eq!(filled(&mut rows, &others), 2);
        assert_eq!((rows[0].completed_ns, rows[1].completed_ns), (Some(3_000), Some(95_000)));
        assert_eq!((&*rows[0].source, rows[0].status), ("bpf+ftrace", 5));
        assert_eq!((&*rows[2].source, rows[2].status), ("bpf", 0));
    }

    #[test]
    fn the_completion_of_another_row_is_not_used() {
        // Two reads of one place at once: that of the second was seen, 40 ns before the other source read its clock.
        let mut rows = [row(8, 1_000, None), row(8, 2_000, Some(2_960))];
        assert_eq!(filled(&mut rows, &[completion(8, 3_000), completion(8, 9_000)]), 1);
        assert_eq!(rows[0].completed_ns, Some(9_000));
        let mut rows = [row(8, 1_000, None), row(8, 2_000, Some(2_960))];
        assert_eq!(filled(&mut rows, &[completion(8, 3_000)]), 0);
    }

    #[test]
    fn the_data_of_a_durable_write_are_not_its_completion() {
        for flags in ["sync|fua", "preflush", "sync|fua|preflush"] {
            let mut rows = [BlockRequest { flags: flags.into(), ..row(8, 1_000, None) }];
            assert_eq!(filled(&mut rows, &[completion(8, 2_000)]), 0, "{flags}");
        }
        let mut rows = [BlockRequest { flags: "sync|meta".into(), ..row(8, 1_000, None) }];
        assert_eq!(filled(&mut rows, &[completion(8, 2_000)]), 1);
    }

    #[test]
    fn another_place_size_or_operation_and_an_earlier_time_do_not_fill() {
        let mut rows = [row(8, 1_000, None)];
        let write =
            Completion { key: Key::new("loop9", 8, 4096, BlockOp::Write), completed_ns: 2_000, status: 0 };
        let longer =
            Completion { key: Key::new("loop9", 8, 8192, BlockOp::Read), completed_ns: 2_000, status: 0 };
        let elsewhere =
            Completion { key: Key::new("loop8", 8, 4096, BlockOp::Read), completed_ns: 2_000, status: 0 };
        assert_eq!(
            filled(&mut rows, &[completion(24, 2_000), completion(8, 999), write, longer, elsewhere]),
            0
        );
        assert_eq!(rows[0].completed_ns, None);
    }
}
