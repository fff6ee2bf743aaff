//! I/O scheduler and queue settings of a disk outside of runs: checked, recorded, set, read back, restored.
//!
//! The first change of a disk writes its former settings to a record. Later changes keep the record: [`restore`] sets the values
//! from before the first change. The record is durable before a setting is changed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::sysfs::selected;
use crate::{Error, record, sysfs};

/// Files of `queue` that the kernel changes when the scheduler changes.
const FOLLOWING: [&str; 2] = ["nr_requests", "wbt_lat_usec"];

/// Desired settings of one disk.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    /// Name of the disk below `/sys/block`.
    pub disk: String,
    /// The scheduler; empty keeps the present one.
    #[serde(default)]
    pub scheduler: String,
    /// Tunables of the scheduler by name, as in `queue/iosched`.
    #[serde(default)]
    pub tunables: BTreeMap<String, Value>,
    /// Settings by name, as in `queue`.
    #[serde(default)]
    pub queue: BTreeMap<String, Value>,
}

/// A value, as text or number.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged, expecting = "a whole number or text")]
pub enum Value {
    /// A number.
    Number(i64),
    /// Text.
    Text(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Number(number) => number.fmt(f),
            Value::Text(text) => text.fmt(f),
        }
    }
}

/// Settings of a queue.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// The scheduler.
    pub scheduler: String,
    /// Its tunables by name.
    pub iosched: BTreeMap<String, String>,
    /// Other settings of the queue by name.
    pub queue: BTreeMap<String, String>,
}

/// Result of [`set`] and [`restore`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// Whether a setting differed from the desired one.
    pub changed: bool,
    /// Settings before the first change, as recorded; `None` without a record.
    pub recorded: Option<Settings>,
    /// Settings before this call; `None` if the disk is gone.
    pub before: Option<Settings>,
    /// Settings after this call, or after the call that a check stands for.
    pub after: Option<Settings>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Record {
    disk: String,
    /// Sequence number of the attached disk (`diskseq`, Linux 5.15). A disk attached later has another number.
    #[serde(default)]
    sequence: Option<u64>,
    before: Settings,
    /// Schedulers that weir selected.
    #[serde(default)]
    schedulers: BTreeSet<String>,
}

impl Record {
    fn read(path: &Path) -> Result<Option<Self>, Error> {
        let read: Option<Self> =
            record::read(path, "Restore the settings that it lists, then remove the file")?;
        match read.as_ref().filter(|record| !is_plain(&record.disk)) {
            Some(Record { disk, .. }) => Err(Error::Refused(format!(
                "{}: disk: not a disk name (found {disk:?}). Remove the file",
                path.display()
            ))),
            None => Ok(read),
        }
    }

    fn write(&self, path: &Path) -> Result<(), Error> {
        let folder = path.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(folder).map_err(Error::io("cannot make", folder))?;
        record::write(path, self, 0o644)
    }
}

/// Sets scheduler, tunables and queue settings of a disk, and reads them back. The former settings are in `record` first. If the
/// kernel refuses a value, the settings before this call are restored. `check` only reports.
///
/// # Errors
/// [`Error::Refused`] if the disk or the kernel does not have a setting or does not accept a value.
pub fn set(wanted: &Wanted, record: &Path, check: bool) -> Result<Change, Error> {
    set_in(&Sys::default(), wanted, record, check)
}

/// Restores the settings that `record` holds and removes it. Without a record nothing happens. A disk that is gone, or another
/// disk under the same name, is left unchanged. `check` only reports.
///
/// # Errors
/// [`Error::Refused`] if another program changed the scheduler; the record stays.
pub fn restore(record: &Path, check: bool) -> Result<Change, Error> {
    restore_in(&Sys::default(), record, check)
}

fn set_in(sys: &Sys, wanted: &Wanted, path: &Path, check: bool) -> Result<Change, Error> {
    let queue = sys.queue(&wanted.disk)?;
    let asked = queue.resolve(wanted)?;
    let known = Record::read(path)?;
    if let Some(other) = known.as_ref().filter(|record| record.disk != wanted.disk) {
        return Err(Error::Refused(format!(
            "{}: is the record of another disk (found {}, expected {}). Name another file",
            path.display(),
            other.disk,
            wanted.disk
        )));
    }
    // A record of a detached disk does not hold for another disk of the same name.
    let known = known.filter(|record| record.sequence == queue.sequence());
    let now = queue.read_all(asked.queue.keys());
    let mut record = Record {
        disk: wanted.disk.clone(),
        sequence: queue.sequence(),
        before: known.as_ref().map_or_else(|| now.clone(), |record| record.before.clone()),
        schedulers: known.as_ref().map_or_else(BTreeSet::new, |record| record.schedulers.clone()),
    };
    // A value that is asked for only now was not changed before.
    let added: Vec<_> =
        now.queue.iter().filter(|(name, _)| !record.before.queue.contains_key(*name)).collect();
    let is_recorded = known.is_some() && added.is_empty();
    record.before.queue.extend(added.into_iter().map(|(name, value)| (name.clone(), value.clone())));
    let changed = queue.differs(&asked);
    let after = if check { now.with(&asked) } else { Settings::default() };
    let mut change = Change {
        changed,
        recorded: Some(record.before.clone()),
        before: Some(now.clone()),
        after: Some(after),
    };
    if check {
        return Ok(change);
    }
    if changed || !is_recorded {
        record.schedulers.insert(asked.scheduler.clone());
        record.write(path)?;
        if let Err(error) = queue.apply(&asked) {
            queue.apply(&now).map_err(|again| Error::Failed(format!("{error}; and then: {again}")))?;
            if known.is_none() {
                record::remove(path)?;
            }
            return Err(error);
        }
    }
    change.after = Some(queue.read_all(asked.queue.keys()));
    Ok(change)
}

fn restore_in(sys: &Sys, path: &Path, check: bool) -> Result<Change, Error> {
    let Some(record) = Record::read(path)? else { return Ok(Change::default()) };
    let queue = sys
        .queue(&record.disk)
        .ok()
        .filter(|queue| queue.sequence() == record.sequence || record.sequence.is_none());
    let read = || queue.as_ref().map(|queue| queue.read_all(record.before.queue.keys()));
    let before = read();
    if !check {
        if let Some(queue) = &queue {
            queue.restore(&record)?;
        }
        record::remove(path)?;
    }
    let after = if check { before.as_ref().map(|_| record.before.clone()) } else { read() };
    Ok(Change { changed: true, recorded: Some(record.before), before, after })
}

impl Settings {
    /// These settings after `asked` was applied, as far as that is known: another scheduler has tunables of its own.
    fn with(&self, asked: &Settings) -> Settings {
        let mut all = self.clone();
        if all.scheduler != asked.scheduler {
            all.iosched.clear();
            all.scheduler.clone_from(&asked.scheduler);
        }
        all.iosched.extend(asked.iosched.clone());
        all.queue.extend(asked.queue.clone());
        all
    }
}

/// A name that is one part of a path.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_!-".contains(&byte))
}

/// Where the kernel shows block devices, and how a setting is written.
struct Sys {
    block: PathBuf,
    write: fn(&Path, &str) -> io::Result<()>,
}

impl Default for Sys {
    fn default() -> Self {
        Sys { block: "/sys/block".into(), write: sysfs::write }
    }
}

impl Sys {
    fn queue<'a>(&'a self, disk: &'a str) -> Result<Queue<'a>, Error> {
        let folder = self.block.join(disk).join("queue");
        if is_plain(disk) && folder.join("scheduler").exists() {
            return Ok(Queue { disk, folder, write: self.write });
        }
        Err(Error::Refused(format!(
            "disk: {disk:?} has no I/O scheduler (no /sys/block/{disk}/queue/scheduler). Name a whole disk"
        )))
    }
}

/// The request queue of a whole disk.
struct Queue<'a> {
    disk: &'a str,
    folder: PathBuf,
    write: fn(&Path, &str) -> io::Result<()>,
}

impl Queue<'_> {
    fn sequence(&self) -> Option<u64> {
        fs::read_to_string(self.folder.with_file_name("diskseq")).ok()?.trim().parse().ok()
    }

    /// Text of a file; `None` if the disk does not have it.
    fn read(&self, file: &str) -> Option<String> {
        Some(fs::read_to_string(self.folder.join(file)).ok()?.trim().to_owned())
    }

    fn value(&self, file: &str) -> Option<String> {
        let text = self.read(file)?;
        Some(if file == "scheduler" { selected(&text).to_owned() } else { text })
    }

    fn scheduler(&self) -> String {
        self.value("scheduler").unwrap_or_default()
    }

    fn read_all<'n>(&self, names: impl Iterator<Item = &'n String>) -> Settings {
        let of = |names: BTreeSet<String>, folder: &str| {
            names
                .into_iter()
                .filter_map(|name| Some((name.clone(), self.read(&format!("{folder}{name}"))?)))
                .collect()
        };
        let queue = names.cloned().chain(FOLLOWING.map(str::to_owned)).collect();
        Settings {
            scheduler: self.scheduler(),
            iosched: of(self.names("iosched"), "iosched/"),
            queue: of(queue, ""),
        }
    }

    /// Names of the files in a folder of the queue.
    fn names(&self, folder: &str) -> BTreeSet<String> {
        let entries = fs::read_dir(self.folder.join(folder)).into_iter().flatten().flatten();
        let files = entries.filter(|entry| entry.path().is_file());
        files.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    /// The desired settings as texts, as far as they can be checked before anything is set.
    fn resolve(&self, wanted: &Wanted) -> Result<Settings, Error> {
        let texts = |values: &BTreeMap<String, Value>| {
            values.iter().map(|(name, value)| (name.clone(), value.to_string())).collect::<BTreeMap<_, _>>()
        };
        let now = self.scheduler();
        let asked = Settings {
            scheduler: if wanted.scheduler.is_empty() { now.clone() } else { wanted.scheduler.clone() },
            iosched: texts(&wanted.tunables),
            queue: texts(&wanted.queue),
        };
        let offered = self.read("scheduler").unwrap_or_default();
        let offered: Vec<&str> =
            offered.split_ascii_whitespace().map(|word| word.trim_matches(['[', ']'])).collect();
        if !offered.contains(&asked.scheduler.as_str()) {
            return Err(Error::Refused(format!(
                "{}: scheduler: {} is not in this kernel (it has {}). Load its module, or name another scheduler",
                self.disk,
                asked.scheduler,
                offered.join(", ")
            )));
        }
        let is_name = |name: &&String| is_plain(name) && *name != "scheduler";
        if let Some(name) = asked.iosched.keys().chain(asked.queue.keys()).find(|name| !is_name(name)) {
            return Err(Error::Refused(format!(
                "{}: {name:?} is no name of a setting. Use names in /sys/block/{}/queue and queue/iosched",
                self.disk, self.disk
            )));
        }
        if asked.scheduler == now {
            self.check_known(&asked.iosched, "iosched/")?;
        }
        self.check_known(&asked.queue, "")?;
        Ok(asked)
    }

    /// Whether the disk has a file of each name.
    fn check_known(&self, values: &BTreeMap<String, String>, folder: &str) -> Result<(), Error> {
        let Some(name) = values.keys().find(|name| self.read(&format!("{folder}{name}")).is_none()) else {
            return Ok(());
        };
        let known: Vec<String> = self.names(folder).into_iter().collect();
        Err(Error::Refused(format!("{} has no {folder}{name} (it has {})", self.disk, known.join(", "))))
    }

    fn differs(&self, asked: &Settings) -> bool {
        let differ = |values: &BTreeMap<String, String>, folder: &str| {
            values.iter().any(|(name, value)| self.read(&format!("{folder}{name}")).as_ref() != Some(value))
        };
        self.scheduler() != asked.scheduler || differ(&asked.iosched, "iosched/") || differ(&asked.queue, "")
    }

    /// Sets the scheduler first: its change resets tunables and queue settings.
    fn apply(&self, asked: &Settings) -> Result<(), Error> {
        self.write("scheduler", &asked.scheduler)?;
        self.check_known(&asked.iosched, "iosched/")?;
        asked.iosched.iter().try_for_each(|(name, value)| self.write(&format!("iosched/{name}"), value))?;
        asked.queue.iter().try_for_each(|(name, value)| self.write(name, value))
    }

    /// Writes a file unless it has the value, and reads it back.
    fn write(&self, file: &str, value: &str) -> Result<(), Error> {
        if self.value(file).as_deref() == Some(value) {
            return Ok(());
        }
        self.write_always(file, value)?;
        match self.value(file) {
            Some(found) if found == value => Ok(()),
            found => Err(Error::Refused(format!(
                "{}: {file}: the kernel changed the value (found {}, expected {value}). Ask for that value",
                self.disk,
                found.unwrap_or_default()
            ))),
        }
    }

    fn write_always(&self, file: &str, value: &str) -> Result<(), Error> {
        (self.write)(&self.folder.join(file), value).map_err(|error| {
            Error::Refused(format!("{}: {file}: the kernel refuses {value:?}: {error}", self.disk))
        })
    }

    fn restore(&self, record: &Record) -> Result<(), Error> {
        let (now, before) = (self.scheduler(), &record.before);
        let is_ours = now == before.scheduler || record.schedulers.contains(&now);
        if !is_ours && !record.schedulers.is_empty() {
            return Err(Error::Refused(format!(
                "{}: scheduler: another program set {now} since. Its queue is left unchanged. Set the scheduler that you want, \
                 then remove the record",
                self.disk
            )));
        }
        let had_none = now == "none" || record.schedulers.contains("none");
        let tags = fs::read_to_string(self.folder.with_file_name("mq").join("0/nr_tags"));
        let tags = tags.ok().and_then(|text| text.trim().parse::<u32>().ok());
        if let Some(tags) = tags.filter(|tags| *tags > 1 && before.scheduler != "none" && had_none) {
            // Tags of the driver that were set without a scheduler stay with the next scheduler, whose nr_requests does not show
            // them. The kernel ignores a number that it believes to have: hence a detour.
            self.write("scheduler", "none")?;
            self.write_always("nr_requests", &(tags - 1).to_string())?;
            self.write_always("nr_requests", &tags.to_string())?;
        }
        self.apply(before)
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
