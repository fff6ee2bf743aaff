//! Parsers for fuzz targets. Not part of the interface.

use std::path::Path;

use weir_trace::blktrace::Reader;

use crate::Disk;
use crate::assemble::Assembly;
use crate::disk::DiskStatistics;

/// Text of /proc and /sys.
pub fn proc(text: &str) {
    DiskStatistics::fuzzing(text);
}

/// Binary events of ftrace and blktrace, assembled to rows.
pub fn events(data: &[u8]) {
    let disk = Disk { name: "loop0".into(), major: 7, minor: 0 };
    let mut assembly = Assembly::new(&[disk], "blktrace", 0);
    for record in Reader::new(data, Path::new("fuzzed")) {
        let Ok(record) = record else { break };
        assembly.add(&record);
        let _ =
            (record.event(), record.categories(), record.cgroup(), record.split_at(), record.process_name());
    }
    assembly.finish(&[DiskStatistics::default()], &[DiskStatistics::default()], 0);
}
