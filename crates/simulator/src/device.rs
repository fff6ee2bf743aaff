//! Interface of device models: requests in, completions out, times in ns.

pub use weir_vocabulary::Op;

use crate::flash_options::FlashCounts;

/// Bytes of a disk sector, and the unit of every address.
pub const SECTOR_BYTES: u64 = 512;

/// One request to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoRequest {
    /// The caller's identifier, returned in the [`Completion`].
    pub tag: u64,
    /// Read or write.
    pub op: Op,
    /// First byte.
    pub offset_bytes: u64,
    /// Length in bytes, at least 1.
    pub size_bytes: u32,
}

impl IoRequest {
    /// The byte after the last one.
    pub fn end_bytes(&self) -> u64 {
        self.offset_bytes + u64::from(self.size_bytes)
    }

    /// Sectors of the request: first sector, number of sectors.
    pub fn sectors(&self) -> (u64, u64) {
        let first = self.offset_bytes / SECTOR_BYTES;
        (first, self.end_bytes().div_ceil(SECTOR_BYTES) - first)
    }
}

/// A completed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The tag of the request.
    pub tag: u64,
    /// Start of service.
    pub start_ns: u64,
    /// Completion time.
    pub done_ns: u64,
}

/// Error in a request. The device is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The request has no bytes.
    #[error("request at byte {offset_bytes}: found 0 bytes, expected at least 1")]
    Empty {
        /// First byte of the request.
        offset_bytes: u64,
    },
    /// The request exceeds the end of the device.
    #[error(
        "the request of {size_bytes} bytes at byte {offset_bytes} ends behind the device's {capacity_bytes} bytes"
    )]
    OutOfRange {
        /// First byte of the request.
        offset_bytes: u64,
        /// Length of the request.
        size_bytes: u32,
        /// Size of the device.
        capacity_bytes: u64,
    },
    /// A write to a zoned device begins elsewhere than at the write pointer of its zone.
    #[error(
        "write at byte {offset_bytes}: found a byte that is not the write pointer of its zone, expected byte {pointer_bytes}. Write \
         zones in order; a discard of a whole zone resets it"
    )]
    NotAtWritePointer {
        /// First byte of the write.
        offset_bytes: u64,
        /// Where its zone can be written; the end of the zone, if that is full.
        pointer_bytes: u64,
    },
    /// A write to a zoned device exceeds its zone, or is not of whole units.
    #[error(
        "write of {size_bytes} bytes at byte {offset_bytes}: expected a multiple of 4096 bytes, at most the {left_bytes} that are \
         left in its zone"
    )]
    NotInZone {
        /// First byte of the write.
        offset_bytes: u64,
        /// Its length.
        size_bytes: u32,
        /// What can be written to the zone.
        left_bytes: u64,
    },
}

/// A storage device that serves requests in time.
///
/// Times are nanoseconds on one monotonic clock of the caller's choice. The caller calls [`advance`](Device::advance) no earlier
/// than each [`next_event_ns`](Device::next_event_ns). A late call changes no completion time: the device works from
/// event to event, so a driver under a real clock accumulates no error.
pub trait Device: Send {
    /// Adds a request that arrives at `now_ns`.
    ///
    /// # Errors
    /// [`RequestError`] if the request is empty or exceeds the end.
    fn arrive(&mut self, now_ns: u64, request: IoRequest) -> Result<(), RequestError>;

    /// Adds a request of a class. A device with submission queues takes it from the queue of the class, and a device with
    /// reclaim unit handles writes its data through the handle of the class; to others classes are equal.
    ///
    /// # Errors
    /// As [`arrive`](Device::arrive).
    fn arrive_of(&mut self, now_ns: u64, request: IoRequest, class: usize) -> Result<(), RequestError> {
        let _ = class;
        self.arrive(now_ns, request)
    }

    /// Time of the next event; `None` if the device is idle.
    fn next_event_ns(&self) -> Option<u64>;

    /// Processes events up to `now_ns`; appends completed requests in order of completion.
    fn advance(&mut self, now_ns: u64, completions: &mut Vec<Completion>);

    /// Forgets the data of a range, at once and without service time. Only flash devices have a use for it.
    fn discard(&mut self, offset_bytes: u64, size_bytes: u64) {
        let _ = (offset_bytes, size_bytes);
    }

    /// Counts of writes and wear, of a flash device with a translation layer.
    fn flash_counts(&self) -> Option<FlashCounts> {
        None
    }

    /// Number of uncompleted requests.
    fn outstanding(&self) -> usize;

    /// Size of the device in bytes.
    fn capacity_bytes(&self) -> u64;
}

/// Checks a request against the size of a device.
pub(crate) fn check(request: &IoRequest, capacity_bytes: u64) -> Result<(), RequestError> {
    let IoRequest { offset_bytes, size_bytes, .. } = *request;
    if size_bytes == 0 {
        return Err(RequestError::Empty { offset_bytes });
    }
    match offset_bytes.checked_add(u64::from(size_bytes)) {
        Some(end) if end <= capacity_bytes => Ok(()),
        _ => Err(RequestError::OutOfRange { offset_bytes, size_bytes, capacity_bytes }),
    }
}
