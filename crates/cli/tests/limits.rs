//! The binary with input that nobody meant: a line that says what is wrong and exit code 2, never an abort or a panic.

use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Of one process. What was refused asked for far more.
const MEMORY_BYTES: u64 = 4 << 30;
/// Coarse: all of these take less than a second on a quiet machine.
const LONGEST: Duration = Duration::from_secs(30);

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn weir(arguments: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.args(arguments).current_dir(folder).env("WEIR_ROOT", root()).stdin(Stdio::null());
    // SAFETY: setrlimit is async-signal-safe, and its argument lives through the call.
    unsafe {
        command.pre_exec(|| {
            let limit = libc::rlimit { rlim_cur: MEMORY_BYTES, rlim_max: MEMORY_BYTES };
            if libc::setrlimit(libc::RLIMIT_AS, &raw const limit) == 0 {
                Ok(())
            } else {
                Err(std::io::Error::last_os_error())
            }
        });
    }
    command.output().unwrap()
}

/// What is said on standard error of input that is refused with exit code 2.
fn refused(arguments: &[&str], folder: &Path) -> String {
    let began = Instant::now();
    let done = weir(arguments, folder);
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    let code = (done.status.code(), done.status.signal());
    assert_eq!(code, (Some(2), None), "{arguments:?}: {said}");
    assert!(!said.contains("panicked") && !said.trim().is_empty(), "{arguments:?}: {said}");
    assert!(began.elapsed() < LONGEST, "{arguments:?}: {:?}", began.elapsed());
    said
}

const STUDY: &str = "\
name: trial
question: Does it work?
testbed: [device, simulator]
seed: 7
repetitions: 1
warmup_s: 1
duration_s: 5
storage: {profile: hdd-7200, heads: 2, size_mib: 1024}
classes:
  text: {workload: poisson-text, clients: 10, with: {files.count: 64}}
factors:
  scheduler: [none]
";

#[test]
fn a_study_beyond_the_limits_is_refused_by_every_command_that_reads_one() {
    let folder = tempfile::tempdir().unwrap();
    for (from, to, said) in [
        ("clients: 10", "clients: 4000000000", "trial.yml:10: classes.text.clients: make about"),
        (
            "files.count: 64",
            "files.count: 4294967295",
            "trial.yml:10: classes.text.with.files.count: is 4294967295;",
        ),
        ("repetitions: 1", "repetitions: 1000000000", "trial.yml:11: factors: make 2000000000 runs"),
    ] {
        std::fs::write(folder.path().join("trial.yml"), STUDY.replace(from, to)).unwrap();
        for command in ["check", "plan", "simulate"] {
            let found = refused(&[command, "trial.yml"], folder.path());
            assert!(found.contains(said), "{command}: {found}");
        }
    }
}

#[test]
fn a_stream_beyond_the_limits_is_not_begun() {
    let folder = tempfile::tempdir().unwrap();
    let generate = |workload: &str, clients: &str, seconds: &str| {
        let arguments =
            ["generate", workload, "--clients", clients, "--duration-s", seconds, "--out", "o.parquet"];
        refused(&arguments, folder.path())
    };
    let found = generate("poisson-text", "4294967295", "10");
    assert!(
        found
            .contains("--clients 4294967295 for --duration-s 10: poisson-text makes about 4.295e10 requests"),
        "{found}"
    );
    let found = generate("poisson-text", "4294967295", "0.001");
    assert!(found.contains("of memory in one run; at most 16.0 GiB are used"), "{found}");
    assert!(generate("tpcw-browsing", "4294967295", "100").contains("at most 1e9"));
    assert!(generate("cello-1992-06-01", "4294967295", "1").contains("at most"));
    assert!(!folder.path().join("o.parquet").exists());
}

#[test]
fn a_run_or_plan_from_a_file_is_checked_as_well() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("trial.yml"), STUDY).unwrap();
    let plan = weir(&["plan", "trial.yml", "--json"], folder.path());
    let plan: serde_json::Value = serde_json::from_slice(&plan.stdout).unwrap();
    assert_eq!(plan["largest_run"]["requests"], 60);
    let mut changed = plan.clone();
    for run in changed["runs"].as_array_mut().unwrap() {
        run["classes"][0]["clients"] = 4_000_000_000_u32.into();
    }
    std::fs::write(folder.path().join("plan.json"), changed.to_string()).unwrap();
    assert!(refused(&["simulate", "plan.json"], folder.path()).contains("class text: clients: make about"));
    std::fs::write(folder.path().join("run.json"), changed["runs"][0].to_string()).unwrap();
    let run = ["run", "run.json", "--testbed", "none.json", "--results", "results"];
    assert!(refused(&run, folder.path()).contains("clients: "));
    let mut changed = plan["runs"][0].clone();
    changed["devices"][0]["size_mib"] = u64::MAX.into();
    std::fs::write(folder.path().join("run.json"), changed.to_string()).unwrap();
    assert!(refused(&run, folder.path()).contains("devices.size_mib: is 18446744073709551615"));
}

/// Files that are none of what a command reads: without an end, too large, too deep, binary, empty, a folder, absent.
#[test]
fn whatever_file_a_command_is_given_it_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, bytes: &[u8]| {
        std::fs::write(folder.path().join(name), bytes).unwrap();
        name.to_owned()
    };
    std::fs::File::create(folder.path().join("large")).unwrap().set_len(1 << 30).unwrap();
    std::fs::create_dir(folder.path().join("folder.yml")).unwrap();
    let files = [
        "/dev/zero".to_owned(),
        put("deep.yml", &vec![b'['; 100_000]),
        put("binary.yml", &[0xff, 0, 0x80, b'\n'].repeat(100)),
        put("empty.yml", b""),
        "large".to_owned(),
        "folder.yml".to_owned(),
        "absent.yml".to_owned(),
    ];
    for file in &files {
        let file = file.as_str();
        refused(&["check", file], folder.path());
        refused(&["admit", file], folder.path());
        refused(&["serve", file], folder.path());
        refused(&["plan", &format!("./{file}")], folder.path());
        refused(&["join", file, "--hosts", "a", "--results", "results"], folder.path());
        refused(&["run", file, "--testbed", "t.json", "--results", "results"], folder.path());
        refused(&["workload", "calibrate", &format!("./{file}")], folder.path());
    }
}

#[test]
fn numbers_that_nobody_meant_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("one.spc"), "0,0,512,R,0\n").unwrap();
    let huge = u64::MAX.to_string();
    for arguments in [
        &["trace", "filter", "one.spc", "--cache", "lru", "--cache-mib", &huge, "--out", "o.parquet"][..],
        &["trace", "stat", "one.spc", "--block-bytes", "0"],
        &["trace", "stat", "one.spc", "--sort", "--sort-memory-mib", &huge],
        &["trace", "filter", "one.spc", "--from", "1e400", "--out", "o.parquet"],
        &["disks", "times", "hdd-7200", "--requests", "4294967295"],
        &["fsbench", ".", "--sizes", "18446744073709551615"],
        &["fsbench", ".", "--files", "4294967295"],
        &["fsbench", ".", "--repeat", "4294967295"],
        &["site", "load", "--benchmark", "tpcw", "--database", "postgresql:///a?user=u", "--items", &huge],
        &["site", "load", "--benchmark", "tpcw", "--database", "postgresql:///a?user=u", "--browsers", &huge],
        &["site", "load", "--benchmark", "rubis", "--database", "postgresql:///a?user=u", "--scale", "1e300"],
        &[
            "browse",
            "http://127.0.0.1:1/",
            "--workload",
            "zipf-class0",
            "--clients",
            "4294967295",
            "--out",
            "o.parquet",
        ],
        &[
            "browse",
            "http://127.0.0.1:1/",
            "--workload",
            "zipf-class0",
            "--threads",
            &huge,
            "--out",
            "o.parquet",
        ],
        &[
            "browse",
            "http://127.0.0.1:1/",
            "--workload",
            "zipf-class0",
            "--with",
            "files.count=4294967295",
            "--out",
            "o.parquet",
        ],
        &["documents", "zipf-class0", "--with", "files.count=4294967295", "--out", "documents"],
        &["simulate", "quick", "--jobs", &huge, "--shard", "0/0"],
        &["simulate", "quick", "--shard", "4294967296/4294967296"],
    ] {
        refused(arguments, folder.path());
    }
}

/// As `weir list workloads | head -1` does, whatever the command that prints.
#[test]
fn a_reader_that_leaves_ends_a_command_quietly() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("trial.yml"), STUDY).unwrap();
    std::fs::write(folder.path().join("one.spc"), "0,0,512,R,0\n".repeat(100)).unwrap();
    for arguments in [
        &["list", "workloads"][..],
        &["list", "profiles", "--json"],
        &["plan", "trial.yml", "--json"],
        &["check", "trial.yml"],
        &["schema", "study"],
        &["trace", "formats"],
        &["trace", "stat", "one.spc"],
        &["trace", "list"],
        &["service", "list"],
        &["workload", "statistics"],
        &["disks", "times", "hdd-7200", "--requests", "10"],
        &["trace", "convert", "one.spc", "--to", "iolog", "--out", "o.iolog"],
        &["generate", "poisson-text", "--duration-s", "1", "--out", "o.parquet"],
        &["simulate", "trial.yml"],
        &["--help"],
        &["--version"],
    ] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_weir"))
            .args(arguments)
            .current_dir(folder.path())
            .env("WEIR_ROOT", root())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let done = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(!said.contains("panicked") && !said.contains("Broken pipe"), "{arguments:?}: {said}");
        let ended = done.status.signal() == Some(libc::SIGPIPE) || done.status.code() == Some(141);
        let quiet = ended || done.status.success();
        assert!(quiet, "{arguments:?}: {:?} {said}", done.status);
    }
}

#[test]
fn an_output_that_is_full_is_an_error() {
    for arguments in [&["list", "workloads"][..], &["plan", "quick", "--json"], &["schema", "study"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let done = Command::new(env!("CARGO_BIN_EXE_weir"))
            .args(arguments)
            .env("WEIR_ROOT", root())
            .stdout(full)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(1), "{arguments:?}: {said}");
        assert!(
            said.contains("No space left on device") && !said.contains("panicked"),
            "{arguments:?}: {said}"
        );
    }
}
