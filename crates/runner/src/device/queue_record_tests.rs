use std::process::Command;

use super::*;

/// A loop device over memory; as it was, and detached, when dropped.
struct Loop {
    name: String,
    before: QueueSettings,
    _file: tempfile::NamedTempFile,
}

fn attach() -> Option<Loop> {
    let file = tempfile::NamedTempFile::new_in("/dev/shm").ok()?;
    file.as_file().set_len(16 << 20).ok()?;
    let output = Command::new("losetup").args(["--find", "--show"]).arg(file.path()).output().ok()?;
    let node = String::from_utf8(output.stdout).ok()?;
    let name = node.trim().strip_prefix("/dev/")?.to_owned();
    let before = QueueSettings::read(&name).ok()?;
    Some(Loop { name, before, _file: file })
}

impl Loop {
    fn set(&self, name: &str, value: &str) {
        fs::write(format!("/sys/block/{}/queue/{name}", self.name), value).unwrap();
    }

    fn detach(&self) {
        Command::new("losetup").arg("--detach").arg(format!("/dev/{}", self.name)).status().unwrap();
    }

    /// The record as a process that died would have left it.
    fn disown(&self, state: &Path) {
        let path = file(state, &self.name);
        let mut record = read(&path).unwrap().unwrap();
        record.owner.started_ticks += 1;
        fs::write(&path, serde_json::to_vec(&record).unwrap()).unwrap();
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = self.before.put_back();
        self.detach();
    }
}

/// Requests that the driver takes at once, with a scheduler or without.
fn tags(disk: &str) -> Option<u32> {
    let script = "mount --make-rprivate / && mount -t debugfs none /sys/kernel/debug && cat \"/sys/kernel/debug/block/$0/hctx0/tags\"";
    let output = Command::new("unshare").args(["--mount", "sh", "-c", script, disk]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines().find_map(|line| line.strip_prefix("depth=")?.parse().ok())
}

/// As a run sets a queue.
fn set_by_run(disk: &Loop, state: &Path) {
    let ours =
        [("scheduler", "none"), ("scheduler", "mq-deadline"), ("read_ahead_kb", "64"), ("nomerges", "2")];
    note(state, &disk.name, &ours.map(|(name, value)| (name, value.to_owned()))).unwrap();
    for (name, value) in [
        ("scheduler", "none"),
        ("nr_requests", "5"),
        ("nr_requests", "4"),
        ("scheduler", "mq-deadline"),
        ("nr_requests", "256"),
        ("read_ahead_kb", "64"),
        ("nomerges", "2"),
    ] {
        disk.set(name, value);
    }
}

macro_rules! device_or_skip {
    () => {
        match attach() {
            Some(disk) => disk,
            None => {
                eprintln!("skipped: needs root and loop devices");
                return;
            }
        }
    };
}

#[test]
fn a_queue_and_its_tags_are_as_before_after_a_run_that_died() {
    let (disk, state) = (device_or_skip!(), tempfile::tempdir().unwrap());
    for scheduler in ["mq-deadline", "none"] {
        disk.set("scheduler", scheduler);
        let before = QueueSettings::read(&disk.name).unwrap();
        let tags_before = tags(&disk.name);
        set_by_run(&disk, state.path());
        assert!(tags_before.is_none() || tags(&disk.name) == Some(4));
        disk.disown(state.path());
        assert_eq!(put_back(state.path()).unwrap().undone, [format!("queue of {}", disk.name)]);
        assert_eq!(QueueSettings::read(&disk.name).unwrap(), before);
        assert_eq!(tags(&disk.name), tags_before, "{scheduler}");
        assert_eq!(put_back(state.path()).unwrap(), PutBack::default());
    }
}

#[test]
fn a_queue_that_somebody_else_has_set_since_is_left() {
    let (disk, state) = (device_or_skip!(), tempfile::tempdir().unwrap());
    for (name, value) in [("scheduler", "kyber"), ("read_ahead_kb", "1024")] {
        let before = QueueSettings::read(&disk.name).unwrap();
        set_by_run(&disk, state.path());
        disk.set(name, value);
        let found = put_back(state.path()).unwrap();
        assert!(
            found.undone.is_empty() && found.left[0].contains(&format!("{name} is {value}")),
            "{found:?}"
        );
        assert!(!file(state.path(), &disk.name).exists());
        before.put_back().unwrap();
    }
}

#[test]
fn another_disk_under_the_same_name_is_not_touched() {
    let (disk, state) = (device_or_skip!(), tempfile::tempdir().unwrap());
    set_by_run(&disk, state.path());
    disk.detach();
    let again =
        Command::new("losetup").arg(format!("/dev/{}", disk.name)).arg(disk._file.path()).status().unwrap();
    assert!(again.success());
    disk.set("read_ahead_kb", "512");
    assert_eq!(put_back(state.path()).unwrap(), PutBack::default());
    assert_eq!(QueueSettings::read(&disk.name).unwrap().others.last().unwrap().1, "512");
}

#[test]
fn a_damaged_record_is_named_and_kept() {
    let state = tempfile::tempdir().unwrap();
    fs::create_dir(state.path().join(FOLDER)).unwrap();
    let path = file(state.path(), "loop0");
    for text in [
        "",
        "{}",
        r#"{"owner":{"pid":1,"started_ticks":1},"before":{"disk":"../sda","sequence":null,"scheduler":"none","requests":1,"others":[]},"ours":[]}"#,
    ] {
        fs::write(&path, text).unwrap();
        assert!(put_back(state.path()).unwrap_err().to_string().contains("queues/loop0.json"));
        assert!(path.exists());
    }
}
