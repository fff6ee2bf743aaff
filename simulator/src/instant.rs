//! A device without service time.

use crate::device::{Completion, Device, IoRequest, RequestError, check};

/// Completes every request at its arrival.
#[derive(Debug)]
pub struct Instant {
    capacity_bytes: u64,
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
        self.done.iter().map(|c| c.done_ns).min()
    }

    fn advance(&mut self, now_ns: u64, completions: &mut Vec<Completion>) {
        completions.extend(self.done.extract_if(.., |c| c.done_ns <= now_ns));
    }

    fn outstanding(&self) -> usize {
        self.done.len()
    }

    fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }
}
