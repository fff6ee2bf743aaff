//! Highest rate of a stream.

/// Length of a window, ns, and windows in a second.
const WINDOW_NS: i64 = 10_000_000;
const WINDOWS_PER_S: f64 = 100.0;

/// Counts the requests of a stream in windows of 10 ms. Of a stream out of order it finds a lower bound.
#[derive(Debug, Clone, Default)]
pub struct PeakRate {
    window: i64,
    in_window: u64,
    highest: u64,
}

impl PeakRate {
    /// Counts the next request of the stream.
    pub fn add(&mut self, intended_ns: i64) {
        let window = intended_ns.div_euclid(WINDOW_NS);
        if window != self.window {
            (self.window, self.in_window) = (window, 0);
        }
        self.in_window += 1;
        self.highest = self.highest.max(self.in_window);
    }

    /// Most requests in any window, in requests per second.
    pub fn per_s(&self) -> f64 {
        self.highest as f64 * WINDOWS_PER_S
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fullest_window_decides() {
        let mut peak = PeakRate::default();
        assert_eq!(peak.per_s(), 0.0);
        for intended_ns in [-1, 0, 9_999_999, 10_000_000, 10_000_001, 19_999_999, 50_000_000] {
            peak.add(intended_ns);
        }
        assert_eq!(peak.per_s(), 300.0);
    }
}
