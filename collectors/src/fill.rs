//! Missed completions, filled from a second source.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use weir_records::{BlockOp, BlockRequest};

/// Maximum difference of a request's issue times in two sources.
const SAME_ISSUE_NS: i64 = 1_000_000;

type Key = (Arc<str>, u64, u32, BlockOp);

fn key(row: &BlockRequest) -> Key {
    (Arc::clone(&row.device), row.sector, row.size_bytes, row.op)
}

/// Rows without a completion, and the requests of a second source that may be theirs. A row and its request have the same
/// device, sector, size and operation, and issue times that differ by at most 1 ms.
#[derive(Default)]
pub struct Gaps(HashMap<Key, Gap>);

#[derive(Default)]
struct Gap {
    /// Issue times of the rows.
    issued_ns: BTreeSet<i64>,
    found: Vec<BlockRequest>,
}

impl Gaps {
    /// Adds a row if it has no completion.
    pub fn note(&mut self, row: &BlockRequest) {
        if let (None, Some(issued_ns)) = (row.completed_ns, row.issued_ns) {
            self.0.entry(key(row)).or_default().issued_ns.insert(issued_ns);
        }
    }

    /// Whether a request of the second source may be that of a row.
    pub fn wants(&self, other: &BlockRequest) -> bool {
        let (Some(issued_ns), Some(gap)) = (other.issued_ns, self.0.get(&key(other))) else { return false };
        let near = issued_ns.saturating_sub(SAME_ISSUE_NS)..=issued_ns.saturating_add(SAME_ISSUE_NS);
        other.completed_ns.is_some() && gap.issued_ns.range(near).next().is_some()
    }

    /// Adds a request of the second source.
    pub fn offer(&mut self, other: &BlockRequest) {
        if self.wants(other)
            && let Some(gap) = self.0.get_mut(&key(other))
        {
            gap.found.push(other.clone());
        }
    }

    /// Fills a row without a completion from the request with the nearest issue time, which is used once. The row then names both
    /// sources. Returns whether it was filled.
    pub fn fill(&mut self, row: &mut BlockRequest) -> bool {
        let (None, Some(issued_ns)) = (row.completed_ns, row.issued_ns) else { return false };
        let Some(Gap { found, .. }) = self.0.get_mut(&key(row)) else { return false };
        let distance = |other: &BlockRequest| other.issued_ns.map_or(i64::MAX, |ns| (ns - issued_ns).abs());
        let nearest = (0..found.len()).min_by_key(|at| distance(&found[*at]));
        let Some(at) = nearest.filter(|at| distance(&found[*at]) <= SAME_ISSUE_NS) else { return false };
        let other = found.swap_remove(at);
        row.completed_ns = other.completed_ns;
        row.status = other.status;
        row.source = format!("{}+{}", row.source, other.source).into();
        true
    }
}

/// Fills the rows without a completion from requests of a second source. Returns the number of filled rows.
pub fn fill(rows: &mut [BlockRequest], other: &[BlockRequest]) -> u64 {
    let mut gaps = Gaps::default();
    rows.iter().for_each(|row| gaps.note(row));
    other.iter().for_each(|other| gaps.offer(other));
    rows.iter_mut().map(|row| u64::from(gaps.fill(row))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(sector: u64, issued_ns: i64, completed_ns: Option<i64>, source: &str) -> BlockRequest {
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
            source: source.into(),
        }
    }

    #[test]
    fn the_nearest_issue_fills_and_is_used_once() {
        let mut rows = [row(8, 1_000, None, "bpf"), row(8, 90_000, None, "bpf"), row(16, 5, Some(9), "bpf")];
        let other = [row(8, 91_000, Some(95_000), "ftrace"), row(8, 1_500, Some(3_000), "ftrace")];
        assert_eq!(fill(&mut rows, &other), 2);
        assert_eq!((rows[0].completed_ns, rows[1].completed_ns), (Some(3_000), Some(95_000)));
        assert_eq!((&*rows[0].source, &*rows[2].source), ("bpf+ftrace", "bpf"));
    }

    #[test]
    fn another_time_or_place_does_not_fill() {
        let mut rows = [row(8, 1_000, None, "bpf")];
        let other = [row(8, 5_000_000, Some(6_000_000), "ftrace"), row(24, 1_000, Some(2_000), "ftrace")];
        assert_eq!(fill(&mut rows, &other), 0);
        assert_eq!(rows[0].completed_ns, None);
    }
}
