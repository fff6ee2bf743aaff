//! Control groups of daemons: members, memory limit and memory use.
//!
//! Both layouts are supported: version 2, one tree; and version 1, a tree for each controller. Beside version 1 there may
//! be a version 2 tree without controllers, which shows the members of a group. Groups are below `weir/` at the top of
//! each tree.

use std::ffi::{CStr, CString};
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use weir_host::mounts::{self, Mount};

use crate::{Error, subtree_control};

/// How often the making of a group is begun.
const ATTEMPTS: u32 = 100;

/// The top of a tree of groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Tree {
    /// Version 2, and whether it has the controllers of memory and of disks.
    Two { top: PathBuf, memory: bool, io: bool },
    /// Version 1: memory.
    Memory(PathBuf),
    /// Version 1: processor time.
    Cpu(PathBuf),
    /// Version 1: disks.
    Blkio(PathBuf),
}

impl Tree {
    pub(crate) fn top(&self) -> &Path {
        match self {
            Tree::Two { top, .. } | Tree::Memory(top) | Tree::Cpu(top) | Tree::Blkio(top) => top,
        }
    }
}

pub(crate) fn trees() -> Vec<Tree> {
    in_table(mounts::own().unwrap_or_default(), |top, wanted| {
        let controllers = fs::read_to_string(top.join("cgroup.controllers")).unwrap_or_default();
        controllers.split_ascii_whitespace().any(|name| name == wanted)
    })
}

fn in_table(mounts: Vec<Mount>, controls: impl Fn(&Path, &str) -> bool) -> Vec<Tree> {
    let tree = |mount: Mount| match mount.fs_type.as_str() {
        "cgroup2" => {
            let (memory, io) = (controls(&mount.point, "memory"), controls(&mount.point, "io"));
            Some(Tree::Two { top: mount.point, memory, io })
        }
        "cgroup" if mount.has_option("memory") => Some(Tree::Memory(mount.point)),
        "cgroup" if mount.has_option("cpuacct") => Some(Tree::Cpu(mount.point)),
        "cgroup" if mount.has_option("blkio") => Some(Tree::Blkio(mount.point)),
        _ => None,
    };
    mounts.into_iter().filter_map(tree).collect()
}

/// A group, in every tree of this host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Group {
    /// Its name below the tops, such as `weir/run-weir/run/web`.
    name: String,
}

/// Memory use of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// Its own limit; absent if it has none.
    pub limit_bytes: Option<u64>,
    /// All that is charged to it.
    pub used_bytes: u64,
    /// Pages of files.
    pub cache_bytes: u64,
    /// Memory of processes.
    pub anonymous_bytes: u64,
}

/// Processor time of a group, in ns, since it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Cpu {
    /// In programs.
    pub user_ns: u64,
    /// In the kernel.
    pub system_ns: u64,
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Letters of a state folder's path in the name of its group.
const LONGEST_KEY: usize = 100;

/// The 64-bit FNV-1a hash.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

impl Group {
    /// The group of a state folder, in which all its others lie: folders do not get into each other's way.
    pub fn of_state(state: &Path) -> Self {
        let state = std::path::absolute(state).unwrap_or_else(|_| state.to_owned());
        let text = state.to_string_lossy();
        let key: String =
            text.trim_matches('/').chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let key = if key.is_empty() { "root".to_owned() } else { key };
        let is_unique =
            text.len() <= LONGEST_KEY && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '/');
        if is_unique {
            return Group { name: format!("weir/{key}") };
        }
        // Another folder may have the same letters. The name must be unique: the processes of a group are killed.
        let end = &key[key.len().saturating_sub(LONGEST_KEY)..];
        Group { name: format!("weir/{end}-{:016x}", fnv1a(text.as_bytes())) }
    }

    /// The group of a name below the tops.
    pub(crate) fn named(name: String) -> Self {
        Group { name }
    }

    /// A group within this one.
    pub fn within(&self, name: &str) -> Self {
        Group { name: format!("{}/{name}", self.name) }
    }

    /// Makes the group and its parents in every tree. An existing group is kept.
    ///
    /// # Errors
    /// There is no tree of groups, or the kernel refuses.
    pub fn make(&self) -> Result<(), Error> {
        let trees = trees();
        if trees.is_empty() {
            return Err(Error::Failed(
                "no control groups are mounted (/sys/fs/cgroup): mount them".to_owned(),
            ));
        }
        self.make_in(&trees)
    }

    /// Makes it in some trees.
    pub(crate) fn make_in(&self, trees: &[Tree]) -> Result<(), Error> {
        // Another state folder may remove the empty parent `weir` between two steps.
        for _ in 1..ATTEMPTS {
            match self.make_once_in(trees) {
                Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
                done => return done,
            }
        }
        self.make_once_in(trees)
    }

    fn make_once_in(&self, trees: &[Tree]) -> Result<(), Error> {
        for tree in trees {
            let mut folder = tree.top().to_owned();
            let controllers: Vec<&str> = match tree {
                Tree::Two { memory, io, .. } => {
                    [memory.then_some("memory"), io.then_some("io")].into_iter().flatten().collect()
                }
                _ => Vec::new(),
            };
            for (depth, part) in self.name.split('/').enumerate() {
                if depth > 0 {
                    subtree_control::enable(&folder, &controllers)?;
                }
                folder.push(part);
                match fs::create_dir(&folder) {
                    Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                        return Err(Error::io("cannot make", &folder)(error));
                    }
                    _ => {}
                }
                if depth == 0 {
                    subtree_control::enable_at_top(tree.top(), &folder, &controllers)?;
                }
            }
        }
        Ok(())
    }

    /// Limits its memory, pages of files among it, and reads that back.
    ///
    /// # Errors
    /// This host cannot limit memory, or set another limit.
    pub fn limit_memory(&self, bytes: u64) -> Result<(), Error> {
        let Some(path) = self.memory_file("memory.limit_in_bytes", "memory.max") else {
            return Err(Error::Failed(
                "control groups of this host cannot limit memory (no memory controller)".to_owned(),
            ));
        };
        fs::write(&path, bytes.to_string()).map_err(Error::io("cannot write", &path))?;
        // The kernel rounds to pages.
        match read_number(&path) {
            Some(found) if found.abs_diff(bytes) < 1 << 20 => Ok(()),
            found => Err(Error::Failed(format!("{} says {found:?}, not {bytes}", path.display()))),
        }
    }

    /// The files that a process writes `0`, or its number, to in order to join.
    pub fn member_files(&self) -> Vec<PathBuf> {
        trees().iter().map(|tree| tree.top().join(&self.name).join("cgroup.procs")).collect()
    }

    /// Has a program begin in it: the new process joins before it becomes the program.
    ///
    /// # Errors
    /// A path holds a NUL.
    pub fn admit(&self, command: &mut Command) -> Result<(), Error> {
        let text = |path: PathBuf| {
            CString::new(path.as_os_str().as_bytes())
                .map_err(|_| Error::Refused(format!("{}: holds a NUL", path.display())))
        };
        let member_files: Vec<CString> =
            self.member_files().into_iter().map(text).collect::<Result<_, _>>()?;
        // SAFETY: between fork and exec only system calls are made, on memory that was laid out before.
        unsafe { command.pre_exec(move || member_files.iter().try_for_each(|file| enter(file))) };
        Ok(())
    }

    /// Moves this process into the group. Earlier memory use stays charged to the former group.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn join(&self) -> Result<(), Error> {
        self.member_files()
            .iter()
            .try_for_each(|file| fs::write(file, "0").map_err(Error::io("cannot join a group by", file)))
    }

    /// Moves this process back to the groups that [`Group::here`] returned.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn leave(came_from: &[(PathBuf, PathBuf)]) -> Result<(), Error> {
        for (top, group) in came_from {
            let file = top.join(group).join("cgroup.procs");
            fs::write(&file, "0").map_err(Error::io("cannot return to a group by", &file))?;
        }
        Ok(())
    }

    /// Where this process is now: the top of each tree, and the group below it. For [`Group::leave`].
    pub fn here() -> Vec<(PathBuf, PathBuf)> {
        let table = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let of = |controller: &str| {
            let line = table.lines().find_map(|line| {
                let mut fields = line.splitn(3, ':').skip(1);
                let (names, group) = (fields.next()?, fields.next()?);
                let is = if controller.is_empty() {
                    names.is_empty()
                } else {
                    names.split(',').any(|name| name == controller)
                };
                is.then(|| group.trim_start_matches('/').to_owned())
            });
            line.map(PathBuf::from)
        };
        let place = |tree: Tree| {
            let group = match &tree {
                Tree::Two { .. } => of(""),
                Tree::Memory(_) => of("memory"),
                Tree::Cpu(_) => of("cpuacct"),
                Tree::Blkio(_) => of("blkio"),
            };
            Some((tree.top().to_owned(), group?))
        };
        trees().into_iter().filter_map(place).collect()
    }

    /// Processes in it and in those within it.
    pub fn processes(&self) -> Vec<i32> {
        let mut found: Vec<i32> = Vec::new();
        for tree in trees() {
            let mut waiting = vec![tree.top().join(&self.name)];
            while let Some(folder) = waiting.pop() {
                let text = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
                found.extend(text.lines().filter_map(|line| line.parse::<i32>().ok()).filter(|pid| *pid > 1));
                waiting.extend(folders(&folder));
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Memory use of the group and its children; `None` if the host does not count it.
    pub fn memory(&self) -> Option<Memory> {
        let two = self.memory_file("", "memory.max").filter(|path| path.ends_with("memory.max")).is_some();
        let stat = fs::read_to_string(self.memory_file("memory.stat", "memory.stat")?).ok()?;
        let used_bytes = read_number(&self.memory_file("memory.usage_in_bytes", "memory.current")?)?;
        let limit = read_number(&self.memory_file("memory.limit_in_bytes", "memory.max")?);
        let (cache, anonymous) = if two { ("file", "anon") } else { ("total_cache", "total_rss") };
        Some(Memory {
            // Version 1 represents "none" by the largest number of pages.
            limit_bytes: limit.filter(|limit| *limit < 1 << 62),
            used_bytes,
            cache_bytes: field(&stat, cache)?,
            anonymous_bytes: field(&stat, anonymous)?,
        })
    }

    /// Processor time of it and of those within it; `None` where the host does not count that.
    pub fn cpu(&self) -> Option<Cpu> {
        let trees = trees();
        let at = |tree: &Tree, file: &str| tree.top().join(&self.name).join(file);
        if let Some(tree) = trees.iter().find(|tree| matches!(tree, Tree::Cpu(_))) {
            let user_ns = read_number(&at(tree, "cpuacct.usage_user"))?;
            return Some(Cpu { user_ns, system_ns: read_number(&at(tree, "cpuacct.usage_sys"))? });
        }
        let tree = trees.iter().find(|tree| matches!(tree, Tree::Two { .. }))?;
        let stat = fs::read_to_string(at(tree, "cpu.stat")).ok()?;
        Some(Cpu {
            user_ns: field(&stat, "user_usec")? * 1000,
            system_ns: field(&stat, "system_usec")? * 1000,
        })
    }

    /// Kills the processes of the group and its children, but for this one.
    pub fn kill(&self) {
        let own = i32::try_from(std::process::id()).unwrap_or(0);
        for pid in self.processes().into_iter().filter(|pid| *pid != own) {
            // Whatever is in the group was started by its owner. A process that has ended is no error.
            let _ = Pid::from_raw(pid).map(|pid| kill_process(pid, Signal::KILL));
        }
    }

    /// Kills the processes of the group and its children, and removes the groups. Returns whether the group existed.
    ///
    /// # Errors
    /// It is not empty after some seconds.
    pub fn remove(&self) -> Result<bool, Error> {
        let mut was_there = false;
        let mut last = None;
        for attempt in 0..100 {
            self.kill();
            last = None;
            for tree in trees() {
                let folder = tree.top().join(&self.name);
                if folder.is_dir() {
                    was_there = true;
                    if let Err(error) = remove_tree(&folder) {
                        last = Some((folder, error));
                    }
                }
            }
            if last.is_none() {
                break;
            }
            sleep(Duration::from_millis(if attempt < 20 { 10 } else { 50 }));
        }
        match last {
            Some((folder, error)) => Err(Error::io("cannot remove", &folder)(error)),
            None => {
                // Empty parents.
                for tree in trees() {
                    let mut folder = tree.top().join(&self.name);
                    while folder.pop() && folder != tree.top() {
                        if folder.parent() == Some(tree.top()) {
                            subtree_control::remove(tree.top(), &folder);
                        } else {
                            let _ = fs::remove_dir(&folder);
                        }
                    }
                }
                Ok(was_there)
            }
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn memory_file(&self, one: &str, two: &str) -> Option<PathBuf> {
        trees().iter().find_map(|tree| match tree {
            Tree::Memory(top) => Some(top.join(&self.name).join(one)),
            Tree::Two { top, memory: true, .. } => Some(top.join(&self.name).join(two)),
            _ => None,
        })
    }
}

/// Moves this process into a group by one of its `cgroup.procs`. Only system calls: after a fork other threads' locks may be held.
pub(crate) fn enter(file: &CStr) -> io::Result<()> {
    let to = rustix::fs::open(file, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(to, b"0")?;
    Ok(())
}

fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect()
}

/// Groups are removed from within; their files go with them.
fn remove_tree(folder: &Path) -> io::Result<()> {
    folders(folder).iter().try_for_each(|inner| remove_tree(inner))?;
    fs::remove_dir(folder)
}

fn read_number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// `NAME NUMBER` on a line of its own.
fn field(stat: &str, name: &str) -> Option<u64> {
    stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_layouts_are_found() {
        let one = b"1 0 0:1 / /c/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n1 0 0:2 / /c/memory rw - cgroup cgroup rw,memory\n\
                    1 0 0:3 / /c/systemd rw - cgroup cgroup rw,name=systemd\n1 0 0:4 / /c/unified rw - cgroup2 cgroup2 rw\n";
        let in_table =
            |table: &[u8], controls: fn(&Path, &str) -> bool| in_table(mounts::parse(table), controls);
        let found = in_table(one, |_, _| false);
        assert_eq!(found.len(), 3);
        assert_eq!(found[1], Tree::Memory("/c/memory".into()));
        let two =
            in_table(b"1 0 0:1 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n", |_, name| name == "io");
        assert_eq!(two, [Tree::Two { top: "/sys/fs/cgroup".into(), memory: false, io: true }]);
        let disks = in_table(b"1 0 0:1 / /c/blkio rw - cgroup cgroup rw,blkio\n", |_, _| false);
        assert_eq!(disks, [Tree::Blkio("/c/blkio".into())]);
    }

    #[test]
    fn state_folders_have_groups_of_their_own() {
        assert_eq!(Group::of_state(Path::new("/run/weir")).within("run").name, "weir/run-weir/run");
        assert_ne!(Group::of_state(Path::new("/a")), Group::of_state(Path::new("/b")));
    }

    #[test]
    fn folders_of_the_same_letters_have_groups_of_their_own() {
        let long = |end: &str| format!("/{}{end}/{}", "x".repeat(90), "y".repeat(120));
        for (one, other) in [
            ("/run/weir".to_owned(), "/run-weir".to_owned()),
            ("/tmp/a/b".to_owned(), "/tmp/a-b".to_owned()),
            ("/tmp/a.b".to_owned(), "/tmp/a-b".to_owned()),
            (long("1"), long("2")),
        ] {
            let group = |path: &str| Group::of_state(Path::new(path)).name;
            assert_ne!(group(&one), group(&other));
            assert!(group(&one).len() < 200 && group(&one).matches('/').count() == 1);
        }
    }

    #[test]
    fn a_field_is_a_whole_name() {
        assert_eq!(field("cache 1\ntotal_cache 2\n", "total_cache"), Some(2));
        assert_eq!(field("filed 1\n", "file"), None);
    }
}
