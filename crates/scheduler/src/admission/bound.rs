//! Upper bound of the service time of a round's requests on a disk.

use super::{AdmissionError, refused};

/// The seek curve of Lee and Katz, `a sqrt(x - 1) + b (x - 1) + c` for `x` cylinders, with `a`, `b` and `c` from the
/// shortest, the mean and the longest seek (Lee and Katz, "An analytic performance model of disk arrays", 1993).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SeekCurve {
    a_ns: f64,
    b_ns: f64,
    c_ns: f64,
}

impl SeekCurve {
    /// Curve of a disk with this number of cylinders; seeks in ns.
    ///
    /// # Errors
    /// Fewer than 2 cylinders, seeks out of order, or a falling curve.
    pub fn new(cylinders: u32, min_ns: u64, avg_ns: u64, max_ns: u64) -> Result<SeekCurve, AdmissionError> {
        if cylinders < 2 {
            return Err(refused("cylinders", cylinders, "at least 2"));
        }
        if !(min_ns <= avg_ns && avg_ns <= max_ns) {
            let seeks = format!("{min_ns}, {avg_ns}, {max_ns}");
            return Err(refused("the seeks in ns (min, avg, max)", seeks, "in this order"));
        }
        let (min, avg, max) = (min_ns as f64, avg_ns as f64, max_ns as f64);
        let length = f64::from(cylinders);
        let curve = SeekCurve {
            a_ns: (15.0 * avg - 10.0 * min - 5.0 * max) / (3.0 * length.sqrt()),
            b_ns: (7.0 * min - 15.0 * avg + 8.0 * max) / (3.0 * length),
            c_ns: min,
        };
        if curve.a_ns < 0.0 || curve.b_ns < 0.0 {
            let seeks = format!("{min_ns}, {avg_ns}, {max_ns}");
            let expected = "a rising, concave curve: (10 min + 5 max) / 15 <= avg <= (7 min + 8 max) / 15";
            return Err(refused("the seeks in ns (min, avg, max)", seeks, expected));
        }
        Ok(curve)
    }

    /// Seek time over a number of cylinders, in ns, rounded up; 0 for 0.
    pub fn seek_ns(&self, cylinders: u32) -> u64 {
        match cylinders {
            0 => 0,
            distance => {
                let rest = f64::from(distance - 1);
                (self.a_ns * rest.sqrt() + self.b_ns * rest + self.c_ns).ceil() as u64
            }
        }
    }
}

/// Upper bound of the service time of a round's requests on one disk: a seek each, as if all lay at equal distances along the
/// arm's path (the worst case for a concave seek curve), a rotational latency each, and the transfer of their blocks (Wijayaratne and Reddy, sections 2.2 and 4.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoundBound {
    /// For 0, 1, 2... requests.
    positioning_ns: Vec<u64>,
    block_ns: u64,
}

impl RoundBound {
    /// `seek_ns` is the time of a seek over a number of cylinders, `way_cylinders` the maximum distance of the arm in a
    /// round: all cylinders if every round begins at an edge, as in the paper, 1.5 times as many if it begins anywhere.
    /// `latency_ns` is a whole revolution for a true bound, `bytes_per_s` the lowest transfer rate. Bounds are kept for
    /// `most_requests` requests; more are assumed to exceed every round.
    ///
    /// # Errors
    /// A size, a rate or a number of requests of 0.
    pub fn new(
        seek_ns: impl Fn(u32) -> u64,
        way_cylinders: u32,
        latency_ns: u64,
        bytes_per_s: u64,
        block_bytes: u64,
        most_requests: u32,
    ) -> Result<RoundBound, AdmissionError> {
        let numbers = [
            ("way_cylinders", u64::from(way_cylinders)),
            ("bytes_per_s", bytes_per_s),
            ("block_bytes", block_bytes),
            ("most_requests", u64::from(most_requests)),
        ];
        for (what, value) in numbers {
            if value == 0 {
                return Err(refused(what, value, "at least 1"));
            }
        }
        let block_ns = (u128::from(block_bytes) * 1_000_000_000).div_ceil(u128::from(bytes_per_s));
        let block_ns = u64::try_from(block_ns)
            .map_err(|_| refused("the transfer of a block", format!("{block_ns} ns"), "below 2^64 ns"))?;
        let positioning_ns = (0..=most_requests)
            .map(|requests| match requests {
                0 => 0,
                _ => u64::from(requests)
                    .saturating_mul(seek_ns(way_cylinders.div_ceil(requests)).saturating_add(latency_ns)),
            })
            .collect();
        Ok(RoundBound { positioning_ns, block_ns })
    }

    /// Upper bound for a number of requests with a number of blocks in total, in ns.
    pub fn service_ns(&self, requests: u32, blocks: u32) -> u64 {
        let positioning = self.positioning_ns.get(requests as usize).copied().unwrap_or(u64::MAX);
        positioning.saturating_add(self.block_ns.saturating_mul(u64::from(blocks)))
    }

    /// For 0, 1, 2... requests the blocks that they can have within a time; nothing behind the last number of requests
    /// that can have any.
    pub(crate) fn most_blocks(&self, capacity_ns: u64) -> Vec<u32> {
        let within = self.positioning_ns.iter().take_while(|&&positioning| positioning <= capacity_ns);
        within
            .map(|positioning| {
                u32::try_from((capacity_ns - positioning) / self.block_ns.max(1)).unwrap_or(u32::MAX)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn barracuda() -> SeekCurve {
        SeekCurve::new(3711, 600_000, 8_000_000, 17_000_000).unwrap()
    }

    #[test]
    fn the_curve_goes_through_its_ends() {
        let curve = barracuda();
        assert_eq!(curve.seek_ns(0), 0);
        assert_eq!(curve.seek_ns(1), 600_000);
        let longest = curve.seek_ns(3710);
        assert!(longest.abs_diff(17_000_000) < 10_000, "{longest}");
        // The mean over pairs of random cylinders, each distance x with 2 (C - x) / C^2.
        let cylinders = 3711.0;
        let mean: f64 = (1..3711)
            .map(|x| curve.seek_ns(x) as f64 * 2.0 * (cylinders - f64::from(x)) / (cylinders * cylinders))
            .sum();
        assert!((mean / 8e6 - 1.0).abs() < 0.02, "{mean}");
    }

    #[test]
    fn seeks_without_a_curve_are_refused() {
        assert!(SeekCurve::new(3711, 9, 8, 17).is_err());
        assert!(SeekCurve::new(1, 1, 2, 3).is_err());
        assert!(SeekCurve::new(3711, 600_000, 16_900_000, 17_000_000).is_err());
    }

    #[test]
    fn a_round_is_seeks_latencies_and_transfers() {
        let bound = RoundBound::new(|x| 1000 + u64::from(x), 100, 50, 1_000_000_000, 10, 8).unwrap();
        assert_eq!(bound.service_ns(0, 0), 0);
        assert_eq!(bound.service_ns(2, 3), 2 * (1000 + 50 + 50) + 3 * 10);
        assert_eq!(bound.service_ns(9, 0), u64::MAX);
        assert_eq!(bound.most_blocks(2230), [223, 108, 3]);
    }

    proptest! {
        /// No sweep from an edge over any places takes longer than the bound.
        #[test]
        fn equal_distances_are_the_worst(places in prop::collection::btree_set(0u32..3711, 1..40)) {
            let curve = barracuda();
            let bound = RoundBound::new(|x| curve.seek_ns(x), 3711, 0, 1, 1, 64).unwrap();
            let mut seeks = 0;
            let mut arm = 0;
            for &place in &places {
                seeks += curve.seek_ns(place - arm);
                arm = place;
            }
            prop_assert!(seeks <= bound.service_ns(places.len() as u32, 0));
        }
    }
}
