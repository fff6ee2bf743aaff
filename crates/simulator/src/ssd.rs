//! A flash device: parallel channels, each a queue.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::device::{Completion, Device, IoRequest, Op, RequestError, check};

/// Times of the flash and of the channel in front of it.
#[derive(Clone, Copy, Debug)]
pub struct FlashTiming {
    /// Bytes of a page; page n is on channel n modulo the number of channels.
    pub page_bytes: u64,
    /// From a command to the first byte of a page.
    pub read_latency_ns: u64,
    /// From the last byte of a page to its being written.
    pub write_latency_ns: u64,
    /// How fast a channel moves bytes, per second.
    pub channel_bytes_per_s: f64,
    /// Time of the controller for each request, independent of the channels.
    pub command_overhead_ns: u64,
}

/// A solid-state disk with parallel channels.
///
/// A request is cut at page boundaries; each piece waits for its channel in order of arrival and keeps it for the latency and
/// the transfer; the request is done when its last piece is. There is no garbage collection and no write buffer.
#[derive(Debug)]
pub struct Ssd {
    timing: FlashTiming,
    capacity_bytes: u64,
    channel_free_ns: Vec<u64>,
    /// Outstanding requests, the first to complete on top: time, then order of arrival, then tag and start.
    serving: BinaryHeap<Reverse<(u64, u64, u64, u64)>>,
    arrivals: u64,
    /// The byte after the last request.
    head_bytes: u64,
}

impl Ssd {
    /// A device of `capacity_bytes` with `channels` (at least 1) channels.
    pub fn new(capacity_bytes: u64, channels: usize, timing: FlashTiming) -> Self {
        let channel_free_ns = vec![0; channels.max(1)];
        Self {
            timing,
            capacity_bytes,
            channel_free_ns,
            serving: BinaryHeap::new(),
            arrivals: 0,
            head_bytes: 0,
        }
    }
}

impl Ssd {
    /// Times of the flash and of the channels.
    pub fn timing(&self) -> &FlashTiming {
        &self.timing
    }

    pub(crate) fn channel_free_ns(&self) -> &[u64] {
        &self.channel_free_ns
    }

    pub(crate) fn head_bytes(&self) -> u64 {
        self.head_bytes
    }

    /// From the command to the last byte of `size_bytes` bytes of a page.
    pub(crate) fn piece_ns(&self, op: Op, size_bytes: u64) -> u64 {
        let latency_ns = match op {
            Op::Read => self.timing.read_latency_ns,
            Op::Write => self.timing.write_latency_ns,
        };
        latency_ns + (size_bytes as f64 / self.timing.channel_bytes_per_s * 1e9).round() as u64
    }
}

impl Device for Ssd {
    fn arrive(&mut self, now_ns: u64, request: IoRequest) -> Result<(), RequestError> {
        check(&request, self.capacity_bytes)?;
        let page_bytes = self.timing.page_bytes;
        let ready_ns = now_ns + self.timing.command_overhead_ns;
        let (mut first, mut done_ns) = (request.offset_bytes, ready_ns);
        while first < request.end_bytes() {
            let page = first / page_bytes;
            let end = ((page + 1) * page_bytes).min(request.end_bytes());
            let piece_ns = self.piece_ns(request.op, end - first);
            let channel = (page % self.channel_free_ns.len() as u64) as usize;
            let free_ns = &mut self.channel_free_ns[channel];
            *free_ns = (*free_ns).max(ready_ns) + piece_ns;
            done_ns = done_ns.max(*free_ns);
            first = end;
        }
        self.serving.push(Reverse((done_ns, self.arrivals, request.tag, now_ns)));
        self.arrivals += 1;
        self.head_bytes = request.end_bytes();
        Ok(())
    }

    fn next_event_ns(&self) -> Option<u64> {
        self.serving.peek().map(|Reverse((done_ns, ..))| *done_ns)
    }

    fn advance(&mut self, now_ns: u64, completions: &mut Vec<Completion>) {
        while let Some(Reverse((done_ns, _, tag, start_ns))) = self.serving.peek().copied() {
            if done_ns > now_ns {
                break;
            }
            self.serving.pop();
            completions.push(Completion { tag, start_ns, done_ns });
        }
    }

    fn outstanding(&self) -> usize {
        self.serving.len()
    }

    fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_channels_by_hand() {
        // A byte takes 1 ns; pages of 1000 bytes; latency 5 us read, 9 us write; overhead 1 us.
        let timing = FlashTiming {
            page_bytes: 1000,
            read_latency_ns: 5_000,
            write_latency_ns: 9_000,
            channel_bytes_per_s: 1e9,
            command_overhead_ns: 1_000,
        };
        let mut ssd = Ssd::new(10_000, 2, timing);
        let request = |tag, op, offset_bytes, size_bytes| IoRequest { tag, op, offset_bytes, size_bytes };
        // Pages 0 (500 bytes), 1 (1000), 2 (500): channel 0 from 1 us to 6.5 and then to 12.0; channel 1 to 7.0.
        ssd.arrive(0, request(1, Op::Read, 500, 2000)).unwrap();
        // Page 3 on channel 1, from 7.0 us: 9 + 1 us.
        ssd.arrive(2_000, request(2, Op::Write, 3000, 1000)).unwrap();
        // Page 4 on channel 0, free long since.
        ssd.arrive(50_000, request(3, Op::Read, 4000, 1)).unwrap();
        let mut done = Vec::new();
        ssd.advance(u64::MAX, &mut done);
        let done: Vec<_> = done.iter().map(|c| (c.tag, c.start_ns, c.done_ns)).collect();
        assert_eq!(done, [(1, 0, 12_000), (2, 2_000, 17_000), (3, 50_000, 56_001)]);
    }
}
