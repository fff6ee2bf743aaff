//! The BPF collector on real loop devices.

mod common;

use std::collections::HashMap;
use std::process::Command;
use std::time::Duration;

use common::slow_file::SlowFile;
use common::{Loop, count, fio, must_skip, start};
use weir_collectors::block::{Collector, Mode, Options};
use weir_host::clock::monotonic_ns;
use weir_records::{BlockOp, BlockRequest};

/// Rows of a kind that a completion was seen of. A kernel may hide some from BPF; those are counted, and no more.
fn completed(rows: &[BlockRequest], op: BlockOp) -> usize {
    rows.iter().filter(|row| row.op == op && row.completed_ns.is_some()).count()
}

#[test]
fn requests_are_those_that_fio_issued() {
    if must_skip(&[]) {
        return;
    }
    let device = Loop::in_memory(64);
    let log = tempfile::tempdir().unwrap();
    let prefix = log.path().join("log");
    let epoch_ns = monotonic_ns();
    let collector = start(&[device.disk()]);
    let report = fio(
        &device.path,
        &[
            "--rw=randrw",
            "--bsrange=4k-64k",
            "--bs_unaligned=0",
            "--direct=1",
            "--ioengine=libaio",
            "--iodepth=8",
            "--number_ios=4000",
            "--io_size=1g",
            "--log_offset=1",
            &format!("--write_lat_log={}", prefix.display()),
        ],
    );
    let (rows, found) = collector.stop().unwrap().into_rows(epoch_ns).unwrap();
    assert!(found.agrees, "{found:#?}");
    let issued = count(&report, "read") + count(&report, "write");
    assert_eq!(issued, 4000);
    assert_eq!(rows.len() as u64, issued);
    assert_eq!(found.devices[0].kernel.requests(), issued);

    // Of each operation, size and place as many as in fio's own log: time, latency, direction, size, offset, ...
    let mut expected: HashMap<(BlockOp, u64, u64), i64> = HashMap::new();
    for line in std::fs::read_to_string(log.path().join("log_clat.1.log")).unwrap().lines() {
        let fields: Vec<u64> = line.split(',').map_while(|field| field.trim().parse().ok()).collect();
        let op = if fields[2] == 0 { BlockOp::Read } else { BlockOp::Write };
        *expected.entry((op, fields[3], fields[4])).or_default() += 1;
    }
    for row in &rows {
        *expected.entry((row.op, u64::from(row.size_bytes), row.sector * 512)).or_default() -= 1;
    }
    let differing: Vec<_> = expected.into_iter().filter(|(_, difference)| *difference != 0).collect();
    assert!(differing.is_empty(), "{differing:?}");

    for row in &rows {
        let (queued_ns, issued_ns) = (row.queued_ns.unwrap(), row.issued_ns.unwrap());
        assert!(0 < queued_ns && queued_ns <= issued_ns, "{row:?}");
        assert!(row.completed_ns.is_none_or(|completed_ns| issued_ns < completed_ns), "{row:?}");
        assert_eq!((&*row.device, &*row.comm, row.status), (&*device.disk().name, "fio", 0));
        assert!(row.pid > 0 && row.priority.is_some());
    }
}

#[test]
fn a_full_ring_is_counted() {
    if must_skip(&[]) {
        return;
    }
    let device = Loop::in_memory(64);
    for mode in [Mode::Full, Mode::Lean] {
        // Some events in each ring: between two visits of the collector there are more.
        let options = Options { mode, ring_bytes: 4096, ..Options::spooled_to(&std::env::temp_dir()) };
        let collector = Collector::start(&[device.disk()], options).unwrap();
        let load = ["--rw=randread", "--bs=4k", "--direct=1", "--ioengine=libaio", "--iodepth=16"];
        let report = fio(&device.path, &[&load[..], &["--number_ios=5000", "--io_size=1g"]].concat());
        let (rows, found) = collector.stop().unwrap().into_rows(0).unwrap();
        let full: u64 = found.cpus.iter().map(|cpu| cpu.buffer_full).sum();
        assert!(full > 0 && found.unexplained == 0 && found.agrees, "{found:#?}");
        let issued = count(&report, "read");
        assert_eq!(rows.len() as u64 + full + found.devices[0].hidden[0].min(found.lost - full), issued);
    }
}

#[test]
fn a_wait_for_a_tag_is_queueing() {
    if must_skip(&[]) {
        return;
    }
    let file = SlowFile::new(64 << 20, Duration::from_millis(2), u64::MAX);
    let device = Loop::over(&file.path);
    device.set("nr_requests", "4");
    let collector = start(&[device.disk()]);
    // 16 threads, each with one request: 12 of them wait for one of the 4 tags.
    let report = fio(
        &device.path,
        &[
            "--rw=randread",
            "--bs=4k",
            "--direct=1",
            "--ioengine=psync",
            "--numjobs=16",
            "--thread",
            "--number_ios=40",
        ],
    );
    let (rows, found) = collector.stop().unwrap().into_rows(0).unwrap();
    assert!(found.agrees, "{found:#?}");
    let mean = |time: fn(&BlockRequest) -> Option<i64>| {
        let times: Vec<i64> = rows.iter().filter_map(time).collect();
        assert!(times.len() > 600, "{}", times.len());
        times.iter().sum::<i64>() as f64 / times.len() as f64
    };
    let response_ns = mean(|row| Some(row.completed_ns? - row.queued_ns?));
    let queueing_ns = mean(|row| Some(row.issued_ns? - row.queued_ns?));
    let service_ns = mean(|row| Some(row.completed_ns? - row.issued_ns?));
    let clat_ns = report["jobs"][0]["read"]["clat_ns"]["mean"].as_f64().unwrap();
    let ratio = response_ns / clat_ns;
    assert!((0.9..1.1).contains(&ratio), "response {response_ns} ns, fio's {clat_ns} ns");
    assert!(queueing_ns > 2.0 * service_ns, "queueing {queueing_ns} ns, service {service_ns} ns");
}

#[test]
fn merges_and_splits_are_accounted_for() {
    if must_skip(&[]) {
        return;
    }
    let device = Loop::in_memory(64);
    device.set("scheduler", "mq-deadline");
    device.set("max_sectors_kb", "128");
    let collector = start(&[device.disk()]);
    let small =
        ["--rw=write", "--bs=4k", "--direct=1", "--ioengine=libaio", "--iodepth=64", "--number_ios=4096"];
    fio(&device.path, &[&small[..], &["--iodepth_batch=32"]].concat());
    fio(&device.path, &["--rw=write", "--bs=1m", "--direct=1", "--number_ios=32"]);
    let (rows, found) = collector.stop().unwrap().into_rows(0).unwrap();
    assert!(found.agrees, "{found:#?}");
    let seen = &found.devices[0].seen;
    assert!(seen.merges() > 0 && seen.splits >= 32 * 7, "{seen:?}");
    assert_eq!(rows.len() as u64, 4096 + 32 + seen.splits - seen.merges());
    let bytes: u64 = rows.iter().map(|row| u64::from(row.size_bytes)).sum();
    assert_eq!(bytes, (4096 * 4 + 32 * 1024) << 10);
    assert!(rows.iter().all(|row| row.queued_ns.is_some() && row.inserted_ns.is_some()));
}

/// Unmounts when it is dropped.
struct Mounted(tempfile::TempDir);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_journalling_file_system_reconciles_with_its_flushes() {
    if must_skip(&["mkfs.ext4", "mount", "fstrim"]) {
        return;
    }
    let device = Loop::in_memory(128);
    let done = |command: &mut Command| assert!(command.status().unwrap().success(), "{command:?}");
    done(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&device.path));
    let folder = Mounted(tempfile::tempdir().unwrap());
    let collector = start(&[device.disk()]);
    done(Command::new("mount").arg(&device.path).arg(folder.0.path()));
    let file = folder.0.path().join("file");
    fio(&file, &["--rw=randwrite", "--bs=4k", "--size=32m", "--fsync=16", "--number_ios=2000"]);
    std::fs::remove_file(&file).unwrap();
    done(Command::new("fstrim").arg(folder.0.path()));
    drop(folder);
    let (rows, found) = collector.stop().unwrap().into_rows(0).unwrap();
    assert!(found.agrees && found.unexplained == 0, "{found:#?}");
    let kernel = &found.devices[0].kernel;
    assert!(kernel.flushes > 50 && kernel.discards > 0, "{kernel:?}");
    let hidden = found.devices[0].hidden;
    assert_eq!(completed(&rows, BlockOp::Flush) as u64 + hidden[3], kernel.flushes);
    assert_eq!(completed(&rows, BlockOp::Discard) as u64 + hidden[2], kernel.discards);
    assert_eq!(completed(&rows, BlockOp::Write) as u64 + hidden[1], kernel.writes);
    assert!(rows.iter().any(|row| row.flags.contains("preflush") && row.flags.contains("fua")));
}

#[test]
fn a_failed_request_has_its_errno() {
    if must_skip(&[]) {
        return;
    }
    let file = SlowFile::new(64 << 20, Duration::ZERO, 32 << 20);
    let device = Loop::over(&file.path);
    let collector = start(&[device.disk()]);
    let reading =
        ["--rw=read", "--bs=4k", "--direct=1", "--number_ios=10", "--offset=32m", "--continue_on_error=all"];
    fio(&device.path, &reading);
    let (rows, found) = collector.stop().unwrap().into_rows(0).unwrap();
    assert!(found.agrees, "{found:#?}");
    let failed: Vec<_> = rows.iter().filter(|row| row.sector >= 32 << 11).collect();
    assert!(failed.len() >= 10, "{}", failed.len());
    assert!(failed.iter().all(|row| row.completed_ns.is_none() || row.status == libc::EIO), "{failed:?}");
}

#[test]
fn two_devices_are_told_apart() {
    if must_skip(&[]) {
        return;
    }
    let (first, second, other) = (Loop::in_memory(16), Loop::in_memory(16), Loop::in_memory(16));
    let collector = start(&[first.disk(), second.disk()]);
    let read = |device: &Loop, number: &str| {
        fio(&device.path, &["--rw=read", "--bs=4k", "--direct=1", &format!("--number_ios={number}")]);
    };
    read(&first, "100");
    read(&second, "300");
    read(&other, "500");
    let (rows, found) = collector.stop().unwrap().into_rows(0).unwrap();
    assert!(found.agrees, "{found:#?}");
    let of = |device: &Loop| rows.iter().filter(|row| row.device == device.disk().name).count();
    assert_eq!((of(&first), of(&second), rows.len()), (100, 300, 400));
}

#[test]
fn what_is_under_way_at_start_and_stop_is_no_loss() {
    if must_skip(&[]) {
        return;
    }
    let file = SlowFile::new(64 << 20, Duration::from_millis(5), u64::MAX);
    let device = Loop::over(&file.path);
    let path = device.path.clone();
    let load = std::thread::spawn(move || {
        fio(
            &path,
            &[
                "--rw=randread",
                "--bs=4k",
                "--direct=1",
                "--ioengine=libaio",
                "--iodepth=16",
                "--runtime=3",
                "--time_based",
            ],
        )
    });
    std::thread::sleep(Duration::from_millis(1000));
    let options = Options { drain: Duration::from_millis(30), ..Options::spooled_to(&std::env::temp_dir()) };
    let collector = Collector::start(&[device.disk()], options).unwrap();
    std::thread::sleep(Duration::from_millis(700));
    let (rows, found) = collector.stop().unwrap().into_rows(0).unwrap();
    load.join().unwrap();
    assert!(found.agrees && found.unexplained == 0, "{found:#?}");
    assert!(found.in_flight_at_start > 0 && found.in_flight_at_stop > 0, "{found:#?}");
    let open = rows.iter().filter(|row| row.completed_ns.is_none()).count() as u64;
    assert_eq!(open, found.in_flight_at_stop + found.lost);
}

#[test]
fn the_lean_mode_sees_the_same_requests() {
    if must_skip(&[]) {
        return;
    }
    let device = Loop::in_memory(64);
    // The kernel keeps the time of issue only while someone needs it, such as kyber.
    device.set("scheduler", "kyber");
    let options = Options { mode: Mode::Lean, ..Options::spooled_to(&std::env::temp_dir()) };
    let lean = Collector::start(&[device.disk()], options).unwrap();
    let full = start(&[device.disk()]);
    fio(&device.path, &["--rw=randread", "--bs=4k", "--direct=1", "--number_ios=2000"]);
    let (full_rows, _) = full.stop().unwrap().into_rows(0).unwrap();
    let (lean_rows, found) = lean.stop().unwrap().into_rows(0).unwrap();
    assert!(found.agrees, "{found:#?}");
    assert_eq!(found.mode.as_deref(), Some("lean"));
    assert_eq!(lean_rows.len() as u64 + found.lost, 2000);
    let places = |rows: &[BlockRequest]| {
        let seen = rows.iter().filter(|row| row.completed_ns.is_some());
        let mut places: Vec<_> = seen.map(|row| (row.sector, row.size_bytes, row.op)).collect();
        places.sort_by_key(|place| place.0);
        places
    };
    assert_eq!(places(&lean_rows), places(&full_rows));
    assert!(lean_rows.iter().all(|row| row.issued_ns.is_some() && row.issued_ns < row.completed_ns));
}

#[test]
fn more_devices_than_the_programs_hold_are_refused() {
    let disk = weir_collectors::Disk { name: "loop0".into(), major: 7, minor: 0 };
    let options = Options::spooled_to(&std::env::temp_dir());
    let error = Collector::start(&vec![disk; 9], options).unwrap_err();
    assert!(error.is_bad_input() && error.to_string().contains("1 to 8 devices"), "{error}");
}
