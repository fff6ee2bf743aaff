//! Attribution of requests to classes: by place on the device, then by the requesting process.

use std::collections::HashMap;
use std::fs;

use weir_vocabulary::IoPriorityClass;

use super::classes::ClassSpec;

/// Maximum age of a process's attributes: it may move to another group, or its PID may be reused.
const KNOWN_FOR_NS: u64 = 100_000_000;
/// Maximum number of cached processes.
const MOST_KNOWN: usize = 4096;
/// From <linux/ioprio.h>.
const IOPRIO_WHO_PROCESS: libc::c_int = 1;

/// Requesting process and connection, if the export provides them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Caller {
    /// The process or thread; 0 if not known. Behind a loop device it is a kernel thread.
    pub pid: u32,
    /// Number of the connection.
    pub stream: u32,
}

/// Marks of a class.
#[derive(Clone, Debug)]
struct Mark {
    /// Ranges, ordered and disjoint: first byte, and the byte after the last.
    parts: Vec<[u64; 2]>,
    stream_bytes: Option<u64>,
    cgroup: Option<String>,
    ioprio: Option<IoPriorityClass>,
}

/// Attributes of a process.
#[derive(Clone, Debug)]
struct ProcessAttributes {
    until_ns: u64,
    /// Its control groups, one of each hierarchy.
    cgroups: Vec<String>,
    ioprio: IoPriorityClass,
}

/// Finds the class of each request.
#[derive(Debug)]
pub(crate) struct Attribution {
    marks: Vec<Mark>,
    rest: u16,
    asks_about_callers: bool,
    known: HashMap<u32, ProcessAttributes>,
}

impl Attribution {
    /// Attribution to classes, of which one has unattributed requests.
    pub fn new(classes: &[ClassSpec]) -> Self {
        let mark = |class: &ClassSpec| Mark {
            parts: class.parts(),
            stream_bytes: class.stream().map(|bytes| bytes.max(1)),
            cgroup: class.cgroup.as_ref().map(|path| path.trim_end_matches('/').to_owned()),
            ioprio: class.ioprio,
        };
        let rest = classes.iter().position(ClassSpec::takes_the_rest).unwrap_or(0) as u16;
        let marks: Vec<Mark> = classes.iter().map(mark).collect();
        let asks_about_callers = marks.iter().any(|mark| mark.cgroup.is_some() || mark.ioprio.is_some());
        Attribution { marks, rest, asks_about_callers, known: HashMap::new() }
    }

    /// Class, and stream within it, of a request at `offset_bytes`.
    pub fn class_of(&mut self, now_ns: u64, offset_bytes: u64, caller: &Caller) -> (u16, u32) {
        let class = self.fitting(now_ns, offset_bytes, caller.pid);
        let stream = match self.marks.get(usize::from(class)) {
            Some(mark @ Mark { stream_bytes: Some(bytes), .. }) if mark.holds(offset_bytes) => {
                ((offset_bytes - mark.parts[0][0]) / bytes).min(u64::from(u32::MAX)) as u32
            }
            _ => caller.stream,
        };
        (class, stream)
    }

    fn fitting(&mut self, now_ns: u64, offset_bytes: u64, pid: u32) -> u16 {
        let Self { marks, known, .. } = self;
        if !self.asks_about_callers {
            let by_range = marks.iter().position(|mark| mark.holds(offset_bytes));
            return by_range.map_or(self.rest, |class| class as u16);
        }
        let known = (pid != 0).then(|| look_up(known, now_ns, pid));
        let fits = |mark: &Mark| {
            (!mark.parts.is_empty() || mark.cgroup.is_some() || mark.ioprio.is_some())
                && (mark.parts.is_empty() || mark.holds(offset_bytes))
                && mark.cgroup.as_ref().is_none_or(|path| known.is_some_and(|known| known.is_in(path)))
                && mark.ioprio.is_none_or(|ioprio| known.is_some_and(|known| known.ioprio == ioprio))
        };
        // A partition comes first, for any process.
        let by_range = marks.iter().position(|mark| !mark.parts.is_empty() && fits(mark));
        by_range.or_else(|| marks.iter().position(fits)).map_or(self.rest, |class| class as u16)
    }
}

impl Mark {
    /// Whether a byte is in one of the ranges.
    fn holds(&self, offset_bytes: u64) -> bool {
        let before = self.parts.partition_point(|[from, _]| *from <= offset_bytes);
        before > 0 && offset_bytes < self.parts[before - 1][1]
    }
}

impl ProcessAttributes {
    fn is_in(&self, path: &str) -> bool {
        let below = |group: &String| {
            group.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.cgroups.iter().any(below)
    }
}

fn look_up(known: &mut HashMap<u32, ProcessAttributes>, now_ns: u64, pid: u32) -> &ProcessAttributes {
    if known.len() >= MOST_KNOWN {
        known.retain(|_, known| known.until_ns > now_ns);
        if known.len() >= MOST_KNOWN {
            known.clear();
        }
    }
    let entry = known.entry(pid).or_insert_with(|| ask(pid, now_ns));
    if entry.until_ns <= now_ns {
        *entry = ask(pid, now_ns);
    }
    entry
}

/// Reads a process's attributes from the kernel; an ended process has no group.
fn ask(pid: u32, now_ns: u64) -> ProcessAttributes {
    let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    // `hierarchy:controllers:path`, a line for each hierarchy.
    let cgroups = text.lines().filter_map(|line| line.splitn(3, ':').nth(2)).map(str::to_owned).collect();
    // SAFETY: takes numbers only.
    let value = unsafe { libc::syscall(libc::SYS_ioprio_get, IOPRIO_WHO_PROCESS, pid as libc::c_int) };
    let ioprio = IoPriorityClass::of_value(value as u16);
    ProcessAttributes { until_ns: now_ns.saturating_add(KNOWN_FOR_NS), cgroups, ioprio }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn classes(marks: &[ClassSpec]) -> Attribution {
        Attribution::new(&super::super::classes::completed(marks))
    }

    #[test]
    fn a_partition_comes_before_whoever_asks() {
        let named = ClassSpec::named;
        let mut attribution = classes(&[
            ClassSpec { cgroup: Some("/".into()), ..named("all") },
            ClassSpec { range_mib: Some([1, 3]), stream_mib: Some(1), ..named("video") },
        ]);
        let caller = Caller { pid: std::process::id(), stream: 9 };
        assert_eq!(attribution.class_of(0, 0, &caller).1, 9);
        assert_eq!(attribution.class_of(0, MIB, &caller), (1, 0));
        assert_eq!(attribution.class_of(0, 3 * MIB - 1, &caller), (1, 1));
        assert_ne!(attribution.class_of(0, 3 * MIB, &caller).0, 1);
        let mut by_bytes = classes(&[ClassSpec {
            range_bytes: Some([100, 400]),
            stream_bytes: Some(150),
            ..named("video")
        }]);
        assert_eq!(by_bytes.class_of(0, 99, &caller).0, 1);
        assert_eq!(by_bytes.class_of(0, 249, &caller), (0, 0));
        assert_eq!(by_bytes.class_of(0, 250, &caller), (0, 1));
        assert_eq!(by_bytes.class_of(0, 400, &caller).0, 1);
        let extents_bytes = vec![[100, 200], [200, 210], [400, 500]];
        let mut by_extents = classes(&[ClassSpec { extents_bytes, ..named("video") }]);
        let inside = |at: u64| matches!(at, 100..=209 | 400..=499);
        for at in 0..600 {
            assert_eq!(by_extents.class_of(0, at, &caller).0 == 0, inside(at), "{at}");
        }
        let unknown = Caller { pid: 0, ..caller };
        assert_eq!(attribution.class_of(0, 0, &unknown).0, 2, "the rest");
    }

    #[test]
    fn a_process_is_told_by_its_groups_and_its_priority() {
        let own = ask(std::process::id(), 5);
        assert!(own.until_ns == 5 + KNOWN_FOR_NS && own.ioprio == IoPriorityClass::BestEffort, "{own:?}");
        let known = ProcessAttributes {
            until_ns: 0,
            cgroups: vec!["/weir/video".into()],
            ioprio: IoPriorityClass::Idle,
        };
        assert!(known.is_in("/weir") && known.is_in("/weir/video") && !known.is_in("/weir/vid"));
        let mut attribution =
            classes(&[ClassSpec { ioprio: Some(IoPriorityClass::BestEffort), ..ClassSpec::named("be") }]);
        let caller = Caller { pid: std::process::id(), ..Caller::default() };
        assert_eq!(attribution.class_of(0, 0, &caller).0, 0);
    }
}
