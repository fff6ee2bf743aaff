//! Service model of a disk for schedulers. `service_model_flash` has flash devices.

use std::ops::Range;

use weir_scheduler::{Request, ServiceModel};

use crate::controller::Controller;
use crate::device::{Device, IoRequest, Op, SECTOR_BYTES};
use crate::disk::Disk;
use crate::geometry::Location;

impl From<&Request> for IoRequest {
    /// The request for the device, with the same tag.
    fn from(request: &Request) -> Self {
        Self {
            tag: request.tag,
            op: request.op,
            offset_bytes: request.offset_bytes,
            size_bytes: request.size_bytes,
        }
    }
}

fn offset_inside(capacity_bytes: u64, request: &Request) -> u64 {
    request.offset_bytes.min(capacity_bytes.saturating_sub(SECTOR_BYTES))
}

/// A request as a device of `capacity_bytes` would take it: what reaches behind the end is cut off.
pub(crate) fn inside(capacity_bytes: u64, request: &Request) -> IoRequest {
    let offset_bytes = offset_inside(capacity_bytes, request);
    let most = u32::try_from(capacity_bytes - offset_bytes).unwrap_or(u32::MAX);
    IoRequest { offset_bytes, size_bytes: request.size_bytes.clamp(1, most.max(1)), ..request.into() }
}

/// Addresses beyond the end count as the last sector, and requests are cut at the end: a scheduler may query any address;
/// the device refuses invalid requests.
impl Disk {
    fn locate(&self, offset_bytes: u64) -> Location {
        self.mechanism().geometry.locate(self.sector_at(offset_bytes))
    }

    fn cylinder_at(&self, offset_bytes: u64) -> u32 {
        self.mechanism().geometry.cylinder(self.sector_at(offset_bytes))
    }

    fn sector_at(&self, offset_bytes: u64) -> u64 {
        (offset_bytes / SECTOR_BYTES).min(self.mechanism().geometry.sectors().saturating_sub(1))
    }

    fn inside(&self, request: &Request) -> IoRequest {
        inside(Device::capacity_bytes(self), request)
    }

    /// From `begin_ns` until the request's first sector is under the head; 0 if a buffer answers it.
    #[inline(never)]
    fn reach_ns(&self, begin_ns: u64, request: &Request) -> u64 {
        let (controller, request) = (self.controller(), self.inside(request));
        if controller.is_buffered(begin_ns, &request) {
            0
        } else {
            controller.positioning_ns(begin_ns, &request)
        }
    }

    /// Seek from a track, `wait_ns` of rotation, transfer from a place over the slower side, and overheads.
    fn service_ns(&self, move_ns: u64, wait_ns: u64, at: &Location, request: &IoRequest) -> u64 {
        let controller = self.controller();
        let (first, sectors) = request.sectors();
        let by_revolution = controller.by_revolution_ns(request.op, first..first + sectors);
        let [transfer_ns, lost_ns] = by_revolution
            .unwrap_or_else(|| [controller.mechanism.transfer_from_ns(at, first, sectors, request.op), 0]);
        let interface = controller.interface_times(request, transfer_ns);
        controller.overhead_ns(request.op)
            + (move_ns + wait_ns).max(interface.before_ns + wait_ns)
            + transfer_ns.max(interface.after_start_ns)
            + lost_ns
            + controller.options.completion_overhead_ns
    }

    /// The same of a read track by track, which has no rotational delay: with the wait for the next sector on each track
    /// from some angle, and with the longest one on each.
    fn by_track_ns(&self, move_ns: u64, request: &IoRequest) -> Option<[u64; 2]> {
        let controller = self.controller();
        if !controller.is_by_track(request) {
            return None;
        }
        let (first, sectors) = request.sectors();
        let mechanism = &controller.mechanism;
        let arm = mechanism.geometry.locate(first).arm();
        let mut tracks = 0;
        let (access, delivered_ns) =
            controller.read_by_track(0, arm, first..first + sectors, |_| tracks += 1);
        let end_ns = if controller.interface_limits { delivered_ns } else { access.end_ns };
        let fixed_ns =
            controller.overhead_ns(request.op) + move_ns + controller.options.completion_overhead_ns;
        let least = mechanism.geometry.zones().iter().map(|zone| zone.sectors_per_track).min();
        let sector_ns = mechanism.rotation.revolution_ns() / u64::from(least.unwrap_or(1).max(1)) + 1;
        Some([fixed_ns + end_ns, fixed_ns + end_ns + tracks * sector_ns])
    }
}

impl ServiceModel for Disk {
    fn cylinder(&self, offset_bytes: u64) -> u32 {
        self.cylinder_at(offset_bytes)
    }

    fn head_bytes(&self) -> u64 {
        (self.controller().head_sector * SECTOR_BYTES).min(Device::capacity_bytes(self))
    }

    /// Command overhead, seek and rotation. The arm starts from where reading ahead has taken it; a request that the
    /// buffer answers takes no positioning.
    fn positioning_ns(&self, now_ns: u64, request: &Request) -> u64 {
        let controller = self.controller();
        let begin_ns = self.free_ns().max(now_ns + controller.overhead_ns(request.op));
        let overhead_ns = begin_ns - self.free_ns().max(now_ns);
        let reach_ns = match controller.bare_arm() {
            Some(arm) => {
                let first = offset_inside(Device::capacity_bytes(self), request) / SECTOR_BYTES;
                controller.mechanism.positioning_ns(begin_ns, arm, first, request.op)
            }
            None => self.reach_ns(begin_ns, request),
        };
        overhead_ns + reach_ns
    }

    /// The seek alone, from the possible positions of the arm. A write cache may answer immediately, at any address.
    fn least_positioning_ns(&self, offset_bytes: u64) -> u64 {
        let controller = self.controller();
        if controller.options.write_cache.is_some() {
            return 0;
        }
        let to = self.cylinder_at(offset_bytes);
        let [low, high] = controller.arm_cylinders();
        // The reported position may be that of the last answer from a buffer, with the arm elsewhere: no distance on the
        // way is excluded.
        let is_above = offset_bytes >= ServiceModel::head_bytes(self);
        let distance = if is_above { to.saturating_sub(high) } else { low.saturating_sub(to) };
        // Two pieces of a curve may meet with a step down of a fiftieth (`seek_times`).
        controller.mechanism.seek.time_ns(distance) / 50 * 49
    }

    fn held(&self, tell: &mut dyn FnMut(Range<u64>)) {
        for [first, limit] in self.controller().buffered_sectors() {
            // The sector at the limit may be the next one under the head.
            tell(first * SECTOR_BYTES..(limit + 1) * SECTOR_BYTES);
        }
    }

    fn expected_ns(&self, from_bytes: u64, request: &Request) -> u64 {
        let request = self.inside(request);
        let mechanism = self.mechanism();
        let at = self.locate(request.offset_bytes);
        let move_ns = mechanism.move_ns(self.locate(from_bytes).arm(), at.arm(), request.op);
        if let Some([expected_ns, _]) = self.by_track_ns(move_ns, &request) {
            return expected_ns;
        }
        self.service_ns(move_ns, mechanism.rotation.revolution_ns() / 2, &at, &request)
    }

    /// Without a write cache the arm is where it was left, or as far on as the disk reads ahead. With one it may be
    /// anywhere, and may have the whole cache to write first.
    fn bound_ns(&self, from_bytes: u64, request: &Request) -> u64 {
        let request = self.inside(request);
        let controller = self.controller();
        let mechanism = &controller.mechanism;
        let at = self.locate(request.offset_bytes);
        let distance = if controller.options.write_cache.is_some() {
            mechanism.geometry.cylinders().saturating_sub(1)
        } else {
            // The arm is between the last byte before `from_bytes` and how far the disk reads ahead.
            let ahead_bytes = controller.options.read_ahead_sectors.saturating_mul(SECTOR_BYTES);
            let [low, high] = [from_bytes.saturating_sub(1), from_bytes.saturating_add(ahead_bytes)]
                .map(|bytes| self.cylinder_at(bytes).abs_diff(at.cylinder));
            low.max(high)
        };
        let settle_ns = if request.op == Op::Write { mechanism.write_settle_ns } else { 0 };
        let noise_ns = controller.options.seek_noise_ns;
        let move_ns = mechanism.head_switch_ns.max(mechanism.seek.time_ns(distance) + settle_ns) + noise_ns;
        let longest_ns = match self.by_track_ns(move_ns, &request) {
            Some([_, longest_ns]) => longest_ns,
            None => self.service_ns(move_ns, mechanism.rotation.revolution_ns(), &at, &request),
        };
        longest_ns + controller.longest_destage_ns()
    }

    fn capacity_bytes(&self) -> u64 {
        Device::capacity_bytes(self)
    }
}

/// Time that the interface adds to a platter access.
pub(crate) struct InterfaceTimes {
    /// From the start of the request until the platter's side can start.
    pub before_ns: u64,
    /// From the start of the platter's transfer until the host has all; 0 for writes.
    pub after_start_ns: u64,
}

impl Controller {
    /// The interface's part in a request whose data take `transfer_ns` under the head.
    pub(crate) fn interface_times(&self, request: &IoRequest, transfer_ns: u64) -> InterfaceTimes {
        if !self.interface_limits {
            return InterfaceTimes { before_ns: 0, after_start_ns: 0 };
        }
        let delivery_ns = self.delivery_ns(request.size_bytes);
        // Of a long request only so much is awaited.
        let counted = self.options.watermark_most_bytes.min(u64::from(request.size_bytes));
        let counted = counted as f64 / f64::from(request.size_bytes);
        let part_ns = |whole_ns: u64, share: f64| (whole_ns as f64 * counted * share).round() as u64;
        match request.op {
            Op::Read => InterfaceTimes {
                before_ns: 0,
                after_start_ns: part_ns(transfer_ns, self.options.read_watermark) + delivery_ns,
            },
            Op::Write => InterfaceTimes {
                before_ns: self.options.write_data_delay_ns
                    + part_ns(delivery_ns, self.options.write_watermark)
                        .max(delivery_ns.saturating_sub(transfer_ns)),
                after_start_ns: 0,
            },
        }
    }

    /// How long writing a full write cache to the platter may take; 0 without one.
    fn longest_destage_ns(&self) -> u64 {
        let Some(cache) = self.options.write_cache else { return 0 };
        let Self { mechanism, .. } = self;
        let longest = mechanism.geometry.cylinders().saturating_sub(1);
        let run_ns =
            mechanism.head_switch_ns.max(mechanism.seek.time_ns(longest) + mechanism.write_settle_ns)
                + mechanism.rotation.revolution_ns();
        // Each sector of a run could be on its own track only if tracks had one sector; two revolutions for each track
        // that is touched cover the passing and the change.
        let zones = mechanism.geometry.zones();
        let least = zones.iter().map(|zone| zone.sectors_per_track - zone.spares.sectors_per_track).min();
        let tracks = cache.sectors / u64::from(least.unwrap_or(1).max(1)) + 2 * cache.runs as u64;
        cache.runs as u64 * run_ns + tracks * 2 * mechanism.rotation.revolution_ns()
    }
}
