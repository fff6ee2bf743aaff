//! Servers with a policy, as block devices and over NBD: fio finds what it wrote, and a killed server loses nothing.

mod common;

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::{Pages, Server, lacks, skip, write_at};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use weir_blockserver::{ClassSpec, ServeSpec, down};

/// A folder next to the program: not every file system supports direct I/O, tmpfs in particular.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(std::env::current_exe().unwrap().parent().unwrap()).unwrap()
}

fn target(folder: &tempfile::TempDir, name: &str, mib: u64) {
    File::create(folder.path().join(name)).unwrap().set_len(mib << 20).unwrap();
}

/// Random writes, read back and compared by fio.
fn verify(arguments: &[String]) {
    let fio = Command::new("fio")
        .args(["--name=data", "--rw=randwrite", "--bsrange=4k-64k", "--size=24m", "--iodepth=16"])
        .args([
            "--verify=crc32c",
            "--verify_fatal=1",
            "--verify_state_save=0",
            "--end_fsync=1",
            "--randrepeat=1",
            "--fsync=50",
        ])
        .args(arguments)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&fio.stderr).into_owned() + &String::from_utf8_lossy(&fio.stdout);
    assert!(fio.status.success() && !said.contains("verify:"), "{said}");
}

#[test]
fn fio_finds_what_it_wrote_through_a_loop_device() {
    let test = "fio_finds_what_it_wrote_through_a_loop_device";
    if skip(test) || lacks(test, "fio") {
        return;
    }
    let folder = folder();
    ["a", "b"].iter().for_each(|name| target(&folder, name, 64));
    let server = Server::start_in(
        folder,
        "{name: loop, profile: hdd-7200, heads: 2, size_mib: 128,
          live: {policy: scan-edf, queue_depth: 8, targets: [a, b], classes: [{name: video, range_mib: [0, 12]}]}}",
    );
    let device = server.device().display().to_string();
    verify(&[format!("--filename={device}"), "--ioengine=libaio".into(), "--direct=1".into()]);
    let stats = server.control().live().unwrap();
    assert!(stats.classes.iter().all(|class| class.requests > 50 && class.errors == 0), "{stats:?}");
    assert!(server.control().stats(false).unwrap().flush > 0);
}

#[test]
fn fio_finds_what_it_wrote_over_nbd() {
    let test = "fio_finds_what_it_wrote_over_nbd";
    if skip(test) || lacks(test, "fio") {
        return;
    }
    let engines = Command::new("fio").arg("--enghelp").output().unwrap().stdout;
    if !String::from_utf8_lossy(&engines).contains("nbd") {
        return eprintln!("{test}: skipped: this fio has no nbd engine");
    }
    for (policy, more) in [("sfq", "targets: [a]"), ("hds root_kb_s=1000000", "nbd_port: 0")] {
        let folder = folder();
        target(&folder, "a", 32);
        let yaml = format!(
            "{{name: nbd, profile: \"null\", size_mib: 32, live: {{policy: {policy}, exports: [nbd], {more}}}}}"
        );
        let server = Server::start_in(folder, &yaml);
        assert!(server.state.device.is_none() && !server.state.mountpoint.exists());
        let uri = server.state.nbd.clone().unwrap();
        // Classes change during the requests.
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut control = server.control();
                while !done.load(Ordering::Relaxed) {
                    let class = ClassSpec { range_mib: Some([0, 8]), ..ClassSpec::named("video") };
                    control.set_class(class).unwrap();
                    control.remove_class("video").unwrap();
                    thread::sleep(Duration::from_millis(5));
                }
            });
            let verified = std::panic::catch_unwind(|| {
                verify(&["--ioengine=nbd".into(), format!("--uri={uri}")]);
            });
            done.store(true, Ordering::Relaxed);
            verified.unwrap();
        });
    }
}

#[test]
fn qemu_reads_and_writes_each_classs_device() {
    let test = "qemu_reads_and_writes_each_classs_device";
    if skip(test) || lacks(test, "qemu-io") {
        return;
    }
    let server = Server::start(
        "{name: parts, profile: hdd-15k, size_mib: 128, live: {policy: cello, exports: [nbd], layout: partitioned,
          classes: [{name: text, heads: 2}, {name: video, size_mib: 64}]}}",
    );
    let socket = server.state.nbd.clone().unwrap().split_once("socket=").unwrap().1.to_owned();
    let qemu = |export: &str, command: &str| {
        let uri = format!("nbd+unix:///{export}?socket={socket}");
        let output = Command::new("qemu-io").args(["-f", "raw", "-c", command, &uri]).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    assert!(qemu("text", "write -P 7 4k 64k").0);
    assert!(qemu("text", "read -P 7 4k 64k").0);
    let (_, other) = qemu("video", "read -P 0 4k 64k");
    assert!(!other.contains("failed"), "what is one class's is not the other's: {other}");
    assert!(qemu("video", "length").1.contains("64 MiB"));
    assert!(!qemu("nobody", "length").0);
    let (_, outside) = qemu("video", "read 64M 4k");
    assert!(!outside.contains("read 4096/4096"), "{outside}");
    let stats = server.control().live().unwrap();
    let text = stats.classes.iter().find(|class| class.name == "text").unwrap();
    assert!(text.requests >= 2 && stats.heads.len() == 3, "{stats:?}");
}

#[test]
fn who_asks_is_told_by_the_file_and_by_the_socket() {
    let test = "who_asks_is_told_by_the_file_and_by_the_socket";
    if skip(test) || lacks(test, "ionice") || lacks(test, "dd") {
        return;
    }
    let server = Server::start(
        "{name: callers, profile: \"null\", size_mib: 16, live: {policy: sfq, exports: [file],
          classes: [{name: idle, ioprio: idle}, {name: usual}]}}",
    );
    let copy = |program: &str, arguments: &[&str]| {
        let input = format!("if={}", server.state.file.display());
        let dd = ["dd", &input, "of=/dev/null", "bs=64k", "count=10"];
        let output = Command::new(program).args(arguments).args(dd).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    let requests = || {
        let stats = server.control().live().unwrap();
        stats.classes.iter().map(|class| class.requests).collect::<Vec<_>>()
    };
    copy("env", &[]);
    let [0, usual] = requests()[..] else { panic!("{:?}", requests()) };
    assert!(usual >= 10);
    copy("ionice", &["-c3"]);
    assert_eq!(requests(), [usual, usual]);
}

/// Kills of a server under load: 3, or WEIR_KILLS.
#[test]
fn a_killed_server_has_lost_no_acknowledged_write() {
    let test = "a_killed_server_has_lost_no_acknowledged_write";
    if skip(test) {
        return;
    }
    let kills: u64 = std::env::var("WEIR_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(3);
    let mut rng = ChaCha8Rng::seed_from_u64(kills);
    for kill in 0..kills {
        let folder = folder();
        let (yaml, file) = if kill % 2 == 0 {
            target(&folder, "a", 64);
            ("profile: hdd-15k, live: {policy: sfq, queue_depth: 8, targets: [a]}", "a")
        } else {
            ("profile: ssd-sata, backing: ./a, live: {policy: c-look}", "a")
        };
        let mut server = Server::start_in(folder, &format!("{{name: killed, size_mib: 64, {yaml}}}"));
        let after = Duration::from_millis(rng.random_range(20..250));
        let acknowledged = write_until_killed(&mut server, after);
        assert!(acknowledged.iter().any(|number| *number > 0), "nothing was written in {after:?}");
        check_file(&server.folder().join(file), &acknowledged);
        let start = Instant::now();
        let report = down(&server.state_file).unwrap();
        assert!(report.left.is_empty() && start.elapsed() < Duration::from_secs(10), "{report:?}");
        server.assert_gone();
        // The file can be served again.
        check_file(&server.folder().join(file), &acknowledged);
    }
}

/// Blocks of each writer, written in turn.
const BLOCKS: u64 = 64;
const WRITERS: u64 = 4;

/// Four writers, each fills its blocks with increasing numbers, flushes every 16th time, and records the last
/// acknowledged number of each block.
fn write_until_killed(server: &mut Server, after: Duration) -> Vec<u64> {
    let device = server.open();
    let writer = |writer: u64| {
        let mut last = vec![0u64; BLOCKS as usize];
        for number in 1u64.. {
            let block = number % BLOCKS;
            let data: Vec<u8> = number.to_le_bytes().repeat(512);
            if write_at(&device, (writer * BLOCKS + block) * 4096, &data).is_err() {
                break;
            }
            last[block as usize] = number;
            if number % 16 == 0 && device.sync_data().is_err() {
                break;
            }
        }
        last
    };
    thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS).map(|number| scope.spawn(move || writer(number))).collect();
        thread::sleep(after);
        server.kill();
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
    })
}

/// Every block holds its acknowledged number, or the number of the write that was outstanding when the server died.
fn check_file(path: &Path, acknowledged: &[u64]) {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(path).unwrap();
    let mut pages = Pages::new(acknowledged.len() * 4096);
    file.read_exact_at(pages.bytes(), 0).unwrap();
    for ((at, wanted), block) in acknowledged.iter().enumerate().zip(pages.bytes().chunks(4096)) {
        let numbers: Vec<u64> = block.chunks(8).map(|n| u64::from_le_bytes(n.try_into().unwrap())).collect();
        assert!(
            numbers.iter().all(|number| number == wanted
                || *number == wanted + BLOCKS
                || (*wanted == 0 && *number <= BLOCKS)),
            "block {at}: {wanted} was acknowledged, and there is {:?}",
            &numbers[..4]
        );
    }
}

#[test]
fn a_spec_that_cannot_be_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("small"), [0; 4096]).unwrap();
    let refused = |live: &str, word: &str| {
        let yaml = format!("{{name: bad, profile: \"null\", size_mib: 16, live: {{{live}}}}}");
        let error = ServeSpec::parse(&yaml, "bad.yml", folder.path()).unwrap_err();
        assert!(error.is_bad_input());
        let text = error.to_string();
        assert!(text.contains("live") && text.contains(word), "{text}");
    };
    refused("policy: fcsf", "did you mean `fcfs`");
    refused("policy: fcfs depth=3", "no setting `depth`");
    refused("policy: fcfs, queue_depth: 0", "1 to 128");
    refused("policy: fcfs, exports: []", "loop, file, ublk and nbd");
    refused("policy: fcfs, exports: [loop, ublk]", "Keep one of them");
    refused(
        "policy: fcfs, layout: partitioned, exports: [ublk, file], classes: [{name: a}]",
        "may be only nbd and ublk",
    );
    refused("policy: fcfs, classes: [{name: a, range_mib: [0, 17]}]", "classes.0.range_mib");
    for extents in ["[[0, 0]]", "[[4096, 8192], [0, 4096]]", "[[0, 8192], [4096, 12288]]", "[[0, 16777217]]"]
    {
        refused(
            &format!("policy: fcfs, classes: [{{name: a, extents_bytes: {extents}}}]"),
            "classes.0.extents_bytes",
        );
    }
    refused(
        "policy: fcfs, classes: [{name: a, range_mib: [0, 1], extents_bytes: [[0, 1]]}]",
        "classes.0.extents_bytes",
    );
    refused("policy: fcfs, targets: [nowhere]", "nowhere");
    refused("policy: fcfs, targets: [small]", "4096 bytes");
    refused("policy: fcfs, targets: [small, small]", "`heads` is 1");
    refused("policy: fcfs, layout: partitioned, exports: [nbd]", "needs classes");
    refused(
        "policy: deltal, classes: [{name: a, wants: real_time, contract: {cost_ms: 9, period_ms: 10, streams: 2}}]",
        "cannot be guaranteed",
    );
}
