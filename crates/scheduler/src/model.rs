//! Service model: the properties of a device that a scheduler may use.

use std::ops::Range;

use crate::request::Request;

/// Addresses and service times of a device.
///
/// All methods describe the device at the moment when it becomes free: after the request in service, if any.
pub trait ServiceModel {
    /// Cylinder of a byte. It rises with the address. A device without cylinders returns the position of the address in a
    /// unit of its own.
    fn cylinder(&self, offset_bytes: u64) -> u32;

    /// Position of the arm: the byte after the last transferred one.
    fn head_bytes(&self) -> u64;

    /// Seek and rotation time until the request's first byte is under the head if its service begins at `now_ns`. Exact if
    /// the device's rotation is known; otherwise with half a revolution.
    fn positioning_ns(&self, now_ns: u64, request: &Request) -> u64;

    /// Lower bound of [`positioning_ns`](Self::positioning_ns) for any request that begins at `offset_bytes` or farther from
    /// [`head_bytes`](Self::head_bytes) on the same side. Requests that begin in a range of [`held`](Self::held) are
    /// excepted. A device without a bound returns 0.
    fn least_positioning_ns(&self, offset_bytes: u64) -> u64 {
        let _ = offset_bytes;
        0
    }

    /// Reports the byte ranges in the device's buffer, whose positioning time may be below that of their distance.
    fn held(&self, tell: &mut dyn FnMut(Range<u64>)) {
        let _ = tell;
    }

    /// Expected service time with the arm at `from_bytes`: seek, half a revolution and transfer. It depends only on the
    /// arguments.
    fn expected_ns(&self, from_bytes: u64, request: &Request) -> u64;

    /// Upper bound of the service time with the arm at `from_bytes`: seek, a whole revolution and transfer. It depends only on
    /// the arguments.
    fn bound_ns(&self, from_bytes: u64, request: &Request) -> u64;

    /// Capacity of the device.
    fn capacity_bytes(&self) -> u64;
}

/// A device with seek times linear in the distance, for tests and as a coarse model of unknown devices.
#[derive(Debug, Clone, PartialEq)]
pub struct LinearModel {
    /// Capacity of the device.
    pub capacity_bytes: u64,
    /// Size of a cylinder.
    pub cylinder_bytes: u64,
    /// Constant part of a seek.
    pub seek_ns: u64,
    /// Seek time per cylinder crossed.
    pub seek_ns_per_cylinder: u64,
    /// Time of a revolution.
    pub revolution_ns: u64,
    /// Transfer time of a byte.
    pub transfer_ns_per_byte: u64,
    /// Position of the arm.
    pub head_bytes: u64,
}

impl LinearModel {
    /// Moves the arm to the end of a request.
    pub fn serve(&mut self, request: &Request) {
        self.head_bytes = request.end_bytes().min(self.capacity_bytes);
    }

    fn seek_ns(&self, from_bytes: u64, to_bytes: u64) -> u64 {
        match self.cylinder(from_bytes).abs_diff(self.cylinder(to_bytes)) {
            0 => 0,
            distance => self.seek_ns + self.seek_ns_per_cylinder * u64::from(distance),
        }
    }
}

impl ServiceModel for LinearModel {
    fn cylinder(&self, offset_bytes: u64) -> u32 {
        u32::try_from(offset_bytes / self.cylinder_bytes.max(1)).unwrap_or(u32::MAX)
    }

    fn head_bytes(&self) -> u64 {
        self.head_bytes
    }

    fn positioning_ns(&self, _: u64, request: &Request) -> u64 {
        self.seek_ns(self.head_bytes, request.offset_bytes) + self.revolution_ns / 2
    }

    fn least_positioning_ns(&self, offset_bytes: u64) -> u64 {
        self.seek_ns(self.head_bytes, offset_bytes) + self.revolution_ns / 2
    }

    fn expected_ns(&self, from_bytes: u64, request: &Request) -> u64 {
        self.seek_ns(from_bytes, request.offset_bytes)
            + self.revolution_ns / 2
            + self.transfer_ns_per_byte * u64::from(request.size_bytes)
    }

    fn bound_ns(&self, from_bytes: u64, request: &Request) -> u64 {
        self.expected_ns(from_bytes, request) + self.revolution_ns.div_ceil(2)
    }

    fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }
}
