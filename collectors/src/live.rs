//! Live view of requests, as lines of text or JSON (`weir collect --live`).

use serde_json::{Value, json};
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

/// One request with the names and units of the columns of block.parquet.
pub fn document(row: &BlockRequest) -> Value {
    let BlockRequest {
        device,
        sector,
        size_bytes,
        op,
        flags,
        priority,
        pid,
        comm,
        cgroup,
        queued_ns,
        inserted_ns,
        issued_ns,
        completed_ns,
        status,
        source,
    } = row;
    json!({
        "device": &**device,
        "sector": sector,
        "size_bytes": size_bytes,
        "op": op.name(),
        "flags": &**flags,
        "priority": priority,
        "pid": pid,
        "comm": &**comm,
        "cgroup": cgroup,
        "queued_ns": queued_ns,
        "inserted_ns": inserted_ns,
        "issued_ns": issued_ns,
        "completed_ns": completed_ns,
        "status": status,
        "source": &**source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> BlockRequest {
        BlockRequest {
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
        }
    }

    #[test]
    fn a_document_has_the_columns_of_the_table() {
        let table = weir_records::tables().into_iter().find(|table| table.file == "block.parquet").unwrap();
        let columns: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
        let document = document(&row());
        assert_eq!(document.as_object().unwrap().keys().map(String::as_str).collect::<Vec<_>>(), columns);
        assert_eq!((&document["issued_ns"], &document["completed_ns"]), (&json!(1_500_000), &Value::Null));
    }

    #[test]
    fn a_line_has_times_in_ms_and_a_dash_for_those_unknown() {
        let words: Vec<String> = line(&row()).split_whitespace().map(str::to_owned).collect();
        assert_eq!(words, ["0.001500", "fio", "7", "loop3", "W", "8", "4096", "1.500", "-", "errno", "5"]);
    }
}
