//! Time that this machine's processors were not given, though they had work: other guests of its host had it.

use std::fs;

use serde::Serialize;

/// Ticks of all processors since boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticks {
    /// Of any kind.
    all: u64,
    /// With work to do: neither idle nor waiting for a disk.
    wanted: u64,
    /// Of these, not had.
    stolen: u64,
}

/// What a hypervisor withheld.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Stolen {
    /// Share of the time that processors had work and did not run.
    pub(crate) of_wanted: f64,
    /// The same as a share of all time.
    pub(crate) of_all: f64,
}

impl Ticks {
    /// Until now; `None` where the kernel does not say.
    pub(crate) fn now() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// proc(5): user, nice, system, idle, iowait, irq, softirq, steal; what follows is in user and nice already.
    fn parse(stat: &str) -> Option<Self> {
        let mut words = stat.lines().next()?.split_ascii_whitespace();
        if words.next()? != "cpu" {
            return None;
        }
        let ticks: Vec<u64> = words.map(str::parse).collect::<Result<_, _>>().ok()?;
        let stolen = *ticks.get(7)?;
        let all = ticks[..8].iter().sum();
        Some(Ticks { all, wanted: all - ticks[3] - ticks[4], stolen })
    }

    /// Of the time from `before` until then.
    pub(crate) fn since(self, before: Self) -> Stolen {
        let stolen = self.stolen.saturating_sub(before.stolen) as f64;
        let of = |all: u64| if all == 0 { 0.0 } else { stolen / all as f64 };
        Stolen {
            of_wanted: of(self.wanted.saturating_sub(before.wanted)),
            of_all: of(self.all.saturating_sub(before.all)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_stolen_is_a_share_of_the_time_and_of_the_work() {
        let ticks = |text| Ticks::parse(text).unwrap();
        let before = ticks("cpu  100 0 50 800 50 0 0 10 7 0\ncpu0 1 2\n");
        let after = ticks("cpu  130 0 60 850 50 0 0 20 9 0\n");
        assert_eq!(after.since(before), Stolen { of_wanted: 0.2, of_all: 0.1 });
        assert_eq!(before.since(before), Stolen { of_wanted: 0.0, of_all: 0.0 });
    }

    #[test]
    fn what_no_kernel_writes_is_not_read() {
        for text in ["", "cpu0 1 2 3 4 5 6 7 8\n", "cpu 1 2 3\n", "cpu 1 2 3 4 5 6 7 x\n"] {
            assert_eq!(Ticks::parse(text), None);
        }
        assert!(Ticks::now().is_some());
    }
}
