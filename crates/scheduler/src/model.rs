//! The service model: what a scheduler may know of the device.

use std::ops::Range;

use crate::request::Request;

/// The device as a policy sees it: where addresses lie and how long requests take.
///
/// All methods answer for the moment at which the device is free: after the request in service, if there is one.
pub trait ServiceModel {
    /// The cylinder of a byte; addresses in order lie on cylinders in order. A device without cylinders says how far
    /// along an address is in some unit of its own.
    fn cylinder(&self, offset_bytes: u64) -> u32;

    /// Where the arm is: the byte after the last one that was transferred.
    fn head_bytes(&self) -> u64;

    /// Seek and rotation until the request's first byte is under the head, if it is begun at `now_ns`: exactly where the
    /// device's rotation is known, with half a revolution where it is not.
    fn positioning_ns(&self, now_ns: u64, request: &Request) -> u64;

    /// What [`positioning_ns`](Self::positioning_ns) is at least of any request that begins at `offset_bytes` or farther
    /// from [`head_bytes`](Self::head_bytes) on the same side, but for those that begin in a range of
    /// [`held`](Self::held). A device that cannot say has 0.
    fn least_positioning_ns(&self, offset_bytes: u64) -> u64 {
        let _ = offset_bytes;
        0
    }

    /// Tells the ranges of bytes that may be reached sooner than their distance says, since a buffer holds them.
    fn held(&self, tell: &mut dyn FnMut(Range<u64>)) {
        let _ = tell;
    }

    /// What the request is expected to take with the arm at `from_bytes`: seek, half a revolution and transfer. It depends
    /// on nothing but its arguments.
    fn expected_ns(&self, from_bytes: u64, request: &Request) -> u64;

    /// What the request takes at most with the arm at `from_bytes`: seek, a whole revolution and transfer.
    fn bound_ns(&self, from_bytes: u64, request: &Request) -> u64;

    /// Bytes of the device.
    fn capacity_bytes(&self) -> u64;
}

/// A device whose seeks take a constant and a part in proportion to the distance, for tests and as a coarse model of
/// devices of which nothing else is known.
#[derive(Debug, Clone, PartialEq)]
pub struct LinearModel {
    /// Bytes of the device.
    pub capacity_bytes: u64,
    /// Bytes of a cylinder.
    pub cylinder_bytes: u64,
    /// Any seek.
    pub seek_ns: u64,
    /// And for each cylinder that is crossed.
    pub seek_ns_per_cylinder: u64,
    /// A revolution.
    pub revolution_ns: u64,
    /// Transfer of a byte.
    pub transfer_ns_per_byte: u64,
    /// Where the arm is.
    pub head_bytes: u64,
}

impl LinearModel {
    /// Moves the arm to behind a request.
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
