//! Requests of a trace, independent of the format.

use std::borrow::Cow;
use std::collections::HashMap;

use weir_records::Op;

/// Operation of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TraceOp {
    /// Read from the device or server.
    #[default]
    Read,
    /// Write to the device or server.
    Write,
    /// Write that is durable when it completes (forced unit access).
    WriteFua,
    /// Flush: make written data durable.
    Flush,
    /// Discard: the blocks are no longer used.
    Discard,
    /// The blocks become zero, without a transfer of data.
    WriteZeroes,
    /// Any other recorded operation without data, such as an NFS `getattr`.
    Other,
}

impl TraceOp {
    /// The operation as tables of requests have it; `None` of others.
    pub fn op(self) -> Option<Op> {
        Some(match self {
            TraceOp::Read => Op::Read,
            TraceOp::Write => Op::Write,
            TraceOp::WriteFua => Op::WriteFua,
            TraceOp::Flush => Op::Flush,
            TraceOp::Discard => Op::Discard,
            TraceOp::WriteZeroes => Op::WriteZeroes,
            TraceOp::Other => return None,
        })
    }

    /// The name in tables.
    pub fn name(self) -> &'static str {
        self.op().map_or("other", Op::name)
    }

    /// Whether data are read from or written to the device.
    pub fn has_data(self) -> bool {
        self.op().and_then(Op::data).is_some()
    }

    /// Whether data are written to the device.
    pub fn is_write(self) -> bool {
        matches!(self, TraceOp::Write | TraceOp::WriteFua)
    }
}

impl From<Op> for TraceOp {
    fn from(op: Op) -> Self {
        match op {
            Op::Read => TraceOp::Read,
            Op::Write => TraceOp::Write,
            Op::WriteFua => TraceOp::WriteFua,
            Op::Flush => TraceOp::Flush,
            Op::Discard => TraceOp::Discard,
            Op::WriteZeroes => TraceOp::WriteZeroes,
        }
    }
}

/// One request of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TraceRequest {
    /// Arrival in ns since the format's origin: the start of the trace or of 1970.
    pub arrival_ns: i64,
    /// Queueing delay: from arrival to start of service; absent if not recorded.
    pub queueing_ns: Option<i64>,
    /// Response time: from arrival to completion; absent if not recorded.
    pub response_ns: Option<i64>,
    /// Index of the device, volume or server in [`Devices`].
    pub device: u32,
    /// Operation.
    pub op: TraceOp,
    /// First byte on the device; 0 if the trace has only objects.
    pub offset_bytes: u64,
    /// Size in bytes; 0 if not recorded.
    pub size_bytes: u64,
    /// Object (file, page, key), if recorded.
    pub object: Option<u64>,
    /// Queue length at arrival, if recorded.
    pub queue_length: Option<u32>,
    /// Process, if recorded.
    pub pid: Option<u32>,
}

/// Devices of a trace: names by index.
#[derive(Debug, Clone, Default)]
pub struct Devices {
    names: Vec<Box<[u8]>>,
    numbers: HashMap<Box<[u8]>, u32>,
    /// Index of the last request's device, used by most next requests.
    last: u32,
}

impl Devices {
    /// Index of a device; a new name gets the next index.
    pub fn number(&mut self, name: &[u8]) -> u32 {
        if self.names.get(self.last as usize).is_some_and(|last| **last == *name) {
            return self.last;
        }
        self.last = match self.numbers.get(name) {
            Some(number) => *number,
            None => {
                let number = self.names.len() as u32;
                self.names.push(name.into());
                self.numbers.insert(name.into(), number);
                number
            }
        };
        self.last
    }

    /// Name of a device; its index if unknown.
    pub fn name(&self, number: u32) -> String {
        String::from_utf8_lossy(&self.name_bytes(number)).into_owned()
    }

    /// As [`Devices::name`], as it was written.
    pub fn name_bytes(&self, number: u32) -> Cow<'_, [u8]> {
        match self.names.get(number as usize) {
            Some(name) => Cow::Borrowed(name),
            None => Cow::Owned(number.to_string().into_bytes()),
        }
    }

    /// Number of devices so far.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there is no device so far.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_keeps_its_number() {
        let mut devices = Devices::default();
        assert_eq!([b"sda", b"sdb", b"sda", b"sdb"].map(|name| devices.number(name)), [0, 1, 0, 1]);
        assert_eq!((devices.len(), devices.name(1), devices.name(7)), (2, "sdb".to_owned(), "7".to_owned()));
    }
}
