//! Seek curve of Lee and Katz.

/// Seek time over distance: `a sqrt(x - 1) + b (x - 1) + c` for x >= 1 cylinders, 0 for x = 0.
///
/// Source: E. K. Lee, R. H. Katz, "An analytic performance model of disk arrays", SIGMETRICS 1993, section 3. They give
/// approximations of a, b and c for many cylinders; here the three are solved exactly from the minimum, the average and
/// the maximum for the number of cylinders.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeekCurve {
    /// Nanoseconds per square root of a cylinder.
    pub a: f64,
    /// Nanoseconds per cylinder.
    pub b: f64,
    /// Nanoseconds of a seek to the next cylinder.
    pub c: f64,
}

/// Error in the seek times of a profile.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SeekCurveError {
    /// The device is too small to have long and short seeks.
    #[error("too few cylinders for a seek curve (found {cylinders}, expected at least {at_least})")]
    TooFewCylinders {
        /// Number of cylinders.
        cylinders: u32,
        /// Least number of cylinders.
        at_least: u32,
    },
    /// The average lies outside the range from a straight line to a square root.
    #[error(
        "seek_avg_ms {average_ms}, expected between {lowest_ms:.3} (straight line) and {highest_ms:.3} (steepest start) for \
         seek_min_ms {min_ms} and seek_max_ms {max_ms}"
    )]
    Average {
        /// The given minimum.
        min_ms: f64,
        /// The given average.
        average_ms: f64,
        /// The given maximum.
        max_ms: f64,
        /// The least average that works.
        lowest_ms: f64,
        /// The greatest average that works.
        highest_ms: f64,
    },
    /// Invalid measured points.
    #[error("seek_points[{index}] (distance_cylinders {distance_cylinders}, ms {ms}): {problem}")]
    Points {
        /// Index of the point, from 0.
        index: usize,
        /// Its distance.
        distance_cylinders: f64,
        /// Its time.
        ms: f64,
        /// Problem and remedy.
        problem: &'static str,
    },
    /// The two pieces form no rising curve.
    #[error(
        "seek_two_piece: the curve falls at below_cylinders {below_cylinders} from {short_ms:.3} ms to {long_ms:.3} ms. Use \
         factors from 0 to 4000, and a line that begins at the end of the square root"
    )]
    TwoPiece {
        /// Where the pieces meet.
        below_cylinders: f64,
        /// The square root there.
        short_ms: f64,
        /// The line there.
        long_ms: f64,
    },
}

/// With fewer cylinders the square root and the straight line are indistinguishable.
pub(crate) const LEAST_CYLINDERS: u32 = 16;

impl SeekCurve {
    /// Solves the curve for a disk of `cylinders` cylinders.
    ///
    /// `min_ns` is the seek to the next cylinder, `max_ns` the one across all of them, and `average_ns` the mean over all
    /// pairs of different cylinders, each as likely (how manufacturers define it: distance n counts `cylinders - n` times).
    ///
    /// # Errors
    /// [`SeekCurveError`] for too few cylinders or a falling curve.
    pub fn solve(cylinders: u32, min_ns: f64, average_ns: f64, max_ns: f64) -> Result<Self, SeekCurveError> {
        if cylinders < LEAST_CYLINDERS {
            return Err(SeekCurveError::TooFewCylinders { cylinders, at_least: LEAST_CYLINDERS });
        }
        let longest = f64::from(cylinders - 2);
        let pairs = f64::from(cylinders) * f64::from(cylinders - 1) / 2.0;
        // The means of sqrt(x - 1) and of x - 1 over all pairs.
        let (mut root, mut line) = (0.0, 0.0);
        for distance in 1..cylinders {
            let share = f64::from(cylinders - distance) / pairs;
            let x = f64::from(distance - 1);
            root += share * x.sqrt();
            line += share * x;
        }
        // a sqrt(longest) + b longest = max - min;  a root + b line = average - min.
        let (rise, mean) = (max_ns - min_ns, average_ns - min_ns);
        let determinant = longest.sqrt() * line - longest * root;
        let a = (rise * line - longest * mean) / determinant;
        let b = (longest.sqrt() * mean - root * rise) / determinant;
        // It rises everywhere if it does at the start (a >= 0) and at the end, where the square root is flattest.
        let tolerance = 1e-9 * rise.abs();
        if a < -tolerance || 0.5 * a / longest.sqrt() + b < -tolerance / longest {
            let lowest = min_ns + rise * line / longest;
            // b = -a / (2 sqrt(longest)) gives a = 2 rise / sqrt(longest), b = -rise / longest.
            let highest = min_ns + 2.0 * rise / longest.sqrt() * root - rise / longest * line;
            return Err(SeekCurveError::Average {
                min_ms: min_ns / 1e6,
                average_ms: average_ns / 1e6,
                max_ms: max_ns / 1e6,
                lowest_ms: lowest / 1e6,
                highest_ms: highest / 1e6,
            });
        }
        Ok(Self { a, b, c: min_ns })
    }

    /// The time to move by `distance` cylinders.
    pub fn time_ns(&self, distance: u32) -> u64 {
        if distance == 0 {
            return 0;
        }
        let x = f64::from(distance - 1);
        (self.a * x.sqrt() + self.b * x + self.c).round() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn straight_line_by_hand() {
        // 17 cylinders, distances 1..=16, mean distance (C + 1) / 3 = 6. A line from 1 ms to 16 ms passes 6 ms there,
        // so a = 0 and b = 1 ms a cylinder.
        let curve = SeekCurve::solve(17, 1e6, 6e6, 16e6).unwrap();
        assert!(curve.a.abs() < 1e-3, "{curve:?}");
        assert!((curve.b - 1e6).abs() < 1e-3, "{curve:?}");
        assert_eq!([0, 1, 6, 16].map(|x| curve.time_ns(x)), [0, 1_000_000, 6_000_000, 16_000_000]);
    }

    #[test]
    fn minimum_average_and_maximum_are_met() {
        for cylinders in [16, 100, 302, 5_000] {
            let curve = SeekCurve::solve(cylinders, 0.8e6, 8.5e6, 16e6).unwrap();
            assert_eq!(curve.time_ns(1), 800_000);
            assert_eq!(curve.time_ns(cylinders - 1), 16_000_000);
            // All pairs, one by one.
            let (mut sum, mut pairs) = (0u64, 0u64);
            for from in 0..cylinders {
                for to in 0..from {
                    sum += curve.time_ns(from - to);
                    pairs += 1;
                }
            }
            let average = sum as f64 / pairs as f64;
            assert!((average / 8.5e6 - 1.0).abs() < 1e-6, "{cylinders} cylinders: {average}");
        }
    }

    #[test]
    fn an_impossible_average_names_the_range() {
        let error = SeekCurve::solve(1000, 1e6, 3e6, 16e6).unwrap_err();
        let SeekCurveError::Average { lowest_ms, highest_ms, .. } = error else { panic!("{error}") };
        assert!(SeekCurve::solve(1000, 1e6, lowest_ms * 1e6 + 1.0, 16e6).is_ok());
        assert!(SeekCurve::solve(1000, 1e6, highest_ms * 1e6 - 1.0, 16e6).is_ok());
        assert!(SeekCurve::solve(1000, 1e6, highest_ms * 1e6 + 1e3, 16e6).is_err());
        assert!(SeekCurve::solve(15, 1e6, 8e6, 16e6).is_err());
    }
}
