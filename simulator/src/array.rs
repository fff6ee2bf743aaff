//! Several devices behind one address space, striped.

use crate::device::{Completion, Device, IoRequest, RequestError, check};

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
/// Stripe unit n lies on device n modulo the number of devices. What a request wants of one device is contiguous there and
/// goes to it as one request; the whole is done when the last part is.
pub struct StripedArray {
    devices: Vec<Box<dyn Device>>,
    stripe_unit_bytes: u64,
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
        Self {
            devices,
            stripe_unit_bytes,
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

    /// The parts of `request`: device, first byte there, bytes. At most one part for each device.
    pub fn parts(&self, request: &IoRequest) -> Vec<(usize, u64, u32)> {
        let (unit, count) = (self.stripe_unit_bytes, self.devices.len() as u64);
        let mut parts: Vec<(usize, u64, u32)> = Vec::with_capacity(self.devices.len());
        let mut first = request.offset_bytes;
        while first < request.end_bytes() {
            let number = first / unit;
            let end = ((number + 1) * unit).min(request.end_bytes());
            let (device, size) = ((number % count) as usize, (end - first) as u32);
            match parts.iter_mut().find(|part| part.0 == device) {
                Some(part) => part.2 += size,
                None => parts.push((device, number / count * unit + first % unit, size)),
            }
            first = end;
        }
        parts
    }
}

impl Device for StripedArray {
    fn arrive(&mut self, now_ns: u64, request: IoRequest) -> Result<(), RequestError> {
        check(&request, self.capacity_bytes)?;
        let parts = self.parts(&request);
        let pieces = parts.len() as u32;
        let split = Split { tag: request.tag, pieces, start_ns: u64::MAX, done_ns: 0 };
        let number = self.unused.pop().unwrap_or(self.splits.len());
        if number == self.splits.len() {
            self.splits.push(split);
        } else {
            self.splits[number] = split;
        }
        self.outstanding += 1;
        for (device, offset_bytes, size_bytes) in parts {
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

    fn outstanding(&self) -> usize {
        self.outstanding
    }

    fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }
}
