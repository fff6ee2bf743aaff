//! The host's clocks, in nanoseconds.

use std::time::{SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

/// Now on `CLOCK_MONOTONIC`: the clock of all tables of a run, of `bpf_ktime_get_ns` and of the block server.
pub fn monotonic_ns() -> i64 {
    read(ClockId::Monotonic)
}

/// CPU time that the calling thread has used, in seconds.
pub fn thread_cpu_seconds() -> f64 {
    read(ClockId::ThreadCPUTime) as f64 * 1e-9
}

/// Wall clock minus `CLOCK_MONOTONIC`: constant unless the wall clock is set.
pub fn wall_minus_monotonic_ns() -> i64 {
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(wall.as_nanos()).unwrap_or(0) - monotonic_ns()
}

fn read(clock: ClockId) -> i64 {
    let now = clock_gettime(clock);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_move_forward() {
        let (began, used) = (monotonic_ns(), thread_cpu_seconds());
        while monotonic_ns() - began < 2_000_000 {}
        assert!(thread_cpu_seconds() > used);
        assert!((wall_minus_monotonic_ns() - wall_minus_monotonic_ns()).abs() < 1_000_000_000);
    }
}
