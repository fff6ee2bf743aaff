//! Reconciliation of recorded requests with the kernel's counters.

use serde::Serialize;

use crate::block::Counters;
use crate::disk::DiskStatistics;

/// Recorded requests compared with the kernel's counters.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Reconciliation {
    /// Source: `bpf`, `ftrace` or `blktrace`.
    pub source: String,
    /// Mode of `bpf`: `full` or `lean`.
    pub mode: Option<String>,
    /// Number of rows.
    pub rows: u64,
    /// Rows whose completion a second source supplied.
    pub filled: u64,
    /// Requests without a recorded completion that are not outstanding at the device: rows without `completed_ns`, or (ring buffer
    /// full, mode `lean`) no rows.
    pub lost: u64,
    /// Outstanding requests at the end of the recording: rows without `completed_ns`, not losses.
    pub in_flight_at_stop: u64,
    /// Requests that completed during the recording but began before it: no rows.
    pub in_flight_at_start: u64,
    /// Bios that ended without a request, such as those refused with `EAGAIN` for lack of a tag.
    pub ended_without_request: u64,
    /// Requests of all devices that neither rows nor losses explain.
    pub unexplained: u64,
    /// Whether requests, sectors and merges of every device agree, except for counted losses.
    pub agrees: bool,
    /// Reconciliation by device.
    pub devices: Vec<DeviceReconciliation>,
    /// Counts by CPU, of all devices.
    pub cpus: Vec<CpuCount>,
    /// Runs of each BPF program.
    pub programs: Vec<ProgramRun>,
}

/// One device's part of a [`Reconciliation`].
#[derive(Debug, Clone, Serialize)]
pub struct DeviceReconciliation {
    /// The kernel's name of the disk.
    pub device: String,
    /// Whether the kernel keeps statistics for the disk (`queue/iostats`); without them nothing is compared.
    pub comparable: bool,
    /// Increase of `/sys/block/DEV/stat` during the recording.
    pub kernel: DiskStatistics,
    /// Counters of the collector.
    pub seen: Counters,
    /// Requests that arrived or completed while both counters were read: an uncertainty.
    pub margin: u64,
    /// Issued requests whose completion was not seen, by group: reads, writes, discards, flushes.
    pub hidden: [u64; 4],
    /// Difference between both counts of requests, beyond `hidden` and `margin`.
    pub unexplained_requests: u64,
    /// The same for 512-byte sectors; absent if `hidden` or `margin` is not 0.
    pub unexplained_sectors: Option<u64>,
    /// The same for merges.
    pub unexplained_merges: Option<u64>,
}

/// One CPU's part of a [`Reconciliation`].
#[derive(Debug, Clone, Serialize)]
pub struct CpuCount {
    /// The CPU.
    pub cpu: usize,
    /// Bios that arrived on it.
    pub bios_queued: u64,
    /// Requests issued from it.
    pub issued: u64,
    /// Requests completed on it.
    pub completed: u64,
    /// Events lost on it because a buffer was full.
    pub buffer_full: u64,
    /// Requests dropped because the table was full.
    pub evicted: u64,
}

/// Runs of a BPF program.
#[derive(Debug, Clone, Serialize)]
pub struct ProgramRun {
    /// Its name in `block.bpf.c`.
    pub name: String,
    /// Runs; counted by the kernel only while `kernel.bpf_stats_enabled` is 1.
    pub runs: u64,
    /// Run time, under the same condition.
    pub run_time_ns: u64,
    /// Runs skipped by the kernel because the program was already running on that CPU.
    pub recursion_misses: u64,
}

/// Two readings of the counters with one of the kernel's statistics between them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Snapshot {
    pub(crate) before: Counters,
    pub(crate) kernel: DiskStatistics,
    pub(crate) after: Counters,
}

impl DeviceReconciliation {
    pub(crate) fn new(
        device: String,
        comparable: bool,
        start: &Snapshot,
        stop: &Snapshot,
        hidden: [u64; 4],
    ) -> Self {
        let kernel = stop.kernel.since(&start.kernel);
        let least = stop.before.since(&start.after);
        let most = stop.after.since(&start.before);
        // The kernel counts a request shortly after its completion event: during traffic each CPU can be in between. Without traffic
        // the two readings around the kernel's are equal.
        let busy = most.completions() != least.completions()
            || start.kernel.in_flight != 0
            || stop.kernel.in_flight != 0;
        let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u64);
        let slack = if busy { 2 * cpus } else { 0 };
        let counted = [kernel.reads, kernel.writes, kernel.discards, kernel.flushes];
        let mut unexplained_requests = 0;
        for (group, count) in counted.into_iter().enumerate() {
            let seen_least = least.completed[group] + hidden[group];
            let seen_most = most.completed[group] + hidden[group];
            unexplained_requests += distance(count, seen_least.saturating_sub(slack), seen_most + slack);
        }
        let exact = !busy && hidden.iter().sum::<u64>() == 0;
        let sectors = [kernel.read_sectors, kernel.written_sectors, kernel.discarded_sectors];
        let unexplained_sectors = (exact && comparable)
            .then(|| sectors.iter().zip(least.sectors).map(|(count, seen)| count.abs_diff(seen)).sum());
        let unexplained_merges = (!busy && comparable).then(|| kernel.merges.abs_diff(least.merges()));
        DeviceReconciliation {
            device,
            comparable,
            kernel,
            seen: most,
            margin: most.completions() - least.completions() + slack,
            hidden,
            unexplained_requests: if comparable { unexplained_requests } else { 0 },
            unexplained_sectors,
            unexplained_merges,
        }
    }

    /// Whether every request is explained.
    pub fn agrees(&self) -> bool {
        self.comparable
            && self.unexplained_requests == 0
            && self.unexplained_sectors.unwrap_or(0) == 0
            && self.unexplained_merges.unwrap_or(0) == 0
    }
}

impl Reconciliation {
    /// Lost and unexplained requests, as a share of those that the kernel counted; 0 without requests.
    pub fn loss_share(&self) -> f64 {
        let requests: u64 = self.devices.iter().map(|device| device.kernel.requests()).sum();
        let missing = self.lost - self.filled.min(self.lost) + self.unexplained;
        if requests == 0 { if missing == 0 { 0.0 } else { 1.0 } } else { missing as f64 / requests as f64 }
    }

    /// Summary in one line.
    pub fn summary(&self) -> String {
        let requests: u64 = self.devices.iter().map(|device| device.kernel.requests()).sum();
        let mode = self.mode.as_deref().map(|mode| format!(" {mode}")).unwrap_or_default();
        format!(
            "{}{mode}: {} rows, kernel counted {requests} requests, lost {}{}, unexplained {}, in flight {} at start, {} at stop",
            self.source,
            self.rows,
            self.lost,
            if self.filled > 0 { format!(" (filled {})", self.filled) } else { String::new() },
            self.unexplained,
            self.in_flight_at_start,
            self.in_flight_at_stop,
        )
    }
}

/// Distance of `value` from the interval.
fn distance(value: u64, least: u64, most: u64) -> u64 {
    least.saturating_sub(value).max(value.saturating_sub(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(reads: u64, seen: u64) -> Snapshot {
        let counters =
            Counters { completed: [seen, 0, 0, 0], sectors: [seen * 8, 0, 0, 0], ..Default::default() };
        let kernel = DiskStatistics { reads, read_sectors: reads * 8, ..Default::default() };
        Snapshot { before: counters, kernel, after: counters }
    }

    fn reconcile(stop: &Snapshot, hidden: u64) -> DeviceReconciliation {
        DeviceReconciliation::new("loop9".to_owned(), true, &snapshot(100, 0), stop, [hidden, 0, 0, 0])
    }

    #[test]
    fn equal_counts_agree() {
        assert!(reconcile(&snapshot(150, 50), 0).agrees());
    }

    #[test]
    fn a_request_that_only_the_kernel_saw_is_unexplained_unless_it_is_a_counted_loss() {
        let found = reconcile(&snapshot(150, 49), 0);
        assert_eq!((found.unexplained_requests, found.agrees()), (1, false));
        assert!(reconcile(&snapshot(150, 49), 1).agrees());
    }

    #[test]
    fn a_request_that_only_the_collector_saw_is_unexplained() {
        assert_eq!(reconcile(&snapshot(150, 52), 0).unexplained_requests, 2);
    }

    #[test]
    fn what_came_while_counting_is_no_difference() {
        let mut stop = snapshot(150, 45);
        stop.after.completed[0] = 60;
        assert!(reconcile(&stop, 0).agrees());
    }

    #[test]
    fn the_share_counts_what_is_lost_and_not_filled() {
        let mut found = Reconciliation {
            lost: 3,
            filled: 1,
            unexplained: 2,
            devices: vec![reconcile(&snapshot(150, 50), 0)],
            ..Default::default()
        };
        assert!((found.loss_share() - 4.0 / 50.0).abs() < 1e-12);
        found.devices.clear();
        assert!((found.loss_share() - 1.0).abs() < 1e-12);
    }
}
