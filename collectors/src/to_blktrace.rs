//! Conversion of rows to blktrace events, for blkparse, btt and fio.

use std::collections::HashMap;

use weir_records::{BlockOp, BlockRequest};
use weir_trace::blktrace::{Record, category};

use crate::disk::Disk;

/// Events of the rows of these disks: `Q` and `G`, `I`, `D`, `C` as far as the rows have times, and one with the name of each
/// task. All are of CPU 0, since rows have no CPU. Times are absolute.
pub fn records(rows: &[BlockRequest], disks: &[Disk], epoch_ns: i64) -> Vec<Record> {
    let mut records = Vec::new();
    let mut named: HashMap<u32, &str> = HashMap::new();
    for row in rows {
        let Some(disk) = disks.iter().find(|disk| disk.name == row.device) else { continue };
        let stages = [
            (row.queued_ns, 1, category::QUEUE),
            (row.queued_ns, 4, category::QUEUE),
            (row.inserted_ns, 12, category::QUEUE),
            (row.issued_ns, 7, category::ISSUE),
            (row.completed_ns, 8, category::COMPLETE),
        ];
        let of_request = categories(row);
        for (ns, code, stage) in stages {
            let Some(time_ns) = ns.and_then(|ns| u64::try_from(ns + epoch_ns).ok()) else { continue };
            if !row.comm.is_empty() && named.insert(row.pid, &row.comm) != Some(&*row.comm) {
                records.push(Record::naming(row.pid, &row.comm, time_ns));
            }
            records.push(Record {
                sequence: 0,
                time_ns,
                sector: row.sector,
                bytes: row.size_bytes,
                action: u32::from(of_request | stage) << 16 | code,
                pid: row.pid,
                device: disk.kernel_dev(),
                cpu: 0,
                error: if code == 8 { u16::try_from(row.status).unwrap_or(u16::MAX) } else { 0 },
                payload: Box::new([]),
            });
        }
    }
    records
}

fn categories(row: &BlockRequest) -> u16 {
    let of_op = match row.op {
        BlockOp::Read => category::READ,
        BlockOp::Write | BlockOp::WriteZeroes => category::WRITE,
        BlockOp::Discard => category::WRITE | category::DISCARD,
        BlockOp::Flush => category::READ | category::FLUSH,
        BlockOp::Other => category::PASS_THROUGH,
    };
    let origin = if row.op == BlockOp::Other { 0 } else { category::FS };
    row.flags.split('|').fold(of_op | origin, |bits, flag| {
        bits | match flag {
            "sync" => category::SYNC,
            "meta" => category::META,
            "fua" => category::FUA,
            "preflush" => category::FLUSH,
            "readahead" => category::READ_AHEAD,
            _ => 0,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assemble::Assembly;
    use crate::disk::DiskStatistics;

    #[test]
    fn rows_survive_the_way_through_events() {
        let disks = [Disk { name: "loop9".into(), major: 7, minor: 9 }];
        let row = |sector, op, flags: &str, queued_ns| BlockRequest {
            device: "loop9".into(),
            sector,
            size_bytes: 4096,
            op,
            flags: flags.into(),
            priority: None,
            pid: 7,
            comm: "fio".into(),
            cgroup: None,
            queued_ns: Some(queued_ns),
            inserted_ns: Some(queued_ns + 10),
            issued_ns: Some(queued_ns + 20),
            completed_ns: Some(queued_ns + 100),
            status: 5,
            source: "ftrace".into(),
        };
        let rows = [row(8, BlockOp::Read, "", 0), row(16, BlockOp::Write, "sync|meta", 50)];
        let mut events = records(&rows, &disks, 1_000);
        events.sort_by_key(|event| event.time_ns);
        assert_eq!(events.len(), 11);
        let mut assembly = Assembly::new(&disks, "ftrace", 1_000);
        events.iter().for_each(|event| assembly.add(event));
        let nothing = [DiskStatistics::default()];
        assert_eq!(assembly.finish(&nothing, &nothing, 0).rows, rows);
    }
}
