//! Processes are written down, limited and ended; also by somebody else after a crash.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use weir_daemons::process::{self, Identity, Launch};
use weir_daemons::{Error, Group, Scope, stop_all};

fn possible() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        eprintln!("skipped: control groups and users need root");
    }
    root
}

fn shell(state: &Path, name: &str, script: &str) -> Launch {
    Launch {
        name: name.to_owned(),
        scope: Scope::Run,
        program: PathBuf::from("/bin/sh"),
        arguments: vec!["-c".to_owned(), script.to_owned()],
        folder: PathBuf::from("/"),
        namespace: None,
        user: None,
        log: state.join("log"),
        stop_signal: libc::SIGTERM,
        stop_limit_ms: 200,
        mounts: None,
        group: Group::of_state(state).within(name),
    }
}

/// Taken away, whatever a test does.
struct State(tempfile::TempDir);

impl State {
    fn new() -> Self {
        State(tempfile::tempdir().unwrap())
    }
}

impl Drop for State {
    fn drop(&mut self) {
        let _ = stop_all(self.0.path(), |_| true);
        let _ = Group::of_state(self.0.path()).remove();
    }
}

fn wait_for(condition: impl Fn() -> bool) {
    for _ in 0..500 {
        if condition() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("waited 5 s in vain");
}

#[test]
fn several_state_folders_make_and_remove_groups_at_once() {
    if !possible() {
        return;
    }
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let folder = State::new();
                let group = Group::of_state(folder.0.path());
                for _ in 0..200 {
                    group.within("run").make().unwrap();
                    // It removes the parents too if no other state folder has a group.
                    group.remove().unwrap();
                }
            });
        }
    });
}

#[test]
fn a_process_and_all_that_it_started_end() {
    if !possible() {
        return;
    }
    let folder = State::new();
    let state = folder.0.path();
    // A child in a session of its own, as a daemon makes it, and a program that does not listen to TERM.
    let launch = shell(state, "stubborn", "trap '' TERM; setsid sleep 1000 & while :; do sleep 0.05; done");
    let identity = process::start(state, &launch).unwrap();
    assert!(identity.is_alive());
    wait_for(|| launch.group.processes().len() >= 2);
    let again = process::start(state, &launch);
    assert!(matches!(again, Err(Error::Refused(_))), "{again:?}");
    let children: Vec<i32> = launch.group.processes();
    let found = process::find(state, "stubborn").unwrap().unwrap();
    assert_eq!(found.identity, Some(identity));
    let ended = process::stop(state, &found).unwrap().unwrap();
    assert!(ended.killed && ended.pid == identity.pid);
    wait_for(|| children.iter().all(|pid| !Path::new(&format!("/proc/{pid}")).exists()));
    assert_eq!(process::find(state, "stubborn").unwrap(), None);
    assert_eq!(process::all(state).unwrap(), []);
}

#[test]
fn what_somebody_else_has_mounted_at_a_client_s_point_is_left() {
    if !possible() {
        return;
    }
    let folder = State::new();
    let state = folder.0.path();
    let point = state.join("mnt");
    fs::create_dir(&point).unwrap();
    let run = |words: &[&str]| Command::new(words[0]).args(&words[1..]).status().unwrap().success();
    let text = point.to_str().unwrap();
    let launch = Launch { mounts: Some(point.clone()), ..shell(state, "client", "exec sleep 1000") };
    process::start(state, &launch).unwrap();
    if !run(&["mount", "-t", "tmpfs", "of-the-user", text]) {
        eprintln!("skipped: mounting needs more than root");
        return;
    }
    fs::write(point.join("a"), "kept").unwrap();
    let left = stop_all(state, |_| true).unwrap_err();
    assert!(left.to_string().contains("tmpfs is mounted there"), "{left}");
    assert_eq!(fs::read_to_string(point.join("a")).unwrap(), "kept");
    assert!(run(&["umount", text]));
    assert_eq!(stop_all(state, |_| true).unwrap().len(), 1);
}

#[test]
fn what_was_written_down_is_found_by_another_process_and_a_used_number_is_left_alone() {
    if !possible() {
        return;
    }
    let folder = State::new();
    let state = folder.0.path();
    let identity = process::start(state, &shell(state, "sleeper", "exec sleep 1000")).unwrap();
    // Somebody who only has the state folder.
    let found = process::all(state).unwrap();
    assert_eq!(found.iter().map(|process| process.identity).collect::<Vec<_>>(), [Some(identity)]);
    // A number that was used again: this very process, said to have started at another time.
    let mut stranger = shell(state, "stranger", "true");
    stranger.group = Group::of_state(state).within("stranger");
    let entry = process::Process {
        launch: stranger,
        identity: Some(Identity { pid: std::process::id(), started_ticks: 1 }),
    };
    assert_eq!(process::stop(state, &entry).unwrap(), None);
    let lines = stop_all(state, |scope| scope == Scope::Run).unwrap();
    assert_eq!(lines, [format!("process sleeper (pid {})", identity.pid)]);
    assert!(!identity.is_alive());
}

#[test]
fn a_program_that_is_not_there_leaves_nothing_behind() {
    if !possible() {
        return;
    }
    let folder = State::new();
    let state = folder.0.path();
    let launch = Launch { program: "/no/such/program".into(), ..shell(state, "absent", "") };
    let error = process::start(state, &launch).unwrap_err();
    assert!(error.to_string().contains("not installed"), "{error}");
    assert_eq!(process::find(state, "absent").unwrap(), None);
    assert_eq!(launch.group.processes(), Vec::<i32>::new());
}

#[test]
fn it_runs_as_its_user_in_its_namespace() {
    if !possible() {
        return;
    }
    let folder = State::new();
    let state = folder.0.path();
    let user = weir_daemons::User::find("nobody").unwrap();
    let namespace = PathBuf::from("/proc/self/ns/net");
    let launch = Launch {
        user: Some(user.clone()),
        namespace: Some(namespace),
        ..shell(state, "who", "id -u; id -G; exec sleep 1000")
    };
    process::start(state, &launch).unwrap();
    wait_for(|| fs::read_to_string(&launch.log).unwrap_or_default().lines().count() == 2);
    let said = fs::read_to_string(&launch.log).unwrap();
    assert_eq!(said, format!("{}\n{}\n", user.uid, user.gid));
}

#[test]
fn pages_of_files_count_and_stay_below_the_limit() {
    if !possible() {
        return;
    }
    let folder = State::new();
    let state = folder.0.path();
    let file = folder.0.path().join("file");
    fs::write(&file, vec![1; 48 << 20]).unwrap();
    let synced = Command::new("sync").arg(&file).status().unwrap().success();
    let dropped = Command::new("dd")
        .args(["of=/dev/null", "iflag=nocache", "count=0"])
        .arg(format!("if={}", file.display()))
        .output();
    assert!(synced && dropped.unwrap().status.success());
    // Reading takes less than a tick of the processor on some machines, and version 1 counts ticks: hence the counting.
    let counts = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
    let script = format!("cat {} > /dev/null; {counts}; echo done; exec sleep 1000", file.display());
    let launch = shell(state, "reader", &script);
    launch.group.make().unwrap();
    if let Err(error) = launch.group.limit_memory(16 << 20) {
        eprintln!("skipped: {error}");
        return;
    }
    process::start(state, &launch).unwrap();
    wait_for(|| fs::read_to_string(&launch.log).unwrap_or_default().contains("done"));
    let memory = || launch.group.memory().unwrap();
    assert_eq!(memory().limit_bytes, Some(16 << 20));
    assert!(memory().used_bytes <= 16 << 20, "{:?}", memory());
    // What it read is charged to it; the kernel adds that up every two seconds.
    wait_for(|| memory().cache_bytes > 4 << 20);
    let cpu = launch.group.cpu().unwrap();
    assert!(cpu.user_ns + cpu.system_ns > 0);
}

#[test]
fn a_group_that_has_too_much_is_made_smaller_and_larger_again() {
    if !possible() {
        return;
    }
    let folder = State::new();
    let state = folder.0.path();
    let data = state.join("data");
    fs::create_dir(&data).unwrap();
    fs::write(data.join("file"), vec![7; 24 << 20]).unwrap();
    // Pages belong to who brought them in.
    let left = weir_host::page_cache::drop_folder(&data).unwrap();
    let script = format!("cat {} > /dev/null; exec sleep 1000", data.join("file").display());
    let launch = shell(state, "reader", &script);
    process::start(state, &launch).unwrap();
    let group = &launch.group;
    let Some(memory) = group.memory() else {
        eprintln!("skipped: this host does not count memory of control groups");
        return;
    };
    assert_eq!(memory.limit_bytes, None);
    if left.cached_bytes > 0 {
        eprintln!("skipped: temporary files lie in memory here");
        return;
    }
    wait_for(|| group.memory().is_some_and(|memory| memory.cache_bytes >= 24 << 20));
    group.shrink_memory(12 << 20).unwrap();
    let memory = group.memory().unwrap();
    assert!(memory.limit_bytes == Some(12 << 20) && memory.used_bytes <= 12 << 20, "{memory:?}");
    assert!(process::find(state, "reader").unwrap().unwrap().identity.unwrap().is_alive());
    let impossible = group.shrink_memory(4096);
    assert!(impossible.is_err_and(|error| error.to_string().contains("Allow more memory")));
    group.restore_memory(memory.limit_bytes).unwrap();
    assert_eq!(group.memory().unwrap().limit_bytes, Some(12 << 20));
    group.restore_memory(None).unwrap();
    assert_eq!(group.memory().unwrap().limit_bytes, None);
    process::stop(state, &process::find(state, "reader").unwrap().unwrap()).unwrap();
    assert!(group.memory().is_none() && group.restore_memory(None).is_ok(), "one that is gone has no limit");
}
