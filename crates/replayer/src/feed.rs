//! Read-ahead of the stream: nothing is decoded between two submissions.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError};

use weir_content::pattern::Key;
use weir_records::Request;

use crate::Targets;
use crate::step::{After, Step};
use crate::targets::Transfer;

/// Requests in one chunk between threads.
const CHUNK: usize = 1024;

/// Maximum chunks read ahead.
pub(crate) const CHUNKS_AHEAD: usize = 64;

/// A request that is ready to be sent.
#[derive(Debug)]
pub(crate) struct Planned {
    /// The request with scaled times, and without service times.
    pub request: Request,
    /// `None` if it cannot be sent.
    pub transfer: Option<Transfer>,
    /// Seed of the data that it writes or expects.
    pub key: Key,
    /// What it waits for.
    pub after: After,
    /// Its number in a stream with dependencies.
    pub number: u64,
}

/// Turns a stream into planned requests, by turns for each receiver, until it ends or one of them is dropped.
pub(crate) fn read_ahead(
    stream: impl Iterator<Item: Into<Step>>,
    targets: &Targets,
    timescale: f64,
    seed: u64,
    to: &[SyncSender<Vec<Planned>>],
) {
    let mut keys = KeyCache { seed, last: None };
    let mut chunks: Vec<_> = to.iter().map(|_| Vec::with_capacity(CHUNK)).collect();
    let mut turn = 0;
    for step in stream {
        let Step { mut request, after } = step.into();
        scale(&mut request, timescale);
        request.submitted_ns = None;
        request.completed_ns = None;
        request.served_ns = None;
        request.status = 0;
        let transfer = targets.resolve(&request).ok();
        request.device = transfer.map(|transfer| Arc::clone(&targets.names[transfer.target]));
        let key = keys.get(&request);
        let chunk = &mut chunks[turn];
        chunk.push(Planned { request, transfer, key, after, number: 0 });
        if chunk.len() == CHUNK && to[turn].send(std::mem::replace(chunk, Vec::with_capacity(CHUNK))).is_err()
        {
            return;
        }
        turn = if turn + 1 == to.len() { 0 } else { turn + 1 };
    }
    for (to, chunk) in to.iter().zip(chunks) {
        // Without a receiver the replay has ended with an error.
        let _ = to.send(chunk);
    }
}

fn scale(request: &mut Request, timescale: f64) {
    if timescale != 1.0 {
        let scaled = (request.intended_ns as f64 * timescale).round() as i64;
        request.deadline_ns = request.deadline_ns.map(|deadline| deadline - request.intended_ns + scaled);
        request.intended_ns = scaled;
    }
}

/// Streams name the same class many times in a row.
struct KeyCache {
    seed: u64,
    last: Option<(Arc<str>, Option<u32>, Key)>,
}

impl KeyCache {
    fn get(&mut self, request: &Request) -> Key {
        match &self.last {
            Some((class, file, key)) if *class == request.class && *file == request.file => *key,
            _ => {
                let key = Key::new(&request.class, request.file, self.seed);
                self.last = Some((Arc::clone(&request.class), request.file, key));
                key
            }
        }
    }
}

/// The receiving end.
pub(crate) struct Feed {
    from: Receiver<Vec<Planned>>,
    chunk: std::vec::IntoIter<Planned>,
}

/// Why a [`Feed`] has no request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Empty {
    /// Nothing has been read ahead.
    Starved,
    /// The stream is over.
    Ended,
}

impl Feed {
    pub fn new(from: Receiver<Vec<Planned>>) -> Self {
        Feed { from, chunk: Vec::new().into_iter() }
    }

    /// Waits until the first requests have been read, or there are none.
    pub fn wait_for_first(&mut self) {
        if let Ok(chunk) = self.from.recv() {
            self.chunk = chunk.into_iter();
        }
    }

    pub fn next(&mut self) -> Result<Planned, Empty> {
        loop {
            if let Some(planned) = self.chunk.next() {
                return Ok(planned);
            }
            match self.from.try_recv() {
                Ok(chunk) => self.chunk = chunk.into_iter(),
                Err(TryRecvError::Empty) => return Err(Empty::Starved),
                Err(TryRecvError::Disconnected) => return Err(Empty::Ended),
            }
        }
    }

    /// All remaining requests; waits for them.
    pub fn rest(self) -> impl Iterator<Item = Planned> {
        self.chunk.chain(self.from.into_iter().flatten())
    }
}
