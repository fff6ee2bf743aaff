//! A client that replays a recording.

use std::sync::Arc;

use crate::client::{Batch, cut, deadline_ns};
use crate::limits::LARGEST_REQUEST_BYTES;
use crate::recording::{Recorded, Tape};
use crate::spec::Workload;

/// Position of a client in the sequence that all clients of its class share.
pub(crate) struct Player {
    tape: Arc<Tape>,
    /// The chunk at this position, and its number.
    chunk: Arc<[Recorded]>,
    number: usize,
    next: usize,
    /// Time of the tape's beginning in this round.
    base_ns: i64,
}

impl Player {
    /// Client `number` of `clients`: it begins that share of the way along.
    pub(crate) fn new(tape: &Arc<Tape>, number: u32, clients: u32) -> Self {
        let share = i128::from(number) * i128::from(tape.round_ns) / i128::from(clients.max(1));
        let start_ns = share as i64;
        let first = tape.chunk_from(start_ns);
        // Behind the last request the tape begins again.
        let (first, base_ns) =
            if first < tape.chunks() { (first, -start_ns) } else { (0, tape.round_ns - start_ns) };
        let chunk = tape.chunk(first);
        let next = chunk.partition_point(|request| request.at_ns < start_ns);
        let next = if next < chunk.len() { next } else { 0 };
        Player { tape: Arc::clone(tape), chunk, number: first, next, base_ns }
    }

    fn advance(&mut self) {
        self.next += 1;
        if self.next < self.chunk.len() {
            return;
        }
        self.next = 0;
        self.number += 1;
        if self.number == self.tape.chunks() {
            self.number = 0;
            self.base_ns = self.base_ns.saturating_add(self.tape.round_ns);
        }
        self.chunk = self.tape.chunk(self.number);
    }

    pub(crate) fn next_ns(&self) -> i64 {
        self.base_ns.saturating_add(self.chunk[self.next].at_ns)
    }

    pub(crate) fn batch(&mut self, workload: &Workload) -> Batch {
        let at_ns = self.next_ns();
        let request = self.chunk[self.next];
        self.advance();
        let end = request.offset_bytes + request.size_bytes;
        let block_bytes = workload
            .block_bytes
            .or_else(|| (request.size_bytes > LARGEST_REQUEST_BYTES).then_some(LARGEST_REQUEST_BYTES));
        Batch {
            at_ns,
            deadline_ns: deadline_ns(workload, at_ns, 0.0),
            file: request.file,
            op: request.op,
            extents: cut(request.offset_bytes, end, block_bytes),
        }
    }
}
