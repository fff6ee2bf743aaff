//! Counter readings at start and stop, and the losses between them.

use super::attach::{Leftovers, Mode};
use super::counters::{GROUPS, group_of};
use crate::disk::Disk;
use crate::reconcile::{DeviceReconciliation, Reconciliation, Snapshot};

/// Readings at start and stop; one entry per device.
pub(super) struct Readings<'a> {
    pub(super) devices: &'a [Disk],
    pub(super) starts: &'a [Snapshot],
    pub(super) stops: &'a [Snapshot],
    pub(super) leftovers: &'a [Leftovers],
}

impl Readings<'_> {
    /// Reconciliation without rows, CPUs and programs, which are not known here.
    pub(super) fn reconcile(&self, mode: Mode) -> Reconciliation {
        let mut found = Reconciliation {
            source: "bpf".to_owned(),
            mode: Some(mode.name().to_owned()),
            agrees: true,
            ..Default::default()
        };
        for (index, disk) in self.devices.iter().enumerate() {
            let (start, stop, left) = (&self.starts[index], &self.stops[index], &self.leftovers[index]);
            let seen = stop.after.since(&start.before);
            // Requests still at the driver were issued last; earlier ones completed unseen.
            let mut issued: Vec<_> = left.issued.iter().collect();
            issued.sort_by_key(|event| event.issued_ns);
            let with_driver = usize::try_from(stop.kernel.in_flight).unwrap_or(usize::MAX);
            let unseen = issued.len().saturating_sub(with_driver);
            let mut hidden = seen.hidden;
            for event in &issued[..unseen] {
                hidden[group_of(event.cmd_flags) % GROUPS] += 1;
            }
            found.in_flight_at_stop += (issued.len() - unseen) as u64;
            found.in_flight_at_start += seen.before_start;
            if stop.kernel.in_flight == 0 {
                found.ended_without_request += left.queued;
            }
            let mut device = DeviceReconciliation::new(
                disk.name.to_string(),
                disk.keeps_statistics(),
                start,
                stop,
                hidden,
            );
            found.lost +=
                hidden.iter().sum::<u64>() + seen.completions_ring_full + seen.unseen_until_completion;
            if mode == Mode::Lean {
                // Without a table, hidden completions are those that only the kernel counted.
                found.lost += std::mem::take(&mut device.unexplained_requests);
                device.unexplained_sectors = None;
                device.unexplained_merges = None;
            }
            found.unexplained += device.unexplained_requests;
            found.agrees &= device.agrees();
            found.devices.push(device);
        }
        found
    }
}
