//! External sort by time in bounded memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};

use crate::packed::{IntoRows, Spool};
use crate::{Devices, Error, Reader, Skipping, TraceRequest};

/// Maximum number of merged parts; each is an open file.
const MOST_PARTS: usize = 512;
/// Requests of a part that are in memory while parts are merged.
const CHUNK_REQUESTS: usize = 512;

/// Reader of requests in time order; requests of equal time keep the file order.
pub struct Sorted {
    path: PathBuf,
    source: Box<dyn Reader>,
    part_requests: usize,
    /// The last part, which stays in memory.
    rest: std::vec::IntoIter<TraceRequest>,
    parts: Vec<IntoRows>,
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
        let mut spool = Spool::create(CHUNK_REQUESTS)?;
        for request in part.drain(..) {
            spool.push(&request, self.source.devices())?;
        }
        self.parts.push(spool.finish()?.into_rows());
        Ok(())
    }

    /// The next request of a part; the one in memory is the last.
    fn read(&mut self, part: usize) -> Result<Option<TraceRequest>, Error> {
        match self.parts.get_mut(part) {
            Some(rows) => rows.next().transpose(),
            None => Ok(self.rest.next()),
        }
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
