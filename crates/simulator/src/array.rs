//! A striped array of devices.

use smallvec::{SmallVec, smallvec};

use crate::device::{Completion, Device, IoRequest, RequestError, check};

/// How an address space is striped over devices: stripe unit n is on device n modulo the number of devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Striping {
    /// Bytes of a stripe unit, at least 1.
    pub stripe_unit_bytes: u64,
    /// Devices, at least 1.
    pub devices: u64,
}

/// The part of a request on one device; contiguous there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Which device.
    pub device: usize,
    /// First byte on it.
    pub offset_bytes: u64,
    /// Bytes.
    pub size_bytes: u32,
}

impl Striping {
    /// The parts of a request, at most one for each device, in the order in which their first bytes come.
    pub fn parts(&self, offset_bytes: u64, size_bytes: u32) -> SmallVec<[Part; 4]> {
        if self.devices == 1 {
            return smallvec![Part { device: 0, offset_bytes, size_bytes }];
        }
        let mut parts = SmallVec::<[Part; 4]>::new();
        for (device, on_device_bytes, _, size) in self.units(offset_bytes, size_bytes) {
            match parts.iter_mut().find(|part| part.device == device) {
                Some(part) => part.size_bytes += size,
                None => parts.push(Part { device, offset_bytes: on_device_bytes, size_bytes: size }),
            }
        }
        parts
    }

    /// The part of a range of any length on each device that it touches: device, first byte there, bytes. It is contiguous there.
    pub fn ranges(
        &self,
        offset_bytes: u64,
        size_bytes: u64,
    ) -> impl Iterator<Item = (usize, u64, u64)> + use<> {
        let Self { stripe_unit_bytes: unit, devices } = *self;
        let end = offset_bytes.saturating_add(size_bytes);
        let (begin_unit, end_unit) = (offset_bytes / unit, end.div_ceil(unit));
        (0..devices).filter_map(move |device| {
            // The first of its units that is touched, and the first that is not.
            let from = begin_unit + (device + devices - begin_unit % devices) % devices;
            let to = end_unit + (device + devices - end_unit % devices) % devices;
            if from >= end_unit || size_bytes == 0 {
                return None;
            }
            let skipped = if from == begin_unit { offset_bytes % unit } else { 0 };
            let missing = if to == end_unit + devices - 1 { end_unit * unit - end } else { 0 };
            let at = from / devices * unit + skipped;
            Some((device as usize, at, to / devices * unit - missing - at))
        })
    }

    /// The stripe units that a request touches, in order: device, first byte there, first byte of the request that it
    /// holds, bytes.
    pub fn units(
        &self,
        offset_bytes: u64,
        size_bytes: u32,
    ) -> impl Iterator<Item = (usize, u64, u32, u32)> + use<> {
        let Self { stripe_unit_bytes: unit, devices } = *self;
        let end = offset_bytes.saturating_add(u64::from(size_bytes));
        let mut first = offset_bytes;
        std::iter::from_fn(move || {
            if first >= end {
                return None;
            }
            let number = first / unit;
            let next = (number + 1).saturating_mul(unit).min(end);
            let found = (
                (number % devices) as usize,
                number / devices * unit + first % unit,
                (first - offset_bytes) as u32,
                (next - first) as u32,
            );
            first = next;
            Some(found)
        })
    }
}

/// A request that has been split.
#[derive(Clone, Copy, Debug)]
struct Split {
    tag: u64,
    pieces: u32,
    start_ns: u64,
    done_ns: u64,
}

/// A striped array without redundancy (RAID 0).
///
/// Stripe unit n is on device n modulo the number of devices. The part of a request on one device is contiguous there and
/// is one request to it; the whole completes with its last part.
pub struct StripedArray {
    devices: Vec<Box<dyn Device>>,
    striping: Striping,
    capacity_bytes: u64,
    /// Split requests by number; the numbers of finished ones are used again.
    splits: Vec<Split>,
    unused: Vec<usize>,
    outstanding: usize,
    scratch: Vec<Completion>,
}

impl StripedArray {
    /// An array of at least one device of `capacity_bytes` altogether.
    ///
    /// Each device must hold [`device_bytes`](Self::device_bytes); `stripe_unit_bytes` is at least 1.
    pub fn new(devices: Vec<Box<dyn Device>>, stripe_unit_bytes: u64, capacity_bytes: u64) -> Self {
        let striping = Striping { stripe_unit_bytes, devices: devices.len() as u64 };
        Self {
            devices,
            striping,
            capacity_bytes,
            splits: Vec::new(),
            unused: Vec::new(),
            outstanding: 0,
            scratch: Vec::new(),
        }
    }

    /// How many bytes each of `devices` devices must hold for an array of `capacity_bytes`.
    pub fn device_bytes(capacity_bytes: u64, devices: u64, stripe_unit_bytes: u64) -> u64 {
        capacity_bytes.div_ceil(stripe_unit_bytes).div_ceil(devices) * stripe_unit_bytes
    }
}

impl Device for StripedArray {
    fn arrive(&mut self, now_ns: u64, request: IoRequest) -> Result<(), RequestError> {
        check(&request, self.capacity_bytes)?;
        let parts = self.striping.parts(request.offset_bytes, request.size_bytes);
        let pieces = parts.len() as u32;
        let split = Split { tag: request.tag, pieces, start_ns: u64::MAX, done_ns: 0 };
        let number = self.unused.pop().unwrap_or(self.splits.len());
        if number == self.splits.len() {
            self.splits.push(split);
        } else {
            self.splits[number] = split;
        }
        self.outstanding += 1;
        for Part { device, offset_bytes, size_bytes } in parts {
            let part = IoRequest { tag: number as u64, op: request.op, offset_bytes, size_bytes };
            self.devices[device].arrive(now_ns, part)?;
        }
        Ok(())
    }

    fn next_event_ns(&self) -> Option<u64> {
        self.devices.iter().filter_map(|device| device.next_event_ns()).min()
    }

    fn advance(&mut self, now_ns: u64, completions: &mut Vec<Completion>) {
        for device in &mut self.devices {
            device.advance(now_ns, &mut self.scratch);
        }
        let first_new = completions.len();
        for part in self.scratch.drain(..) {
            let number = part.tag as usize;
            let split = &mut self.splits[number];
            split.pieces -= 1;
            split.start_ns = split.start_ns.min(part.start_ns);
            split.done_ns = split.done_ns.max(part.done_ns);
            if split.pieces == 0 {
                let Split { tag, start_ns, done_ns, .. } = *split;
                completions.push(Completion { tag, start_ns, done_ns });
                self.unused.push(number);
                self.outstanding -= 1;
            }
        }
        completions[first_new..].sort_by_key(|completion| completion.done_ns);
    }

    fn discard(&mut self, offset_bytes: u64, size_bytes: u64) {
        for (device, at, length) in self.striping.ranges(offset_bytes, size_bytes) {
            self.devices[device].discard(at, length);
        }
    }

    fn outstanding(&self) -> usize {
        self.outstanding
    }

    fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_the_units_of_a_range_put_together() {
        for (devices, unit) in [(1, 512), (2, 4096), (3, 4096), (16, 1000)] {
            let striping = Striping { stripe_unit_bytes: unit, devices };
            for offset_bytes in [0, 1, 511, 4096, 5000, 123_456] {
                for size_bytes in [0_u32, 1, 512, 4095, 4096, 4097, 20_000, 300_000] {
                    let mut expected = vec![None; devices as usize];
                    for (device, at, _, length) in striping.units(offset_bytes, size_bytes) {
                        let (_, whole) = expected[device].get_or_insert((at, 0));
                        *whole += u64::from(length);
                    }
                    let mut found = vec![None; devices as usize];
                    for (device, at, length) in striping.ranges(offset_bytes, u64::from(size_bytes)) {
                        found[device] = Some((at, length));
                    }
                    assert_eq!(found, expected, "{devices} devices, {unit}: {offset_bytes}+{size_bytes}");
                }
            }
        }
    }
}
