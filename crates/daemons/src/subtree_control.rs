//! Controllers enabled in `cgroup.subtree_control` (cgroup v2); disabled again when weir's last group is removed.
//!
//! The top of the tree is the host's. What weir adds to its `cgroup.subtree_control` is recorded in an extended attribute of
//! weir's own folder there, before it is added: the record lives exactly as long as that folder, whatever is killed.

use std::fs;
use std::io;
use std::path::Path;

use rustix::fs::{XattrFlags, getxattr, setxattr};

use crate::Error;

const CONTROL: &str = "cgroup.subtree_control";
const ATTRIBUTE: &str = "trusted.weir.handed_on";

/// Limits of a group, and the text of each where nothing is limited.
const LIMITS: [(&str, &str); 7] = [
    ("io.max", ""),
    ("io.latency", ""),
    ("io.weight", "default 100"),
    ("memory.max", "max"),
    ("memory.high", "max"),
    ("memory.low", "0"),
    ("memory.min", "0"),
];

/// Controllers that are not enabled yet.
fn missing<'a>(folder: &Path, controllers: &[&'a str]) -> Vec<&'a str> {
    let text = fs::read_to_string(folder.join(CONTROL)).unwrap_or_default();
    let is_there = |name: &str| text.split_ascii_whitespace().any(|known| known == name);
    controllers.iter().copied().filter(|name| !is_there(name)).collect()
}

/// Enables controllers for the children of one of weir's groups.
///
/// # Errors
/// The kernel refuses.
pub(crate) fn enable(folder: &Path, controllers: &[&str]) -> Result<(), Error> {
    let control = folder.join(CONTROL);
    missing(folder, controllers).iter().try_for_each(|name| {
        fs::write(&control, format!("+{name}")).map_err(Error::io("cannot enable controllers by", &control))
    })
}

/// Enables controllers at the top of the tree, after recording at `ours` those that were not enabled before.
///
/// # Errors
/// The kernel refuses.
pub(crate) fn enable_at_top(top: &Path, ours: &Path, controllers: &[&str]) -> Result<(), Error> {
    let added = missing(top, controllers);
    if added.is_empty() {
        return Ok(());
    }
    let mut all = recorded(ours);
    all.extend(added.iter().map(|name| (*name).to_owned()));
    record(ours, &all.join(" ")).map_err(Error::io("cannot record controllers at", ours))?;
    enable(top, &added)
}

/// Removes weir's folder at the top if it is empty, and disables the controllers that weir enabled there.
pub(crate) fn remove(top: &Path, ours: &Path) {
    let added = recorded(ours);
    if fs::remove_dir(ours).is_err() || added.is_empty() {
        return;
    }
    if let Some(user) = user_of(top) {
        eprintln!(
            "{}: controllers {} stay enabled: {user} is limited by them",
            top.display(),
            added.join(" ")
        );
        return;
    }
    for name in added {
        // The kernel refuses while another group also enables the controller: it is in use.
        let _ = fs::write(top.join(CONTROL), format!("-{name}"));
    }
}

/// A group directly below the top that has limits.
fn user_of(top: &Path) -> Option<String> {
    let groups = fs::read_dir(top).ok()?.flatten().filter(|entry| entry.path().is_dir());
    groups.map(|entry| entry.path()).find_map(|group| {
        let is_limited = LIMITS.iter().any(|(file, unlimited)| {
            fs::read_to_string(group.join(file)).is_ok_and(|text| text.trim() != *unlimited)
        });
        is_limited.then(|| group.display().to_string())
    })
}

fn record(folder: &Path, text: &str) -> io::Result<()> {
    Ok(setxattr(folder, ATTRIBUTE, text.as_bytes(), XattrFlags::empty())?)
}

fn recorded(folder: &Path) -> Vec<String> {
    let mut text = [0_u8; 64];
    let length = getxattr(folder, ATTRIBUTE, &mut text).unwrap_or(0);
    let known = ["memory", "io"];
    let text = String::from_utf8_lossy(&text[..length]);
    text.split(' ').filter(|name| known.contains(name)).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of the host's tree of version 2 in place of its top.
    fn top(name: &str) -> Option<std::path::PathBuf> {
        let mounts = weir_host::mounts::own().ok()?;
        let tree = mounts.into_iter().find(|mount| mount.fs_type == "cgroup2")?.point;
        let folder = tree.join(format!("weir-test-{name}-{}", std::process::id()));
        fs::create_dir(&folder).ok()?;
        Some(folder)
    }

    #[test]
    fn the_record_lives_with_the_folder_and_holds_known_names_only() {
        let Some(top) = top("record") else {
            eprintln!("skipped: needs root and version 2 of control groups");
            return;
        };
        let ours = top.join("weir");
        fs::create_dir(&ours).unwrap();
        assert!(recorded(&ours).is_empty());
        record(&ours, "io").unwrap();
        assert_eq!(recorded(&ours), ["io"]);
        record(&ours, "memory io ../x").unwrap();
        assert_eq!(recorded(&ours), ["memory", "io"]);
        remove(&top, &ours);
        assert!(!ours.exists());
        fs::create_dir(&ours).unwrap();
        assert!(recorded(&ours).is_empty(), "the record went with the folder");
        fs::remove_dir(&ours).unwrap();
        fs::remove_dir(&top).unwrap();
    }

    #[test]
    fn only_controllers_that_were_not_enabled_are_added() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(CONTROL), "cpu io pids\n").unwrap();
        assert_eq!(missing(folder.path(), &["memory", "io"]), ["memory"]);
    }

    #[test]
    fn a_group_that_somebody_has_limited_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let group = folder.path().join("a.slice");
        fs::create_dir(&group).unwrap();
        fs::write(group.join("io.max"), "").unwrap();
        fs::write(group.join("memory.max"), "max\n").unwrap();
        assert_eq!(user_of(folder.path()), None);
        fs::write(group.join("io.max"), "8:0 rbps=1 wbps=max riops=max wiops=max\n").unwrap();
        assert_eq!(user_of(folder.path()), Some(group.display().to_string()));
    }
}
