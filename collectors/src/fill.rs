//! Missed completions, filled from a second source.

use std::collections::HashMap;
use std::sync::Arc;

use weir_records::{BlockOp, BlockRequest};

/// Maximum difference of a request's issue times in two sources.
const SAME_ISSUE_NS: i64 = 1_000_000;

/// Fills each row without a completion from the request in `other` with the same device, sector, size and operation and the
/// nearest issue time, within 1 ms. Filled rows name both sources. Returns the number of filled rows.
pub fn fill(rows: &mut [BlockRequest], other: &[BlockRequest]) -> u64 {
    type Key = (Arc<str>, u64, u32, BlockOp);
    let key = |row: &BlockRequest| (Arc::clone(&row.device), row.sector, row.size_bytes, row.op);
    let mut wanted: HashMap<Key, Vec<&BlockRequest>> = HashMap::new();
    for row in rows.iter().filter(|row| row.completed_ns.is_none()) {
        wanted.entry(key(row)).or_default();
    }
    if wanted.is_empty() {
        return 0;
    }
    for row in other.iter().filter(|row| row.completed_ns.is_some()) {
        if let Some(candidates) = wanted.get_mut(&key(row)) {
            candidates.push(row);
        }
    }
    let mut filled = 0;
    for row in rows.iter_mut().filter(|row| row.completed_ns.is_none()) {
        let Some(issued_ns) = row.issued_ns else { continue };
        let Some(candidates) = wanted.get_mut(&key(row)) else { continue };
        let distance = |other: &BlockRequest| other.issued_ns.map_or(i64::MAX, |ns| (ns - issued_ns).abs());
        let nearest = (0..candidates.len()).min_by_key(|at| distance(candidates[*at]));
        let Some(at) = nearest.filter(|at| distance(candidates[*at]) <= SAME_ISSUE_NS) else { continue };
        let found = candidates.swap_remove(at);
        row.completed_ns = found.completed_ns;
        row.status = found.status;
        row.source = format!("{}+{}", row.source, found.source).into();
        filled += 1;
    }
    filled
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
