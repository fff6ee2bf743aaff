//! Pacing: the margin before an instant at which sleeping ends and spinning begins.

/// Estimates the lateness of sleeps on this machine.
///
/// The margin is the mean lateness plus three mean deviations, averaged exponentially as in TCP's round-trip estimate (RFC 6298:
/// weights 1/8 and 1/4). Spinning costs at most `MOST_NS` of CPU time for each instant.
#[derive(Debug)]
pub(crate) struct Margin {
    mean_ns: f64,
    deviation_ns: f64,
}

const LEAST_NS: f64 = 5_000.0;
const MOST_NS: f64 = 300_000.0;

impl Margin {
    pub fn new() -> Self {
        Self { mean_ns: 60_000.0, deviation_ns: 10_000.0 }
    }

    /// Records the lateness of a sleep. It counts at most as the maximum margin: CPU steal would otherwise distort the average for
    /// long.
    pub fn observe(&mut self, late_ns: u64) {
        let late_ns = (late_ns as f64).min(MOST_NS);
        self.deviation_ns += ((late_ns - self.mean_ns).abs() - self.deviation_ns) / 4.0;
        self.mean_ns += (late_ns - self.mean_ns) / 8.0;
    }

    pub fn ns(&self) -> u64 {
        (self.mean_ns + 3.0 * self.deviation_ns).clamp(LEAST_NS, MOST_NS) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_margin_covers_what_was_seen_and_is_bounded() {
        let mut margin = Margin::new();
        for late_ns in [40_000, 50_000, 45_000].repeat(50) {
            margin.observe(late_ns);
        }
        assert!((50_000..80_000).contains(&margin.ns()), "{}", margin.ns());
        margin.observe(20_000_000);
        assert!(margin.ns() <= 300_000);
        for _ in 0..200 {
            margin.observe(0);
        }
        assert_eq!(margin.ns(), 5_000);
    }
}
