//! Requests on files: system calls, io_uring and FUSE.

mod common;

use std::time::Duration;

use common::slow_file::SlowFile;
use common::{count, fio, must_skip};
use weir_collectors::files::{Collector, FileOp, FileRequest, FileSource};

/// `TMPFS_MAGIC` and `FUSE_SUPER_MAGIC` of `include/uapi/linux/magic.h`.
const TMPFS: u64 = 0x0102_1994;
const FUSE: u64 = 0x6573_5546;

fn is_io(row: &&FileRequest, source: FileSource, magic: u64) -> bool {
    row.source == source && row.fs_magic == magic && row.op != FileOp::Fsync
}

/// What fio and its children did while they were followed.
fn follow_fio(path: &std::path::Path, arguments: &[&str]) -> (serde_json::Value, Vec<FileRequest>) {
    let collector = Collector::start(&std::env::temp_dir()).unwrap();
    collector.follow(std::process::id()).unwrap();
    let report = fio(path, arguments);
    collector.leave(std::process::id());
    let capture = collector.stop().unwrap();
    assert_eq!(capture.counters().lost(), 0, "{:?}", capture.counters());
    let ours = std::process::id();
    let rows = capture.into_rows(0).unwrap().into_iter().filter(|row| row.process != ours).collect();
    (report, rows)
}

#[test]
fn system_calls_on_tmpfs_are_those_of_fio() {
    if must_skip(&[]) {
        return;
    }
    let file = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
    // A file that is too small fio would make anew.
    file.as_file().set_len(4 << 20).unwrap();
    let load =
        ["--rw=randrw", "--bs=4k", "--size=4m", "--ioengine=psync", "--number_ios=1000", "--fsync=100"];
    let (report, rows) = follow_fio(file.path(), &load);
    let inode = std::os::unix::fs::MetadataExt::ino(&file.as_file().metadata().unwrap());
    let of_file: Vec<_> = rows.iter().filter(|row| row.inode == inode && row.fs_magic == TMPFS).collect();
    let number = |op| {
        of_file.iter().filter(|row| row.op == op && row.result == 4096 && row.size_bytes == 4096).count()
    };
    assert_eq!(number(FileOp::Read) as u64, count(&report, "read"));
    assert_eq!(number(FileOp::Write) as u64, count(&report, "write"));
    assert!(of_file.iter().any(|row| row.op == FileOp::Fsync));
    assert!(of_file.iter().all(|row| row.source == FileSource::Syscall && row.start_ns < row.end_ns));
}

#[test]
fn io_uring_on_tmpfs_is_seen() {
    if must_skip(&[]) {
        return;
    }
    let file = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
    file.as_file().set_len(4 << 20).unwrap();
    let load =
        ["--rw=randread", "--bs=4k", "--size=4m", "--ioengine=io_uring", "--iodepth=4", "--number_ios=1000"];
    let (report, rows) = follow_fio(file.path(), &load);
    let found: Vec<_> = rows.iter().filter(|row| is_io(row, FileSource::IoUring, TMPFS)).collect();
    assert_eq!(found.len() as u64, count(&report, "read"));
    assert!(found.iter().all(|row| row.result == 4096 && row.start_ns < row.end_ns));
}

#[test]
fn fuse_requests_take_the_servers_time() {
    if must_skip(&[]) {
        return;
    }
    let file = SlowFile::new(4 << 20, Duration::from_millis(2), u64::MAX);
    let (report, rows) =
        follow_fio(&file.path, &["--rw=randread", "--bs=4k", "--size=4m", "--number_ios=50"]);
    let found: Vec<_> = rows.iter().filter(|row| is_io(row, FileSource::Fuse, FUSE)).collect();
    assert_eq!(found.len() as u64, count(&report, "read"));
    assert!(found.iter().all(|row| row.result == 4096 && row.end_ns - row.start_ns > 2_000_000));
}
