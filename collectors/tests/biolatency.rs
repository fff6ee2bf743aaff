//! Beside `biolatency` of bcc's libbpf-tools: the same histogram of service times.

mod common;

use std::process::{Command, Stdio};
use std::time::Duration;

use common::{Loop, fio, must_skip, start};

/// The bucket of a time in µs: 0 to 1, 2 to 3, 4 to 7, ...
fn bucket(us: u64) -> usize {
    us.max(1).ilog2() as usize
}

/// `         4 -> 7          : 1691     |****    |` as lower bound and count.
fn parse(line: &str) -> Option<(u64, u64)> {
    let (range, rest) = line.split_once(" : ")?;
    let lower = range.split_once("->")?.0.trim().parse().ok()?;
    Some((lower, rest.split('|').next()?.trim().parse().ok()?))
}

/// The bucket that holds a share of the counts.
fn quantile(histogram: &[u64], share: f64) -> usize {
    let wanted = share * histogram.iter().sum::<u64>() as f64;
    let mut seen = 0;
    histogram
        .iter()
        .position(|count| {
            seen += count;
            seen as f64 >= wanted
        })
        .unwrap()
}

#[test]
fn histograms_are_equal_within_one_bucket() {
    if must_skip(&["biolatency"]) {
        return;
    }
    let device = Loop::in_memory(64);
    let child = Command::new("biolatency")
        .args(["-d", &device.disk().name, "6", "1"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It has no way of saying that it is ready.
    std::thread::sleep(Duration::from_millis(1500));
    let collector = start(&[device.disk()]);
    fio(
        &device.path,
        &["--rw=randread", "--bs=4k", "--direct=1", "--ioengine=libaio", "--iodepth=8", "--number_ios=10000"],
    );
    let (rows, found) = collector.stop().unwrap().into_rows(0).unwrap();
    assert!(found.agrees, "{found:#?}");
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut theirs = vec![0; 64];
    for (lower_us, count) in text.lines().filter_map(parse) {
        theirs[bucket(lower_us)] += count;
    }
    if theirs.iter().sum::<u64>() == 0 {
        eprintln!("skipped: biolatency recorded nothing: {text} {}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    let mut ours = vec![0; 64];
    for row in &rows {
        if let (Some(issued_ns), Some(completed_ns)) = (row.issued_ns, row.completed_ns) {
            ours[bucket(((completed_ns - issued_ns) / 1000) as u64)] += 1;
        }
    }
    let (our_count, their_count): (u64, u64) = (ours.iter().sum(), theirs.iter().sum());
    // Both are BPF programs: a kernel may hide a few completions from either.
    assert!(our_count.abs_diff(their_count) <= our_count / 100, "{our_count} {their_count}\n{text}");
    for share in [0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999] {
        let (our_bucket, their_bucket) = (quantile(&ours, share), quantile(&theirs, share));
        assert!(our_bucket.abs_diff(their_bucket) <= 1, "share {share}: {our_bucket} {their_bucket}\n{text}");
    }
}
