use super::*;

const KERNEL: [(&str, &[(&str, &str)]); 3] =
    [("none", &[]), ("mq-deadline", &[("read_expire", "500")]), ("bfq", &[("low_latency", "1")])];

/// A kernel of files: it offers three schedulers, gives each its tunables anew, and makes 4 of a read-ahead of 7.
fn write(file: &Path, value: &str) -> io::Result<()> {
    let name = file.file_name().unwrap().to_string_lossy().into_owned();
    let folder = file.parent().unwrap();
    let log = folder.ancestors().find(|folder| folder.join("written").exists());
    if let Some(log) = log.map(|folder| folder.join("written")) {
        let text = fs::read_to_string(&log)?;
        fs::write(log, format!("{text}{name}={value}\n"))?;
    }
    if name != "scheduler" {
        return fs::write(file, if (name.as_str(), value) == ("read_ahead_kb", "7") { "4" } else { value });
    }
    let (_, tunables) =
        KERNEL.iter().find(|(scheduler, _)| *scheduler == value).ok_or(io::ErrorKind::InvalidInput)?;
    fs::remove_dir_all(folder.join("iosched"))?;
    fs::create_dir(folder.join("iosched"))?;
    tunables.iter().try_for_each(|(name, value)| fs::write(folder.join("iosched").join(name), value))?;
    let words = KERNEL.map(|(name, _)| if name == value { format!("[{name}]") } else { name.to_owned() });
    fs::write(file, words.join(" "))
}

struct Disk {
    place: tempfile::TempDir,
    record: PathBuf,
}

impl Disk {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let queue = place.path().join("sda/queue");
        fs::create_dir_all(queue.join("iosched")).unwrap();
        write(&queue.join("scheduler"), "mq-deadline").unwrap();
        for (file, value) in [
            ("queue/iosched/read_expire", "400"),
            ("queue/nr_requests", "256"),
            ("queue/read_ahead_kb", "128"),
            ("diskseq", "7"),
        ] {
            fs::write(place.path().join("sda").join(file), value).unwrap();
        }
        let record = place.path().join("record/sda.json");
        Disk { place, record }
    }

    fn sys(&self) -> Sys {
        Sys { block: self.place.path().to_owned(), write }
    }

    fn says(&self, file: &str) -> String {
        let text = fs::read_to_string(self.place.path().join("sda/queue").join(file)).unwrap();
        selected(&text).to_owned()
    }

    fn set(&self, wanted: &str) -> Result<Change, Error> {
        set_in(&self.sys(), &serde_json::from_str(wanted).unwrap(), &self.record, false)
    }

    fn check(&self, wanted: &str) -> Change {
        set_in(&self.sys(), &serde_json::from_str(wanted).unwrap(), &self.record, true).unwrap()
    }

    fn restore(&self) -> Result<Change, Error> {
        restore_in(&self.sys(), &self.record, false)
    }

    #[track_caller]
    fn is_as_before(&self) {
        let found =
            ["scheduler", "iosched/read_expire", "read_ahead_kb", "nr_requests"].map(|file| self.says(file));
        assert_eq!(found, ["mq-deadline", "400", "128", "256"]);
    }
}

#[test]
fn a_queue_is_set_once_and_restored() {
    let disk = Disk::new();
    let wanted = r#"{"disk": "sda", "scheduler": "bfq", "tunables": {"low_latency": 0}, "queue": {"read_ahead_kb": "64"}}"#;
    let checked = disk.check(wanted);
    assert!(checked.changed && !disk.record.exists());
    disk.is_as_before();
    let done = disk.set(wanted).unwrap();
    assert_eq!((done.changed, &done.before, &done.after), (true, &checked.before, &checked.after));
    assert!(!disk.set(wanted).unwrap().changed && !disk.check(wanted).changed);
    assert_eq!((disk.says("scheduler"), disk.says("iosched/low_latency")), ("bfq".into(), "0".into()));
    // A later change keeps the record of the first one.
    let later = disk.set(r#"{"disk": "sda", "scheduler": "none"}"#).unwrap();
    assert_eq!(later.before.unwrap().scheduler, "bfq");
    assert_eq!(later.recorded, done.before);
    let checked = restore_in(&disk.sys(), &disk.record, true).unwrap();
    assert!(checked.changed && disk.record.exists() && disk.says("scheduler") == "none");
    assert!(disk.restore().unwrap().changed && !disk.record.exists());
    disk.is_as_before();
    assert_eq!(disk.restore().unwrap(), Change::default());
}

#[test]
fn a_record_without_a_change_behind_it_restores_the_same() {
    let disk = Disk::new();
    disk.set(r#"{"disk": "sda", "scheduler": "bfq", "queue": {"read_ahead_kb": 64}}"#).unwrap();
    let text = fs::read_to_string(&disk.record).unwrap();
    disk.restore().unwrap();
    // As after a kill between the record and the first setting.
    fs::write(&disk.record, text).unwrap();
    disk.restore().unwrap();
    disk.is_as_before();
}

#[test]
fn a_value_that_is_asked_for_later_is_recorded_then() {
    let disk = Disk::new();
    disk.set(r#"{"disk": "sda", "scheduler": "bfq"}"#).unwrap();
    disk.set(r#"{"disk": "sda", "queue": {"read_ahead_kb": 64}}"#).unwrap();
    disk.restore().unwrap();
    disk.is_as_before();
}

#[test]
fn tags_of_the_driver_are_restored_under_a_scheduler() {
    let disk = Disk::new();
    fs::create_dir_all(disk.place.path().join("sda/mq/0")).unwrap();
    fs::write(disk.place.path().join("sda/mq/0/nr_tags"), "128\n").unwrap();
    disk.set(r#"{"disk": "sda", "scheduler": "none", "queue": {"nr_requests": 4}}"#).unwrap();
    disk.set(r#"{"disk": "sda", "scheduler": "bfq"}"#).unwrap();
    let log = disk.place.path().join("written");
    fs::write(&log, "").unwrap();
    disk.restore().unwrap();
    let written = fs::read_to_string(log).unwrap();
    let tags = "scheduler=none\nnr_requests=127\nnr_requests=128\nscheduler=mq-deadline\n";
    assert!(written.starts_with(tags), "{written}");
    disk.is_as_before();
}

#[test]
fn a_scheduler_that_another_program_has_set_is_left() {
    let disk = Disk::new();
    disk.set(r#"{"disk": "sda", "scheduler": "bfq"}"#).unwrap();
    write(&disk.place.path().join("sda/queue/scheduler"), "none").unwrap();
    let error = disk.restore().unwrap_err();
    assert!(error.is_refusal() && error.to_string().contains("another program set none"), "{error}");
    assert!(disk.says("scheduler") == "none" && disk.record.exists());
}

#[test]
fn another_disk_under_the_same_name_is_left() {
    let disk = Disk::new();
    disk.set(r#"{"disk": "sda", "scheduler": "bfq"}"#).unwrap();
    fs::write(disk.place.path().join("sda/diskseq"), "8").unwrap();
    let done = disk.restore().unwrap();
    assert!(done.changed && done.before.is_none() && !disk.record.exists());
    assert_eq!(disk.says("scheduler"), "bfq");
}

#[test]
fn a_queue_that_cannot_be_is_refused_and_left_as_it_was() {
    for (fields, why) in [
        (r#""scheduler": "adios""#, "adios is not in this kernel (it has none, mq-deadline, bfq)"),
        (r#""tunables": {"no_such": 1}"#, "has no iosched/no_such (it has read_expire)"),
        (r#""scheduler": "bfq", "tunables": {"read_expire": 1}"#, "has no iosched/read_expire"),
        (r#""queue": {"../x": 1}"#, "\"../x\" is no name of a setting"),
        (r#""scheduler": "bfq", "queue": {"read_ahead_kb": 7}"#, "found 4, expected 7"),
    ] {
        let disk = Disk::new();
        let error = disk.set(&format!(r#"{{"disk": "sda", {fields}}}"#)).unwrap_err();
        assert!(error.is_refusal() && error.to_string().contains(why), "{error}");
        assert!(!disk.record.exists());
        disk.is_as_before();
    }
    let disk = Disk::new();
    for name in ["sdb", "../sda", ""] {
        let error = disk.set(&format!(r#"{{"disk": "{name}"}}"#)).unwrap_err();
        assert!(error.to_string().contains("has no I/O scheduler"), "{error}");
    }
}

#[test]
fn a_record_that_is_damaged_or_of_another_disk_is_named_and_kept() {
    let disk = Disk::new();
    fs::create_dir_all(disk.record.parent().unwrap()).unwrap();
    for (text, why) in [
        ("{", "damaged record"),
        (
            r#"{"disk": "sdb", "before": {"scheduler": "bfq", "iosched": {}, "queue": {}}}"#,
            "found sdb, expected sda",
        ),
    ] {
        fs::write(&disk.record, text).unwrap();
        let error = disk.set(r#"{"disk": "sda", "scheduler": "bfq"}"#).unwrap_err();
        assert!(error.is_refusal() && error.to_string().contains(why), "{error}");
        assert_eq!(fs::read_to_string(&disk.record).unwrap(), text);
        disk.is_as_before();
    }
}
