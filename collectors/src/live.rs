//! Live view of requests, as lines of text (`weir collect --live`).

use weir_records::BlockRequest;

/// Titles of the columns.
pub fn header() -> String {
    format!(
        "{:<11} {:<15} {:<8} {:<8} {:<2} {:<11} {:>8} {:>9} {:>9}",
        "TIME(s)", "COMM", "PID", "DISK", "T", "SECTOR", "BYTES", "QUE(ms)", "LAT(ms)"
    )
}

/// Line of one request: its end, process, queueing delay (`QUE`) and total time (`LAT`); `-` where a time is not known.
pub fn line(row: &BlockRequest) -> String {
    let between = |from: Option<i64>, to: Option<i64>| match (from, to) {
        (Some(from), Some(to)) => format!("{:.3}", (to - from) as f64 / 1e6),
        _ => "-".to_owned(),
    };
    let end_ns = row.completed_ns.or(row.issued_ns).unwrap_or(0);
    let kind = row.op.name().chars().next().unwrap_or('?').to_ascii_uppercase();
    let error = if row.status == 0 { String::new() } else { format!(" errno {}", row.status) };
    format!(
        "{:<11.6} {:<15} {:<8} {:<8} {:<2} {:<11} {:>8} {:>9} {:>9}{error}",
        end_ns as f64 / 1e9,
        row.comm,
        row.pid,
        row.device,
        kind,
        row.sector,
        row.size_bytes,
        between(row.queued_ns, row.issued_ns),
        between(row.queued_ns, row.completed_ns)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_times_in_ms_and_a_dash_for_those_unknown() {
        let row = BlockRequest {
            device: "loop3".into(),
            sector: 8,
            size_bytes: 4096,
            op: weir_records::BlockOp::Write,
            flags: "".into(),
            priority: None,
            pid: 7,
            comm: "fio".into(),
            cgroup: None,
            queued_ns: Some(0),
            inserted_ns: None,
            issued_ns: Some(1_500_000),
            completed_ns: None,
            status: 5,
            source: "bpf".into(),
        };
        let words: Vec<String> = line(&row).split_whitespace().map(str::to_owned).collect();
        assert_eq!(words, ["0.001500", "fio", "7", "loop3", "W", "8", "4096", "1.500", "-", "errno", "5"]);
    }
}
