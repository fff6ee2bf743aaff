//! Device without service time.

use crate::device::{Completion, Device, IoRequest, RequestError, check};

/// Completes every request at its arrival.
#[derive(Debug)]
pub struct Instant {
    capacity_bytes: u64,
    /// In the order of their times.
    done: Vec<Completion>,
}

impl Instant {
    /// A device of `capacity_bytes`.
    pub fn new(capacity_bytes: u64) -> Self {
        Self { capacity_bytes, done: Vec::new() }
    }
}

impl Device for Instant {
    fn arrive(&mut self, now_ns: u64, request: IoRequest) -> Result<(), RequestError> {
        check(&request, self.capacity_bytes)?;
        self.done.push(Completion { tag: request.tag, start_ns: now_ns, done_ns: now_ns });
        Ok(())
    }

    fn next_event_ns(&self) -> Option<u64> {
        self.done.first().map(|completion| completion.done_ns)
    }

    fn advance(&mut self, now_ns: u64, completions: &mut Vec<Completion>) {
        let due = self.done.partition_point(|completion| completion.done_ns <= now_ns);
        completions.extend(self.done.drain(..due));
    }

    fn outstanding(&self) -> usize {
        self.done.len()
    }

    fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }
}
