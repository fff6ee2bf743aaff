//! Sequentiality: requests that begin at the end of the previous one in the same address space.

use serde::Serialize;

use super::histogram::{Distribution, Histogram};

#[derive(Debug, Clone, Copy, Default)]
struct Space {
    /// Where the last request ended.
    end: Option<u64>,
    run: u64,
}

/// Follows the requests of each device, or of each file if the trace has files.
#[derive(Debug, Default)]
pub struct Sequence {
    spaces: Vec<Space>,
    requests: u64,
    sequential: u64,
    runs: Histogram,
}

/// Counts so far.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sequentiality {
    /// Reads and writes with an offset.
    pub requests: u64,
    /// Requests that began at the end of the last request to their device (or file).
    pub sequential: u64,
    /// Their share.
    pub share: f64,
    /// Lengths of runs, in requests: 1 is a request that neither continues one nor is continued.
    pub run_requests: Option<Distribution>,
}

impl Sequence {
    /// Follows a read or write in the address space of this number.
    pub fn add(&mut self, space: u32, offset_bytes: u64, size_bytes: u64) {
        let space = space as usize;
        if space >= self.spaces.len() {
            self.spaces.resize(space + 1, Space::default());
        }
        let state = &mut self.spaces[space];
        self.requests += 1;
        if state.end == Some(offset_bytes) {
            self.sequential += 1;
            state.run += 1;
        } else {
            if state.run > 0 {
                self.runs.add(state.run);
            }
            state.run = 1;
        }
        state.end = offset_bytes.checked_add(size_bytes);
    }

    /// The result; absent if no request had an offset.
    pub fn finish(mut self) -> Option<Sequentiality> {
        for space in self.spaces.iter().filter(|space| space.run > 0) {
            self.runs.add(space.run);
        }
        (self.requests > 0).then(|| Sequentiality {
            requests: self.requests,
            sequential: self.sequential,
            share: self.sequential as f64 / self.requests as f64,
            run_requests: self.runs.distribution(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_within_a_device() {
        let mut sequence = Sequence::default();
        for (space, offset) in [(0, 0), (1, 10), (0, 10), (0, 20), (1, 20), (0, 50), (0, 50)] {
            sequence.add(space, offset, 10);
        }
        let found = sequence.finish().unwrap();
        assert_eq!((found.requests, found.sequential), (7, 3));
        // Device 0: 0, 10, 20 | 50 | 50. Device 1: 10, 20.
        let runs = found.run_requests.unwrap();
        assert_eq!((runs.count, runs.max, runs.min), (4, 3, 1));
        assert!(Sequence::default().finish().is_none());
    }
}
