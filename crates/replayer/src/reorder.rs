//! Reordering of a stream from completion order to intended order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use weir_records::Request;

/// Yields requests in order of intended time, then of number, with a bound on their disorder.
///
/// Memory holds the requests of one `disorder_ns` of the stream: with `disorder_ns` from
/// [`crate::StreamSummary`], no request can arrive that should have come before one already yielded.
#[derive(Debug)]
pub struct Reordered<I> {
    source: I,
    disorder_ns: i64,
    latest_ns: i64,
    ended: bool,
    held: BinaryHeap<Reverse<Held>>,
}

#[derive(Debug)]
struct Held(Request);

impl Held {
    fn key(&self) -> (i64, u64) {
        (self.0.intended_ns, self.0.request)
    }
}

impl PartialEq for Held {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Held {}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Held {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl<I: Iterator<Item = Request>> Reordered<I> {
    /// Reorders `source`, whose requests are at most `disorder_ns` earlier than a predecessor.
    pub fn new(source: I, disorder_ns: i64) -> Self {
        Reordered { source, disorder_ns, latest_ns: i64::MIN, ended: false, held: BinaryHeap::new() }
    }
}

impl<I: Iterator<Item = Request>> Iterator for Reordered<I> {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        while !self.ended {
            if let Some(Reverse(first)) = self.held.peek()
                && first.0.intended_ns < self.latest_ns.saturating_sub(self.disorder_ns)
            {
                break;
            }
            match self.source.next() {
                Some(request) => {
                    self.latest_ns = self.latest_ns.max(request.intended_ns);
                    self.held.push(Reverse(Held(request)));
                }
                None => self.ended = true,
            }
        }
        self.held.pop().map(|Reverse(held)| held.0)
    }
}
