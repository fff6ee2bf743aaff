//! Trace events of ftrace on real loop devices: beside BPF, as a filler, and after a crash.

mod common;

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use common::{Loop, fio, must_skip, start};
use weir_collectors::Disk;
use weir_collectors::assemble::Recorded;
use weir_collectors::block::Options;
use weir_collectors::ftrace::Collector;
use weir_collectors::{blktrace_tool, fill, paired, recover};
use weir_host::clock::monotonic_ns;
use weir_records::{BlockOp, BlockRequest};
use weir_trace::blktrace::write_per_cpu;

/// A recording, with the folder that has a record of its instance.
fn trace(disks: &[Disk], state: &Path) -> Collector {
    Collector::start(disks, &std::env::temp_dir(), state).unwrap()
}

/// The instances of the host, and every setting of its tracing that is not an instance's. Read in a mount namespace that ends.
fn tracing_of_the_host() -> (Vec<String>, String) {
    let script = "mount --make-rprivate / && { mountpoint -q /sys/kernel/tracing || mount -t tracefs none /sys/kernel/tracing; } && cd /sys/kernel/tracing && ls instances && \
        echo -- && head -n 99 current_tracer trace_options buffer_size_kb trace_clock tracing_on set_event events/block/*/enable && \
        head -n 99 /sys/block/*/trace/enable";
    let output = Command::new("unshare").args(["--mount", "sh", "-c", script]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let (instances, settings) = text.split_once("--\n").unwrap();
    (instances.lines().map(str::to_owned).collect(), settings.to_owned())
}

/// Names of the instances of which a state folder has a record.
fn recorded(state: &Path) -> Vec<String> {
    let name = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.unwrap().file_name().to_str().unwrap().trim_end_matches(".json").to_owned()
    };
    std::fs::read_dir(state.join("tracing")).unwrap().map(name).collect()
}

/// Sector, bytes, operation, issue, completion.
type Seen = (u64, u32, BlockOp, Option<i64>, Option<i64>);

fn requests(rows: &[BlockRequest]) -> Vec<Seen> {
    let mut rows: Vec<_> = rows
        .iter()
        .map(|row| (row.sector, row.size_bytes, row.op, row.issued_ns, row.completed_ns))
        .collect();
    rows.sort_by_key(|row| (row.0, row.1, row.2.name(), row.3));
    rows
}

#[test]
fn beside_bpf_it_sees_the_same_requests_at_the_same_times() {
    if must_skip(&[]) {
        return;
    }
    let state = tempfile::tempdir().unwrap();
    let device = Loop::in_memory(64);
    device.set("scheduler", "mq-deadline");
    let epoch_ns = monotonic_ns();
    let bpf = start(&[device.disk()]);
    let ftrace = trace(&[device.disk()], state.path());
    let load = ["--rw=randrw", "--direct=1", "--ioengine=libaio", "--iodepth=4", "--number_ios=4000"];
    fio(&device.path, &[&load[..], &["--bssplit=4k/50:16k/50", "--rate_iops=2000"]].concat());
    let Recorded { rows, reconciliation } = ftrace.stop().unwrap().into_rows(epoch_ns).unwrap();
    let (bpf_rows, found) = bpf.stop().unwrap().into_rows(epoch_ns).unwrap();
    assert!(reconciliation.agrees && reconciliation.lost == 0, "{reconciliation:#?}");
    assert!(found.agrees, "{found:#?}");
    assert!(rows.len() >= 4000, "{}", rows.len());

    let (ours, theirs) = (requests(&bpf_rows), requests(&rows));
    let places = |rows: &[Seen]| rows.iter().map(|row| (row.0, row.1, row.2)).collect::<Vec<_>>();
    assert_eq!(places(&ours), places(&theirs));
    let mut differences = Vec::new();
    for (a, b) in ours.iter().zip(&theirs) {
        // What BPF did not see has no time to compare; the reconciliation has counted it.
        for (ours, theirs) in [(a.3, b.3), (a.4, b.4)] {
            differences.extend(ours.zip(theirs).map(|(ours, theirs)| (ours - theirs).abs()));
        }
    }
    differences.sort_unstable();
    let p99 = differences[differences.len() * 99 / 100];
    eprintln!("p99 of the difference {p99} ns, median {} ns", differences[differences.len() / 2]);
    assert!(p99 < 20_000, "{p99} ns");
    assert!(rows.iter().all(|row| row.queued_ns.is_some() && row.inserted_ns.is_some()));
}

#[test]
fn what_bpf_did_not_see_is_filled() {
    if must_skip(&[]) {
        return;
    }
    let state = tempfile::tempdir().unwrap();
    let device = Loop::in_memory(1);
    let losses = Arc::new(AtomicU64::new(0));
    let bpf = start(&[device.disk()]);
    let scratch = std::env::temp_dir();
    let ftrace =
        Collector::start_for_losses(&[device.disk()], &scratch, state.path(), Arc::clone(&losses)).unwrap();
    // Reads, writes and discards of 256 places: most are used several times.
    let load = ["--rw=randrw", "--bs=4k", "--direct=1", "--ioengine=libaio", "--iodepth=8"];
    fio(&device.path, &[&load[..], &["--number_ios=4000", "--io_size=1g", "--norandommap"]].concat());
    losses.fetch_add(1, Ordering::Release);
    let recorded = ftrace.stop().unwrap();
    let (mut rows, _) = bpf.stop().unwrap().into_rows(0).unwrap();
    assert!(rows.len() >= 4000);
    // Every tenth completion is taken away, as if BPF had missed it.
    let known = rows.clone();
    rows.iter_mut().step_by(10).for_each(|row| row.completed_ns = None);
    let missing = rows.iter().filter(|row| row.completed_ns.is_none()).count();
    let mut gaps = fill::Gaps::default();
    rows.iter().for_each(|row| gaps.note(row));
    recorded.each_completion(0, |completion| gaps.offer(completion)).unwrap();
    rows.iter().for_each(|row| gaps.exclude(row));
    assert_eq!(rows.iter_mut().filter_map(|row| gaps.fill(row, "ftrace").then_some(())).count(), missing);
    for (row, known) in rows.iter().zip(&known) {
        let Some(known_ns) = known.completed_ns else { continue };
        assert!((row.completed_ns.unwrap() - known_ns).abs() < 1_000_000, "{row:?} {known:?}");
    }
    assert_eq!(rows.iter().filter(|row| &*row.source == "bpf+ftrace").count(), missing);
}

#[test]
fn completions_are_read_only_after_a_loss() {
    if must_skip(&[]) {
        return;
    }
    let state = tempfile::tempdir().unwrap();
    let device = Loop::in_memory(1);
    for (before, expected) in [(0, 0), (1, 300)] {
        let losses = Arc::new(AtomicU64::new(0));
        let (disks, scratch) = ([device.disk()], std::env::temp_dir());
        let ftrace =
            Collector::start_for_losses(&disks, &scratch, state.path(), Arc::clone(&losses)).unwrap();
        fio(&device.path, &["--rw=read", "--bs=4k", "--direct=1", "--number_ios=300", "--io_size=1g"]);
        losses.fetch_add(before, Ordering::Release);
        let mut found = 0;
        ftrace.stop().unwrap().each_completion(0, |_| found += 1).unwrap();
        assert_eq!(found, expected);
    }
    assert!(recorded(state.path()).is_empty());
}

#[test]
fn a_pair_loses_nothing_at_any_rate() {
    if must_skip(&[]) {
        return;
    }
    let state = tempfile::tempdir().unwrap();
    let device = Loop::in_memory(64);
    // As fast as the host goes: at such rates some kernels hide completions from BPF, in bursts.
    let load = ["--rw=randread", "--bs=4k", "--direct=1", "--ioengine=libaio", "--iodepth=32"];
    let scratch = std::env::temp_dir();
    let options = Options::spooled_to(&scratch);
    let required = paired::Second::Required;
    let pair = paired::Collector::start(&[device.disk()], options, required, &scratch, state.path()).unwrap();
    fio(&device.path, &[&load[..], &["--time_based", "--runtime=3"]].concat());
    let (rows, found) = pair.stop().unwrap().into_rows(0).unwrap();
    eprintln!("{}", found.summary());
    assert!(found.agrees && found.unexplained == 0, "{found:#?}");
    assert_eq!(found.filled, found.lost, "{}", found.summary());
    assert!(rows.iter().all(|row| row.completed_ns.is_some()));
}

#[test]
fn the_files_are_read_by_blkparse_btt_and_fio() {
    if must_skip(&["blkparse", "btt"]) {
        return;
    }
    let state = tempfile::tempdir().unwrap();
    let device = Loop::in_memory(16);
    let ftrace = trace(&[device.disk()], state.path());
    fio(&device.path, &["--rw=randwrite", "--bs=8k", "--direct=1", "--number_ios=500"]);
    let capture = ftrace.stop().unwrap();
    let mut records = capture.records().unwrap();
    assert!(records.is_sorted_by_key(|record| record.time_ns));
    let recorded = capture.into_rows(0).unwrap();
    let folder = tempfile::tempdir().unwrap();
    write_per_cpu(&folder.path().join("stream"), &mut records).unwrap();
    let mut converted = weir_collectors::to_blktrace::records(&recorded.rows, &[device.disk()], 0);
    write_per_cpu(&folder.path().join("rows"), &mut converted).unwrap();

    for name in ["stream", "rows"] {
        let output = Command::new("blkparse")
            .args(["-i", name, "-d", &format!("{name}.bin"), "-f", "%a %d %S %N %C\n"])
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let events = |kind: &str| text.lines().filter(|line| line.starts_with(&format!("{kind} W"))).count();
        assert_eq!((events("Q"), events("D"), events("C")), (500, 500, 500), "{name}");
        assert!(
            name == "stream" || text.lines().any(|line| line.starts_with("Q W") && line.ends_with("fio"))
        );

        let output = Command::new("btt")
            .args(["-i", &format!("{name}.bin")])
            .current_dir(folder.path())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = text.lines().find(|line| line.starts_with("Q2C")).unwrap_or_else(|| panic!("{text}"));
        assert_eq!(line.split_whitespace().last(), Some("500"), "{line}");

        // fio reads one file, so the one of all CPUs that blkparse made.
        let target = folder.path().join("target");
        std::fs::write(&target, vec![0; 16 << 20]).unwrap();
        let report = fio(
            &target,
            &[
                &format!("--read_iolog={}", folder.path().join(format!("{name}.bin")).display()),
                &format!("--replay_redirect={}", target.display()),
                "--replay_no_stall=1",
                "--ioengine=psync",
            ],
        );
        assert_eq!(common::count(&report, "write"), 500, "{name}: {report}");
    }
}

/// Run again as a process of its own by the next test; on its own it does nothing.
#[test]
fn process_that_crashes() {
    let Ok(device) = std::env::var("WEIR_TEST_CRASH") else { return };
    let state = std::env::var("WEIR_TEST_STATE").unwrap();
    let _running = trace(&[Disk::find(&device).unwrap()], Path::new(&state));
    std::process::abort();
}

#[test]
fn a_crash_leaves_an_instance_that_recovery_removes_and_nothing_else() {
    if must_skip(&["unshare"]) {
        return;
    }
    let state = tempfile::tempdir().unwrap();
    let device = Loop::in_memory(16);
    let (_, before) = tracing_of_the_host();
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "process_that_crashes", "--nocapture"])
        .env("WEIR_TEST_CRASH", &device.path)
        .env("WEIR_TEST_STATE", state.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(!status.success());
    let left = recorded(state.path());
    let (instances, settings) = tracing_of_the_host();
    assert_eq!(left.len(), 1);
    assert!(instances.contains(&left[0]), "{left:?} {instances:?}");
    assert_eq!(settings, before, "no setting outside of the instance was changed");

    assert_eq!(recover(state.path()).unwrap(), [format!("trace instance {}", left[0])]);
    assert!(!tracing_of_the_host().0.contains(&left[0]));
    assert!(recorded(state.path()).is_empty() && recover(state.path()).unwrap().is_empty());
}

#[test]
fn recordings_do_not_disturb_each_other_or_the_host() {
    if must_skip(&["unshare"]) {
        return;
    }
    let state = tempfile::tempdir().unwrap();
    let device = Loop::in_memory(16);
    let (_, before) = tracing_of_the_host();
    let both = [trace(&[device.disk()], state.path()), trace(&[device.disk()], state.path())];
    let ours = recorded(state.path());
    assert!(recover(state.path()).unwrap().is_empty(), "a recording under way was taken away");
    let (instances, settings) = tracing_of_the_host();
    assert_eq!(settings, before);
    assert!(ours.len() == 2 && ours.iter().all(|name| instances.contains(name)), "{ours:?} {instances:?}");
    fio(&device.path, &["--rw=randread", "--bs=4k", "--direct=1", "--number_ios=100"]);
    for collector in both {
        let recorded = collector.stop().unwrap().into_rows(0).unwrap();
        assert!(recorded.reconciliation.agrees, "{:#?}", recorded.reconciliation);
        assert_eq!(recorded.rows.len(), 100);
    }
    assert!(recorded(state.path()).is_empty());
    let (instances, settings) = tracing_of_the_host();
    assert_eq!(settings, before);
    assert!(!ours.iter().any(|name| instances.contains(name)));
}

#[test]
fn an_instance_that_is_in_use_stays_on_record_until_it_can_be_removed() {
    if must_skip(&["unshare"]) {
        return;
    }
    let state = tempfile::tempdir().unwrap();
    let name = format!("weir-{:032x}", std::process::id());
    let dead = format!(
        "{{\"instance\":\"{name}\",\"owner\":{{\"pid\":{},\"started_ticks\":1}}}}",
        std::process::id()
    );
    std::fs::create_dir(state.path().join("tracing")).unwrap();
    std::fs::write(state.path().join("tracing").join(format!("{name}.json")), dead).unwrap();
    let script = "mount --make-rprivate / && { mountpoint -q /sys/kernel/tracing || mount -t tracefs none /sys/kernel/tracing; } && cd /sys/kernel/tracing/instances && \
        mkdir \"$0\" && exec 3< \"$0/trace_pipe\" && cd / && echo open && read -r _";
    let mut reader = Command::new("unshare")
        .args(["--mount", "sh", "-c", script, &name])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(reader.stdout.take().unwrap()), &mut line)
        .unwrap();
    assert_eq!(line, "open\n");
    let refused = recover(state.path()).unwrap_err().to_string();
    assert!(refused.contains(&name) && refused.contains("Close what reads it"), "{refused}");
    assert_eq!(recorded(state.path()), std::slice::from_ref(&name));
    drop(reader.stdin.take());
    reader.wait().unwrap();
    assert_eq!(recover(state.path()).unwrap(), [format!("trace instance {name}")]);
    assert!(!tracing_of_the_host().0.contains(&name));
}

#[test]
fn blktrace_records_or_says_in_one_line_why_not() {
    if must_skip(&["blktrace"]) {
        return;
    }
    let device = Loop::in_memory(16);
    let folder = tempfile::tempdir().unwrap();
    let recorded = blktrace_tool::Collector::start(&[device.disk()], folder.path()).and_then(|collector| {
        fio(&device.path, &["--rw=read", "--bs=4k", "--direct=1", "--number_ios=100"]);
        collector.stop()?.into_rows(0)
    });
    match recorded {
        Ok(recorded) => assert_eq!(recorded.rows.len(), 100),
        Err(error) => {
            let text = error.to_string();
            assert!(text.starts_with("blktrace(8) cannot be used: ") && !text.contains('\n'), "{text}");
        }
    }
}
