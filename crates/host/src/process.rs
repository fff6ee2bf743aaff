//! Process identity: pid and start time. A pid alone is given again.

use std::fs;

use serde::{Deserialize, Serialize};

/// A process that cannot be confused with a later one of the same pid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Its pid.
    pub pid: u32,
    /// When it started, in clock ticks since boot (`/proc/PID/stat`, field 22).
    pub started_ticks: u64,
}

impl Identity {
    /// This process.
    #[must_use]
    pub fn own() -> Self {
        let pid = std::process::id();
        Identity { pid, started_ticks: look(pid).map_or(0, |(_, ticks)| ticks) }
    }

    /// The living process of a pid; `None` if there is none.
    #[must_use]
    pub fn of(pid: u32) -> Option<Self> {
        look(pid).filter(|(state, _)| runs(*state)).map(|(_, started_ticks)| Identity { pid, started_ticks })
    }

    /// Whether it runs. A zombie does not: it has ended and only waits to be reaped.
    #[must_use]
    pub fn is_alive(self) -> bool {
        Identity::of(self.pid) == Some(self)
    }
}

fn runs(state: char) -> bool {
    !matches!(state, 'Z' | 'X' | 'x')
}

/// State letter and start time.
fn look(pid: u32) -> Option<(char, u64)> {
    parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn parse(stat: &str) -> Option<(char, u64)> {
    // proc_pid_stat(5): fields 3 and 22. The name in field 2 may hold blanks and parentheses, but ends with the last one.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(18)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let stat = "7 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20";
        assert_eq!(parse(stat), Some(('S', 4242)));
    }

    #[test]
    fn this_process_is_alive_and_another_start_time_is_not() {
        let own = Identity::own();
        assert!(own.is_alive());
        assert!(!Identity { started_ticks: own.started_ticks + 1, ..own }.is_alive());
    }

    #[test]
    fn a_zombie_is_not_alive() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        // Not reaped: it stays in the process table.
        while look(pid).is_some_and(|(state, _)| runs(state)) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let (state, started_ticks) = look(pid).unwrap();
        assert_eq!(state, 'Z');
        assert!(!Identity { pid, started_ticks }.is_alive());
        child.wait().unwrap();
    }
}
