//! Alternation of real-time and best-effort requests on a head.

/// Alternation of requests with deadlines and others, in the order of dispatch to a device.
///
/// A burst is a run of best-effort requests between two real-time ones, as in Bosch, "Mixed-media file systems", PhD thesis,
/// University of Twente, 1999, section 6.5.1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mix {
    /// Requests of real-time classes.
    pub real_time: u64,
    /// All others.
    pub best_effort: u64,
    /// Requests of the other kind than the one before.
    pub switches: u64,
    /// Bursts that have ended.
    pub bursts: u64,
    /// Requests in these.
    pub burst_requests: u64,
    /// The squares of their lengths, added up.
    pub burst_squares: u128,
    /// Requests of the longest one.
    pub longest_burst: u64,
    /// Requests of the current burst, if the last request was best effort.
    open: u64,
}

impl Mix {
    /// Takes the next request.
    pub(super) fn add(&mut self, is_real_time: bool) {
        let is_first = self.real_time + self.best_effort == 0;
        if is_real_time {
            self.real_time += 1;
            if self.open > 0 {
                self.switches += 1;
                self.bursts += 1;
                self.burst_requests += self.open;
                self.burst_squares += u128::from(self.open) * u128::from(self.open);
                self.longest_burst = self.longest_burst.max(self.open);
                self.open = 0;
            }
        } else {
            if self.open == 0 && !is_first {
                self.switches += 1;
            }
            self.best_effort += 1;
            self.open += 1;
        }
    }

    /// Both heads' requests, each in its own order.
    #[must_use]
    pub fn with(self, other: Mix) -> Mix {
        Mix {
            real_time: self.real_time + other.real_time,
            best_effort: self.best_effort + other.best_effort,
            switches: self.switches + other.switches,
            bursts: self.bursts + other.bursts,
            burst_requests: self.burst_requests + other.burst_requests,
            burst_squares: self.burst_squares + other.burst_squares,
            longest_burst: self.longest_burst.max(other.longest_burst),
            open: 0,
        }
    }

    /// Mean and standard deviation of the lengths of bursts, in requests; nothing without any.
    pub fn burst_mean_sd(&self) -> Option<(f64, f64)> {
        if self.bursts == 0 {
            return None;
        }
        let bursts = self.bursts as f64;
        let mean = self.burst_requests as f64 / bursts;
        let variance = self.burst_squares as f64 / bursts - mean * mean;
        Some((mean, variance.max(0.0).sqrt()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mix(kinds: &str) -> Mix {
        let mut mix = Mix::default();
        kinds.chars().for_each(|kind| mix.add(kind == 'R'));
        mix
    }

    #[test]
    fn bursts_by_hand() {
        let found = mix("bbRbRRbbbRb");
        assert_eq!((found.real_time, found.best_effort, found.switches), (4, 7, 6));
        assert_eq!((found.bursts, found.burst_requests, found.longest_burst), (3, 6, 3));
        let (mean, sd) = found.burst_mean_sd().unwrap();
        // 2, 1 and 3.
        assert!((mean - 2.0).abs() < 1e-12 && (sd - (2.0f64 / 3.0).sqrt()).abs() < 1e-12);
        assert_eq!(mix("RRR").burst_mean_sd(), None);
        assert_eq!((mix("bbb").switches, mix("bbb").bursts), (0, 0));
        let both = found.with(mix("bbbbbR"));
        assert_eq!((both.bursts, both.longest_burst, both.switches), (4, 5, 7));
    }
}
