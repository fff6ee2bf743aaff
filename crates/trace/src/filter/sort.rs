//! External sort by time in bounded memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};

use crate::binary::{u32_le, u64_le};
use crate::{Devices, Error, Reader, Skipping, TraceOp, TraceRequest};

/// Maximum number of merged parts; each is an open file.
const MOST_PARTS: usize = 512;
/// Bytes of a request in a part.
const RECORD_BYTES: usize = 62;

/// Reader of requests in time order; requests of equal time keep the file order.
pub struct Sorted {
    path: PathBuf,
    source: Box<dyn Reader>,
    part_requests: usize,
    /// The last part, which stays in memory.
    rest: std::vec::IntoIter<TraceRequest>,
    parts: Vec<BufReader<File>>,
    /// The next request of each part, by time and number of the part: parts follow one another in the file.
    heap: BinaryHeap<Reverse<(i64, usize)>>,
    heads: Vec<Option<TraceRequest>>,
    begun: bool,
}

impl Sorted {
    /// Sorts the requests of a reader with about this memory, at least 1 MiB. `path` is for errors.
    pub fn new(path: &Path, source: Box<dyn Reader>, memory_bytes: usize) -> Self {
        let part_requests =
            (memory_bytes / size_of::<TraceRequest>()).max((1 << 20) / size_of::<TraceRequest>());
        Sorted {
            path: path.to_owned(),
            source,
            part_requests,
            rest: Vec::new().into_iter(),
            parts: Vec::new(),
            heap: BinaryHeap::new(),
            heads: Vec::new(),
            begun: false,
        }
    }

    fn begin(&mut self) -> Result<(), Error> {
        self.begun = true;
        let mut part = Vec::new();
        while let Some(request) = self.source.next_request()? {
            if part.len() == self.part_requests {
                self.set_aside(&mut part)?;
            }
            part.push(request);
        }
        part.sort_by_key(|request| request.arrival_ns);
        self.rest = part.into_iter();
        for number in 0..=self.parts.len() {
            let head = self.read(number)?;
            self.heads.push(head);
            if let Some(request) = head {
                self.heap.push(Reverse((request.arrival_ns, number)));
            }
        }
        Ok(())
    }

    fn set_aside(&mut self, part: &mut Vec<TraceRequest>) -> Result<(), Error> {
        if self.parts.len() == MOST_PARTS {
            let most = (MOST_PARTS + 1) * self.part_requests;
            let what = format!(
                "too many requests to sort (expected at most {most} with this memory). Raise --sort-memory-mib"
            );
            return Err(Error::Incomplete { path: self.path.clone(), what });
        }
        part.sort_by_key(|request| request.arrival_ns);
        let file = tempfile::tempfile().and_then(|file| {
            let mut writer = BufWriter::new(file);
            for request in part.iter() {
                writer.write_all(&encode(request))?;
            }
            let mut file = writer.into_inner().map_err(io::IntoInnerError::into_error)?;
            file.rewind()?;
            Ok(file)
        });
        let file = file.map_err(|source| Error::Io { path: std::env::temp_dir(), source })?;
        self.parts.push(BufReader::with_capacity(1 << 16, file));
        part.clear();
        Ok(())
    }

    /// The next request of a part; the one in memory is the last.
    fn read(&mut self, part: usize) -> Result<Option<TraceRequest>, Error> {
        let Some(file) = self.parts.get_mut(part) else { return Ok(self.rest.next()) };
        let mut record = [0; RECORD_BYTES];
        let mut have = 0;
        while have < RECORD_BYTES {
            match file.read(&mut record[have..]) {
                Ok(0) if have == 0 => return Ok(None),
                Ok(0) => {
                    let source = io::ErrorKind::UnexpectedEof.into();
                    return Err(Error::Io { path: std::env::temp_dir(), source });
                }
                Ok(read) => have += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(Error::Io { path: std::env::temp_dir(), source }),
            }
        }
        Ok(Some(decode(&record)))
    }
}

impl Reader for Sorted {
    fn next_request(&mut self) -> Result<Option<TraceRequest>, Error> {
        if !self.begun {
            self.begin()?;
        }
        let Some(Reverse((_, part))) = self.heap.pop() else { return Ok(None) };
        let next = self.read(part)?;
        if let Some(request) = next {
            self.heap.push(Reverse((request.arrival_ns, part)));
        }
        Ok(std::mem::replace(&mut self.heads[part], next))
    }

    fn devices(&self) -> &Devices {
        self.source.devices()
    }

    fn skipped(&self) -> &Skipping {
        self.source.skipped()
    }

    fn header(&self) -> &[(String, String)] {
        self.source.header()
    }
}

const OPS: [TraceOp; 5] = [TraceOp::Read, TraceOp::Write, TraceOp::Flush, TraceOp::Discard, TraceOp::Other];

fn encode(request: &TraceRequest) -> [u8; RECORD_BYTES] {
    let mut record = [0; RECORD_BYTES];
    let mut at = 0;
    let mut put = |bytes: &[u8]| {
        record[at..at + bytes.len()].copy_from_slice(bytes);
        at += bytes.len();
    };
    let present = [
        request.queueing_ns.is_some(),
        request.response_ns.is_some(),
        request.object.is_some(),
        request.queue_length.is_some(),
        request.pid.is_some(),
    ];
    put(&[present.iter().enumerate().map(|(bit, there)| u8::from(*there) << bit).sum()]);
    put(&[OPS.iter().position(|op| *op == request.op).unwrap_or(0) as u8]);
    put(&request.device.to_le_bytes());
    put(&request.queue_length.unwrap_or(0).to_le_bytes());
    put(&request.pid.unwrap_or(0).to_le_bytes());
    put(&request.arrival_ns.to_le_bytes());
    put(&request.queueing_ns.unwrap_or(0).to_le_bytes());
    put(&request.response_ns.unwrap_or(0).to_le_bytes());
    put(&request.offset_bytes.to_le_bytes());
    put(&request.size_bytes.to_le_bytes());
    put(&request.object.unwrap_or(0).to_le_bytes());
    record
}

fn decode(record: &[u8; RECORD_BYTES]) -> TraceRequest {
    let there = |bit: u8| record[0] >> bit & 1 == 1;
    let signed = |at| u64_le(record, at).cast_signed();
    TraceRequest {
        arrival_ns: signed(14),
        queueing_ns: there(0).then(|| signed(22)),
        response_ns: there(1).then(|| signed(30)),
        device: u32_le(record, 2),
        op: OPS.get(usize::from(record[1])).copied().unwrap_or_default(),
        offset_bytes: u64_le(record, 38),
        size_bytes: u64_le(record, 46),
        object: there(2).then(|| u64_le(record, 54)),
        queue_length: there(3).then(|| u32_le(record, 6)),
        pid: there(4).then(|| u32_le(record, 10)),
    }
}
