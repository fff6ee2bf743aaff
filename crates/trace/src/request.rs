//! A request of a trace, independent of the format.

use std::collections::HashMap;

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TraceOp {
    /// Data from the device or server.
    #[default]
    Read,
    /// Data to it.
    Write,
    /// Make durable what was written.
    Flush,
    /// The blocks are not needed any more.
    Discard,
    /// Anything else that was recorded, such as an NFS `getattr`: no data.
    Other,
}

impl TraceOp {
    /// `read`, `write`, `flush`, `discard` or `other`.
    pub fn name(self) -> &'static str {
        match self {
            TraceOp::Read => "read",
            TraceOp::Write => "write",
            TraceOp::Flush => "flush",
            TraceOp::Discard => "discard",
            TraceOp::Other => "other",
        }
    }
}

/// One request of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TraceRequest {
    /// Arrival, in ns since an origin that the format's own page names: the start of the trace or of 1970.
    pub arrival_ns: i64,
    /// From arrival to the start of service; absent where the format does not say.
    pub queueing_ns: Option<i64>,
    /// From arrival to completion; absent where the format does not say.
    pub response_ns: Option<i64>,
    /// Number of the device, volume or server among [`Devices`].
    pub device: u32,
    /// What is asked.
    pub op: TraceOp,
    /// First byte on the device. Where a trace knows objects only: 0.
    pub offset_bytes: u64,
    /// Bytes asked for; 0 where the format does not say.
    pub size_bytes: u64,
    /// The object (file, page, key) that is asked for, where the trace knows objects.
    pub object: Option<u64>,
    /// Requests in the queue that this one found, where the format says.
    pub queue_length: Option<u32>,
    /// The process, where the format says.
    pub pid: Option<u32>,
}

/// The devices of a trace: their names, by the number that requests carry.
#[derive(Debug, Clone, Default)]
pub struct Devices {
    names: Vec<Box<[u8]>>,
    numbers: HashMap<Box<[u8]>, u32>,
    /// The last one asked for: most requests are to the device of the one before.
    last: u32,
}

impl Devices {
    /// The number of a device; a name that is new gets the next.
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

    /// The name of a device, or its number where there is none of that number.
    pub fn name(&self, number: u32) -> String {
        self.names
            .get(number as usize)
            .map_or_else(|| number.to_string(), |name| String::from_utf8_lossy(name).into_owned())
    }

    /// How many there have been so far.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there has been none so far.
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
