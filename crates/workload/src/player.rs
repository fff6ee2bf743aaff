//! A client that replays a recording.

use std::sync::Arc;

use crate::client::{Batch, cut, deadline_ns};
use crate::limits::LARGEST_REQUEST_BYTES;
use crate::recording::Tape;
use crate::spec::Workload;

/// Position of a client in the sequence that all clients of its class share.
pub(crate) struct Player {
    tape: Arc<Tape>,
    next: usize,
    /// Time of the tape's beginning in this round.
    base_ns: i64,
}

impl Player {
    /// Client `number` of `clients`: it begins that share of the way along.
    pub(crate) fn new(tape: &Arc<Tape>, number: u32, clients: u32) -> Self {
        let share = i128::from(number) * i128::from(tape.round_ns) / i128::from(clients.max(1));
        let start_ns = share as i64;
        let next = tape.requests.partition_point(|request| request.at_ns < start_ns);
        let mut player = Player { tape: Arc::clone(tape), next, base_ns: -start_ns };
        player.go_round();
        player
    }

    fn go_round(&mut self) {
        if self.next == self.tape.requests.len() {
            self.next = 0;
            self.base_ns = self.base_ns.saturating_add(self.tape.round_ns);
        }
    }

    pub(crate) fn next_ns(&self) -> i64 {
        self.base_ns.saturating_add(self.tape.requests[self.next].at_ns)
    }

    pub(crate) fn batch(&mut self, workload: &Workload) -> Batch {
        let at_ns = self.next_ns();
        let request = self.tape.requests[self.next];
        self.next += 1;
        self.go_round();
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
