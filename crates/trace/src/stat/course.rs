//! Load over the whole trace, in at most 1024 windows of adaptive length.

use serde::Serialize;

const WINDOWS: usize = 1024;
const SHORTEST_NS: i64 = 1_000_000;

/// Requests and bytes over time.
#[derive(Debug)]
pub struct Course {
    window_ns: i64,
    requests: Vec<u64>,
    bytes: Vec<u64>,
}

/// Requests and bytes in windows that follow one another from the first arrival; the last one may not be whole.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Load {
    /// Length of a window.
    pub window_ns: i64,
    /// Requests in each.
    pub requests: Vec<u64>,
    /// Bytes in each.
    pub bytes: Vec<u64>,
}

impl Default for Course {
    fn default() -> Self {
        Course { window_ns: SHORTEST_NS, requests: Vec::new(), bytes: Vec::new() }
    }
}

impl Course {
    /// Counts a request, in ns since the first.
    pub fn add(&mut self, since_first_ns: i64, bytes: u64) {
        while since_first_ns / self.window_ns >= WINDOWS as i64 {
            self.halve();
        }
        let window = (since_first_ns / self.window_ns) as usize;
        if window >= self.requests.len() {
            self.requests.resize(window + 1, 0);
            self.bytes.resize(window + 1, 0);
        }
        self.requests[window] += 1;
        self.bytes[window] = self.bytes[window].saturating_add(bytes);
    }

    /// Merges pairs of windows.
    fn halve(&mut self) {
        let pairs = |counts: &[u64]| {
            counts
                .chunks(2)
                .map(|pair| pair.iter().fold(0, |sum: u64, count| sum.saturating_add(*count)))
                .collect()
        };
        self.requests = pairs(&self.requests);
        self.bytes = pairs(&self.bytes);
        self.window_ns = self.window_ns.saturating_mul(2);
    }

    /// Load so far.
    pub fn finish(self) -> Load {
        Load { window_ns: self.window_ns, requests: self.requests, bytes: self.bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_as_windows_grow() {
        let mut course = Course::default();
        let times = [0, 5_000_000, 5_100_000, 7_000_000_000, 604_800_000_000_000, i64::MAX];
        times.iter().for_each(|time| course.add(*time, 10));
        let load = course.finish();
        assert!(load.requests.len() <= WINDOWS);
        assert_eq!((load.requests.iter().sum::<u64>(), load.bytes.iter().sum::<u64>()), (6, 60));
        assert_eq!(load.requests[0], 5);
    }
}
