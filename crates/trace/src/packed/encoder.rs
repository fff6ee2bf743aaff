//! Encoder: requests to the bytes of a file, in order.

use std::io::{self, Write};

use super::chunk::{encode, encode_end};
use super::index::{Entry, Index};
use super::{MARK, MOST_REQUESTS};
use crate::{Devices, TraceRequest};

/// Encoder of one file. Memory: a chunk, an entry of 24 bytes for each that was written, and the names of devices.
#[derive(Debug)]
pub(crate) struct Encoder {
    pending: Vec<TraceRequest>,
    /// Devices whose first requests are pending.
    new: Vec<u32>,
    last_ns: i64,
    offset: u64,
    index: Index,
    buffer: Vec<u8>,
}

impl Encoder {
    /// An encoder of chunks of so many requests, at most [`MOST_REQUESTS`]; writes the file's first bytes.
    pub(crate) fn begin(chunk_requests: usize, to: &mut (impl Write + ?Sized)) -> io::Result<Self> {
        let chunk_requests = chunk_requests.clamp(1, MOST_REQUESTS);
        to.write_all(&MARK)?;
        Ok(Encoder {
            pending: Vec::with_capacity(chunk_requests),
            new: Vec::new(),
            last_ns: i64::MIN,
            offset: MARK.len() as u64,
            index: Index { chunk_requests, ordered: true, ..Index::default() },
            buffer: Vec::new(),
        })
    }

    /// Adds a request; writes a chunk when there is a whole one.
    pub(crate) fn push(
        &mut self,
        request: &TraceRequest,
        devices: &Devices,
        to: &mut (impl Write + ?Sized),
    ) -> io::Result<()> {
        let known = &mut self.index.devices;
        while known.len() <= request.device as usize {
            let number = known.len() as u32;
            known.push((devices.name_bytes(number).into(), 0));
            self.new.push(number);
        }
        let end_bytes = &mut known[request.device as usize].1;
        *end_bytes = (*end_bytes).max(request.offset_bytes.saturating_add(request.size_bytes));
        self.index.ordered &= self.last_ns <= request.arrival_ns;
        self.last_ns = request.arrival_ns;
        self.pending.push(*request);
        if self.pending.len() == self.index.chunk_requests { self.write(to) } else { Ok(()) }
    }

    fn write(&mut self, to: &mut (impl Write + ?Sized)) -> io::Result<()> {
        let times = || self.pending.iter().map(|request| request.arrival_ns);
        let (Some(earliest_ns), Some(latest_ns)) = (times().min(), times().max()) else { return Ok(()) };
        let names = self.new.iter().map(|number| (*number, &*self.index.devices[*number as usize].0));
        self.buffer.clear();
        encode(&self.pending, names, &mut self.buffer);
        to.write_all(&self.buffer)?;
        self.index.entries.push(Entry { offset: self.offset, earliest_ns, latest_ns });
        self.index.requests += self.pending.len() as u64;
        self.offset += self.buffer.len() as u64;
        self.pending.clear();
        self.new.clear();
        Ok(())
    }

    /// Writes all that is left.
    pub(crate) fn finish(mut self, to: &mut (impl Write + ?Sized)) -> io::Result<Index> {
        self.write(to)?;
        self.index.chunks_end = self.offset;
        self.buffer.clear();
        encode_end(self.index.requests, &mut self.buffer);
        to.write_all(&self.buffer)?;
        to.write_all(&self.index.encode(self.offset + self.buffer.len() as u64))?;
        Ok(self.index)
    }
}
