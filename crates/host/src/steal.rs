//! CPU steal: runnable time that the hypervisor gave to other guests (`steal` of proc(5)).

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any, resume_unwind};

use serde::Serialize;

/// Share of runnable time from which on CPU steal excuses what came too late.
pub const DISTURBING_SHARE: f64 = 0.02;

/// How often [`undisturbed`] tries.
const ATTEMPTS: u32 = 3;

/// Ticks of all processors since boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticks {
    /// All ticks.
    all: u64,
    /// With work to do: neither idle nor waiting for a disk.
    wanted: u64,
    /// CPU steal: ticks of `wanted` that the hypervisor gave to other guests.
    steal: u64,
}

/// CPU steal of an interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Steal {
    /// Share of the time that processors had work and did not run.
    pub of_wanted: f64,
    /// The same as a share of all time.
    pub of_all: f64,
}

impl Ticks {
    /// Until now; `None` where the kernel does not say.
    pub fn now() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// Takes text apart.
    #[doc(hidden)]
    pub fn fuzzing(stat: &str) {
        let _ = Self::parse(stat).map(|found| found.since(found));
    }

    /// proc(5): user, nice, system, idle, iowait, irq, softirq, steal; what follows is in user and nice already.
    fn parse(stat: &str) -> Option<Self> {
        let mut words = stat.lines().next()?.split_ascii_whitespace();
        if words.next()? != "cpu" {
            return None;
        }
        let ticks: Vec<u64> = words.map(str::parse).collect::<Result<_, _>>().ok()?;
        let steal = *ticks.get(7)?;
        let all = ticks[..8].iter().fold(0, |sum: u64, ticks| sum.saturating_add(*ticks));
        Some(Ticks { all, wanted: all.saturating_sub(ticks[3]).saturating_sub(ticks[4]), steal })
    }

    /// Of the time from `before` until then.
    pub fn since(self, before: Self) -> Steal {
        let steal = self.steal.saturating_sub(before.steal) as f64;
        let of = |all: u64| if all == 0 { 0.0 } else { steal / all as f64 };
        Steal {
            of_wanted: of(self.wanted.saturating_sub(before.wanted)),
            of_all: of(self.all.saturating_sub(before.all)),
        }
    }
}

/// Why a check came to an end that is of time alone.
struct TooLate;

/// A condition on time alone, within a check in [`undisturbed`].
///
/// # Panics
/// If it does not hold, in a way that [`undisturbed`] tells from all other panics; `words` are printed.
pub fn in_time(holds: bool, words: impl std::fmt::Display) {
    if !holds {
        eprintln!("too late: {words}");
        panic_any(TooLate);
    }
}

/// For tests with time bounds: runs a check, and repeats it if [`in_time`] failed during CPU steal.
///
/// A check that was late in every attempt, each disturbed by CPU steal, is not judged: a message says so.
///
/// # Panics
/// If the check panics other than by [`in_time`], or is late without CPU steal.
pub fn undisturbed(check: impl Fn()) {
    judge(check, Ticks::now);
}

fn judge(check: impl Fn(), mut now: impl FnMut() -> Option<Ticks>) {
    for attempt in 1..=ATTEMPTS {
        let before = now();
        let Err(panic) = catch_unwind(AssertUnwindSafe(&check)) else { return };
        let steal = before.zip(now()).map_or(0.0, |(before, after)| after.since(before).of_wanted);
        if steal < DISTURBING_SHARE || !panic.is::<TooLate>() {
            resume_unwind(panic);
        }
        eprintln!("attempt {attempt} failed; CPU steal was {:.0} % of the runnable time", steal * 100.0);
    }
    eprintln!("not judged: every attempt was disturbed by CPU steal");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_is_a_share_of_all_time_and_of_runnable_time() {
        let ticks = |text| Ticks::parse(text).unwrap();
        let before = ticks("cpu  100 0 50 800 50 0 0 10 7 0\ncpu0 1 2\n");
        let after = ticks("cpu  130 0 60 850 50 0 0 20 9 0\n");
        assert_eq!(after.since(before), Steal { of_wanted: 0.2, of_all: 0.1 });
        assert_eq!(before.since(before), Steal { of_wanted: 0.0, of_all: 0.0 });
    }

    #[test]
    fn what_no_kernel_writes_is_not_read() {
        for text in ["", "cpu0 1 2 3 4 5 6 7 8\n", "cpu 1 2 3\n", "cpu 1 2 3 4 5 6 7 x\n"] {
            assert_eq!(Ticks::parse(text), None);
        }
        assert!(Ticks::now().is_some());
    }

    /// Attempts at a check that is late the first `fails` times, at a CPU steal of `steal_percent`; and whether it fails in the end.
    fn tried(fails: u32, steal_percent: u64) -> (u32, bool) {
        let (made, mut all) = (std::cell::Cell::new(0), 0);
        let now = || {
            all += 100;
            Some(Ticks { all, wanted: all, steal: all / 100 * steal_percent })
        };
        let check = || {
            made.set(made.get() + 1);
            in_time(made.get() > fails, "meant to be");
        };
        let judged = catch_unwind(AssertUnwindSafe(|| judge(check, now)));
        (made.get(), judged.is_err())
    }

    #[test]
    fn only_what_had_its_processors_is_judged() {
        assert_eq!(tried(0, 0), (1, false));
        assert_eq!(tried(0, 50), (1, false));
        assert_eq!(tried(1, 0), (1, true));
        assert_eq!(tried(1, 50), (2, false));
        assert_eq!(tried(9, 50), (3, false));
        assert_eq!(tried(9, 1), (1, true));
    }

    #[test]
    fn what_is_not_of_time_is_never_forgiven() {
        let mut all = 0;
        let now = || {
            all += 100;
            Some(Ticks { all, wanted: all, steal: all / 2 })
        };
        let made = std::cell::Cell::new(0);
        let check = || {
            made.set(made.get() + 1);
            assert_eq!(1, 2, "meant to fail");
        };
        assert!(catch_unwind(AssertUnwindSafe(|| judge(check, now))).is_err());
        assert_eq!(made.get(), 1);
    }
}
