//! Control group `weir/NAME` with limits of memory and disks, outside of runs: checked, recorded, created, removed.
//!
//! The group is in the tree of each controller that it needs, and in version 2's tree for its members. The record lists
//! its folders and its limits: a later call lifts limits that are no longer wanted. The record is durable before the
//! group is made.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use weir_host::record;
use weir_study::IoMax;

use crate::cgroup::{Group, Tree, trees};
use crate::io_group::THROTTLE;
use crate::limit::Disk;
use crate::{Error, subtree_control};

/// All groups of weir lie in this folder of a tree.
const FOLDER: &str = "weir";
/// `io.max` of a disk that is not limited.
const NO_MAX: &str = "rbps=max wbps=max riops=max wiops=max";
/// Weight of a group by default.
const USUAL_WEIGHT: &str = "100";

/// Desired limits of a group.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    /// Name of the group below `weir/`.
    pub name: String,
    /// Maximum memory, page cache included; 0 is no limit.
    #[serde(default)]
    pub memory_mib: u64,
    /// Weight for disks whose scheduler is bfq, or that have a cost model; 0 keeps the present weight.
    #[serde(default)]
    pub weight: u32,
    /// Limits by disk: a list, or an object with the numbers of disks as its keys.
    #[serde(default, deserialize_with = "list_or_by_number")]
    pub disks: Vec<DiskLimits>,
}

/// Limits of requests to one disk.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskLimits {
    /// The disk: its number (`MAJOR:MINOR`), or a path such as one below `/dev/disk/by-id`.
    pub path: String,
    /// Maximum bytes read per second.
    pub read_bytes_per_s: Option<u64>,
    /// Maximum bytes written per second.
    pub write_bytes_per_s: Option<u64>,
    /// Maximum read requests per second.
    pub reads_per_s: Option<u64>,
    /// Maximum write requests per second.
    pub writes_per_s: Option<u64>,
}

/// Reads `[{path: 8:0, ...}]`, and `{"8:0": {...}}` as the same.
fn list_or_by_number<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<DiskLimits>, D::Error> {
    let listed = match Value::deserialize(from)? {
        Value::Object(by_number) => by_number
            .into_iter()
            .map(|(number, limits)| match limits {
                Value::Object(mut fields) if !fields.contains_key("path") => {
                    fields.insert("path".to_owned(), Value::from(number));
                    Ok(Value::Object(fields))
                }
                other => Err(D::Error::custom(format!(
                    "disks: {number}: found {other}, expected limits without a path, such as {{\"reads_per_s\": 50}}"
                ))),
            })
            .collect::<Result<_, _>>()?,
        other => other,
    };
    serde_json::from_value(listed).map_err(D::Error::custom)
}

impl DiskLimits {
    /// Field names and values, in the order of [`IoMax::NAMES`].
    fn fields(&self) -> [(&'static str, Option<u64>); 4] {
        [
            ("read_bytes_per_s", self.read_bytes_per_s),
            ("write_bytes_per_s", self.write_bytes_per_s),
            ("reads_per_s", self.reads_per_s),
            ("writes_per_s", self.writes_per_s),
        ]
    }

    /// Its number, `MAJOR:MINOR`.
    fn number(&self) -> Result<String, Error> {
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        match self.path.split_once(':') {
            Some((major, minor)) if is_number(major) && is_number(minor) => Ok(self.path.clone()),
            _ if self.path.starts_with('/') => Disk::of(Path::new(&self.path)).map(Disk::key),
            _ => Err(Error::Refused(format!(
                "disks: {:?} is no disk. Name its number, such as 8:0, or a path below /dev/disk",
                self.path
            ))),
        }
    }
}

/// Result of [`set`] and [`remove`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Whether anything differed from the desired limits.
    pub changed: bool,
    /// Folders of the group; a program joins by the file `cgroup.procs` of each.
    pub folders: Vec<PathBuf>,
    /// Limits before this call, by file and disk; a limit that is not set is `null`.
    pub before: BTreeMap<String, Option<String>>,
    /// Limits after this call, or of a check: after the checked call.
    pub after: BTreeMap<String, Option<String>>,
}

/// A limit: the tree, names of the file of which the first present one is used, and the disk (or `default`, or nothing).
type Key = (PathBuf, String, String);

/// Record of a group: its folders, and each limit with the value that lifts it.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Record {
    folders: Vec<PathBuf>,
    set: Vec<(Key, String)>,
}

/// A limit with its value and the value that lifts it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Limit {
    value: String,
    lift: String,
}

type Limits = BTreeMap<Key, Limit>;

impl Record {
    fn read(path: &Path) -> Result<Option<Self>, Error> {
        let read: Option<Self> = record::read(path, "Remove the folders that it lists, then the file")?;
        let is_ours = |folder: &PathBuf| {
            folder.parent().and_then(Path::file_name).is_some_and(|name| name == FOLDER)
                && folder.file_name().is_some_and(|name| name != "..")
        };
        match read.iter().flat_map(|record| &record.folders).find(|folder| !is_ours(folder)) {
            Some(other) => Err(Error::Refused(format!(
                "{}: folders: {} is no group of weir. Remove the file",
                path.display(),
                other.display()
            ))),
            None => Ok(read),
        }
    }

    fn write(path: &Path, folders: &BTreeSet<PathBuf>, limits: &Limits) -> Result<(), Error> {
        let set = limits.iter().map(|(key, limit)| (key.clone(), limit.lift.clone())).collect();
        let record = Record { folders: folders.iter().cloned().collect(), set };
        let folder = path.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(folder).map_err(Error::io("cannot make", folder))?;
        record::write(path, &record, 0o644)
    }
}

/// Makes the group with its limits, and reads them back. Limits that a former call set and this one does not are lifted.
/// `check` only reports.
///
/// # Errors
/// [`Error::Refused`] if a value is not possible, this host has no such controller, or another program made the group.
pub fn set(wanted: &Wanted, record: &Path, check: bool) -> Result<Change, Error> {
    let trees = trees();
    let limits = limits(wanted, &trees)?;
    let used: Vec<Tree> = trees
        .into_iter()
        .filter(|tree| matches!(tree, Tree::Two { .. }) || limits.keys().any(|(top, _, _)| top == tree.top()))
        .collect();
    if used.is_empty() {
        return Err(Error::Refused("no control groups are mounted (/sys/fs/cgroup). Mount them".to_owned()));
    }
    let known = Record::read(record)?.unwrap_or_default();
    let folders: Vec<PathBuf> = used.iter().map(|tree| tree.top().join(FOLDER).join(&wanted.name)).collect();
    if let Some(other) = folders.iter().find(|folder| folder.exists() && !known.folders.contains(folder)) {
        return Err(Error::Refused(format!(
            "name: {} was made by another program. Choose another name",
            other.display()
        )));
    }
    let mut all = limits.clone();
    for (key, lift) in known.set {
        all.entry(key).or_insert_with(|| Limit { value: lift.clone(), lift });
    }
    let read_all = || all.keys().map(|key| (shown(key), read(&wanted.name, key))).collect::<BTreeMap<_, _>>();
    let before = read_all();
    let goal: BTreeMap<_, _> =
        all.iter().map(|(key, limit)| (shown(key), Some(limit.value.clone()))).collect();
    let changed = before != goal || folders.iter().any(|folder| !folder.exists());
    if check || !changed {
        return Ok(Change { changed, folders, before, after: goal });
    }
    let every: BTreeSet<PathBuf> = folders.iter().cloned().chain(known.folders).collect();
    Record::write(record, &every, &all)?;
    Group::named(format!("{FOLDER}/{}", wanted.name)).make_in(&used)?;
    all.iter().try_for_each(|(key, limit)| write(&wanted.name, key, limit))?;
    Record::write(record, &every, &limits)?;
    Ok(Change { changed, folders, before, after: read_all() })
}

/// Removes the group that `record` names, and the record. Without a record nothing happens. `check` only reports.
///
/// # Errors
/// [`Error::Refused`] if a process is in the group; nothing is removed.
pub fn remove(record: &Path, check: bool) -> Result<Change, Error> {
    let Some(known) = Record::read(record)? else { return Ok(Change::default()) };
    for folder in &known.folders {
        let members = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default().lines().count();
        if members > 0 {
            return Err(Error::Refused(format!(
                "{} has {members} processes. End them, or move them to another group",
                folder.display()
            )));
        }
    }
    let before = known
        .set
        .iter()
        .filter_map(|(key, _)| {
            let name = known.folders.first()?.file_name()?.to_string_lossy();
            Some((shown(key), read(&name, key)))
        })
        .collect();
    if !check {
        for folder in &known.folders {
            match fs::remove_dir(folder) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(Error::io("cannot remove", folder)(error));
                }
                _ => {}
            }
            if let Some((ours, top)) = folder.parent().and_then(|ours| Some((ours, ours.parent()?))) {
                subtree_control::remove(top, ours);
            }
        }
        record::remove(record)?;
    }
    Ok(Change { changed: true, folders: known.folders, before, after: BTreeMap::new() })
}

/// The limits in the files of this host's controllers.
fn limits(wanted: &Wanted, trees: &[Tree]) -> Result<Limits, Error> {
    let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_.-".contains(&byte);
    if !wanted.name.bytes().all(is_name) || !wanted.name.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return Err(Error::Refused(format!(
            "name: {:?} is no name of a group. Use small letters, digits, `_`, `.` and `-`",
            wanted.name
        )));
    }
    if wanted.weight > 1000 {
        return Err(Error::Refused(format!(
            "weight: {} is too large. Give 1 to 1000, or 0 to keep the present weight",
            wanted.weight
        )));
    }
    let mut found = Limits::new();
    let mut add = |top: &Path, file: &str, disk: &str, value: String, lift: &str| {
        found.insert((top.into(), file.into(), disk.into()), Limit { value, lift: lift.into() });
    };
    if wanted.memory_mib > 0 {
        let (top, file, lift) = trees
            .iter()
            .find_map(|tree| match tree {
                Tree::Two { top, memory: true, .. } => Some((top, "memory.max", "max")),
                Tree::Memory(top) => Some((top, "memory.limit_in_bytes", "-1")),
                _ => None,
            })
            .ok_or_else(|| {
                Error::Refused("memory_mib: this host has no memory controller. Leave it out".to_owned())
            })?;
        let bytes = wanted.memory_mib.checked_mul(1 << 20).filter(|bytes| *bytes < 1 << 62);
        let bytes =
            bytes.ok_or_else(|| Error::Refused(format!("memory_mib: {} is too large", wanted.memory_mib)))?;
        add(top, file, "", bytes.to_string(), lift);
    }
    if wanted.weight == 0 && wanted.disks.is_empty() {
        return Ok(found);
    }
    let (top, is_two) = trees
        .iter()
        .find_map(|tree| match tree {
            Tree::Two { top, io: true, .. } => Some((top, true)),
            Tree::Blkio(top) => Some((top, false)),
            _ => None,
        })
        .ok_or_else(|| {
            let field = if wanted.weight > 0 { "weight" } else { "disks" };
            Error::Refused(format!("{field}: this host has no I/O controller (io or blkio). Leave it out"))
        })?;
    if wanted.weight > 0 {
        let files = if is_two { "io.weight|io.bfq.weight" } else { "blkio.bfq.weight|blkio.weight" };
        add(top, files, "default", wanted.weight.to_string(), USUAL_WEIGHT);
    }
    for disk in &wanted.disks {
        let number = disk.number()?;
        if let Some((name, _)) = disk.fields().iter().find(|(_, value)| *value == Some(0)) {
            return Err(Error::Refused(format!(
                "disks: {}: {name}: found 0, expected at least 1",
                disk.path
            )));
        }
        let values = disk.fields().map(|(_, value)| value);
        if is_two {
            let words = IoMax::NAMES.iter().zip(values).map(|(name, value)| {
                format!("{name}={}", value.map_or("max".to_owned(), |value| value.to_string()))
            });
            add(top, "io.max", &number, words.collect::<Vec<_>>().join(" "), NO_MAX);
        } else {
            for (file, value) in THROTTLE.iter().zip(values) {
                if let Some(value) = value {
                    add(top, file, &number, value.to_string(), "0");
                }
            }
        }
    }
    Ok(found)
}

/// Printed name of a limit: its file, and the disk.
fn shown((_, files, disk): &Key) -> String {
    let file = files.split('|').next().unwrap_or(files);
    if disk.contains(':') { format!("{file} {disk}") } else { file.to_owned() }
}

fn file(name: &str, (top, files, _): &Key) -> Result<PathBuf, Error> {
    let folder = top.join(FOLDER).join(name);
    files.split('|').map(|file| folder.join(file)).find(|path| path.exists()).ok_or_else(|| {
        Error::Refused(format!("this kernel has no {}. Leave that limit out", files.replace('|', " or ")))
    })
}

/// The present value of a limit; `None` if the group or its file does not exist.
fn read(name: &str, key: &Key) -> Option<String> {
    let (_, files, disk) = key;
    let text = fs::read_to_string(file(name, key).ok()?).ok()?;
    let of_line = |line: &str| {
        let (first, rest) = line.split_once(' ').unwrap_or((line, ""));
        if disk.is_empty() || (disk == "default" && rest.is_empty()) {
            return Some(line.to_owned());
        }
        (first == disk).then(|| rest.to_owned())
    };
    // The kernel lists only disks that are limited.
    let unlimited = if files == "io.max" { Some(NO_MAX) } else { files.contains("throttle").then_some("0") };
    text.lines().find_map(of_line).or_else(|| unlimited.map(str::to_owned))
}

/// Sets a limit and reads it back.
fn write(name: &str, key: &Key, limit: &Limit) -> Result<(), Error> {
    let path = file(name, key)?;
    let (_, _, disk) = key;
    let text = if disk.contains(':') { format!("{disk} {}", limit.value) } else { limit.value.clone() };
    fs::write(&path, &text).map_err(|error| {
        Error::Refused(format!("{}: the kernel refuses {text:?}: {error}", path.display()))
    })?;
    let found = read(name, key);
    // Version 1 shows the largest number where memory is not limited.
    if limit.value == "-1" || found.as_ref() == Some(&limit.value) {
        return Ok(());
    }
    Err(Error::Failed(format!(
        "{}: the kernel changed the value (found {}, expected {}). Ask for that value",
        path.display(),
        found.unwrap_or_default(),
        limit.value
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(text: &str) -> Result<Wanted, serde_json::Error> {
        serde_json::from_str(text)
    }

    fn told(limits: &Limits) -> Vec<(String, &str, &str)> {
        limits.iter().map(|(key, limit)| (shown(key), limit.value.as_str(), limit.lift.as_str())).collect()
    }

    const ALL: &str = r#"{"name": "own", "memory_mib": 1, "weight": 200,
                          "disks": {"8:0": {"read_bytes_per_s": 5, "writes_per_s": 6}}}"#;

    #[test]
    fn limits_go_where_the_controllers_are() {
        let one = [
            Tree::Two { top: "/c/unified".into(), memory: false, io: false },
            Tree::Memory("/c/memory".into()),
            Tree::Blkio("/c/blkio".into()),
        ];
        let wanted = wanted(ALL).unwrap();
        let found = limits(&wanted, &one).unwrap();
        assert_eq!(found.keys().map(|(top, _, _)| top.to_str().unwrap()).collect::<BTreeSet<_>>().len(), 2);
        assert_eq!(
            told(&found),
            [
                ("blkio.bfq.weight".to_owned(), "200", "100"),
                ("blkio.throttle.read_bps_device 8:0".to_owned(), "5", "0"),
                ("blkio.throttle.write_iops_device 8:0".to_owned(), "6", "0"),
                ("memory.limit_in_bytes".to_owned(), "1048576", "-1"),
            ]
        );
        let two = [Tree::Two { top: "/c".into(), memory: true, io: true }];
        assert_eq!(
            told(&limits(&wanted, &two).unwrap()),
            [
                ("io.max 8:0".to_owned(), "rbps=5 wbps=max riops=max wiops=6", NO_MAX),
                ("io.weight".to_owned(), "200", "100"),
                ("memory.max".to_owned(), "1048576", "max"),
            ]
        );
        let error = limits(&wanted, &one[..1]).unwrap_err();
        assert!(error.to_string().contains("no memory controller"), "{error}");
    }

    #[test]
    fn a_group_that_cannot_be_is_refused() {
        let two = [Tree::Two { top: "/c".into(), memory: true, io: true }];
        for (fields, why) in [
            (r#""name": "../x""#, "name: \"../x\""),
            (r#""name": """#, "name: \"\""),
            (r#""name": "own", "memory_mib": -1"#, "integer `-1`"),
            (r#""name": "own", "memory_mib": 18446744073709551615"#, "memory_mib"),
            (r#""name": "own", "weight": 1001"#, "weight: 1001"),
            (r#""name": "own", "disks": {"sda": {}}"#, "\"sda\" is no disk"),
            (r#""name": "own", "disks": [{"path": "/nonexistent/x"}]"#, "/nonexistent/x"),
            (r#""name": "own", "disks": {"8:0": {"rbps": 1}}"#, "unknown field `rbps`"),
            (r#""name": "own", "disks": {"8:0": {"reads_per_s": 0}}"#, "reads_per_s: found 0"),
            (r#""name": "own", "disks": {"8:0": 5}"#, "disks: 8:0: found 5"),
            (r#""name": "own", "disks": {"8:0": {"path": "8:16"}}"#, "limits without a path"),
        ] {
            let error = match wanted(&format!("{{{fields}}}")) {
                Err(error) => error.to_string(),
                Ok(wanted) => limits(&wanted, &two).unwrap_err().to_string(),
            };
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn disks_are_a_list_or_stand_by_their_numbers() {
        let by_number = wanted(ALL).unwrap();
        let listed = wanted(
            r#"{"name": "own", "disks": [{"path": "8:0", "read_bytes_per_s": 5, "writes_per_s": 6}]}"#,
        );
        assert_eq!(format!("{:?}", listed.unwrap().disks), format!("{:?}", by_number.disks));
    }

    #[test]
    fn a_group_is_made_once_changed_and_removed() {
        let place = tempfile::tempdir().unwrap();
        let record = place.path().join("groups/own.json");
        let name = format!("test-named-{}", std::process::id());
        let of = |rest: &str| wanted(&format!(r#"{{"name": "{name}"{rest}}}"#)).unwrap();
        let limited = of(r#", "memory_mib": 64"#);
        let (is_root, trees) = (rustix::process::geteuid().is_root(), trees());
        if !is_root || limits(&limited, &trees).is_err() {
            eprintln!("skipped: needs root and a memory controller");
            return;
        }
        let checked = set(&limited, &record, true).unwrap();
        assert!(checked.changed && !record.exists() && checked.folders.iter().all(|folder| !folder.exists()));
        let done = set(&limited, &record, false).unwrap();
        assert_eq!((done.changed, &done.after), (true, &checked.after));
        assert!(!set(&limited, &record, false).unwrap().changed);
        // As after a kill between the record and the group.
        done.folders.iter().for_each(|folder| fs::remove_dir(folder).unwrap());
        assert!(set(&limited, &record, false).unwrap().changed);
        let lifted = set(&of(""), &record, false).unwrap();
        assert!(lifted.changed && lifted.before == done.after && lifted.after != done.after);
        let other = place.path().join("other.json");
        let error = set(&limited, &other, false).unwrap_err();
        assert!(error.is_refusal() && error.to_string().contains("made by another program"), "{error}");
        assert!(!remove(&other, false).unwrap().changed);
        assert!(remove(&record, true).unwrap().changed && record.exists());
        assert!(remove(&record, false).unwrap().changed && !record.exists());
        assert!(lifted.folders.iter().all(|folder| !folder.exists()));
    }

    #[test]
    fn a_record_that_names_other_folders_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let record = place.path().join("own.json");
        for text in ["{", r#"{"folders": ["/sys/fs/cgroup/system.slice"], "set": []}"#] {
            fs::write(&record, text).unwrap();
            let error = remove(&record, false).unwrap_err();
            assert!(error.is_refusal() && error.to_string().contains("own.json"), "{error}");
        }
    }
}
