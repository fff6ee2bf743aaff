//! Seek times for every distance, from a curve in one of three forms.

use crate::seek::{SeekCurve, SeekCurveError};

/// Form of a drive's seek times. Distances are in cylinders of the whole drive.
#[derive(Clone, Debug, PartialEq)]
pub enum SeekForm {
    /// Solved from minimum, average and maximum.
    LeeKatz(SeekCurve),
    /// A square root for short seeks, a line for long ones: C. Ruemmler, J. Wilkes, "An introduction to disk drive
    /// modeling", IEEE Computer 27(3), 1994, figure 2 and table 2.
    TwoPiece {
        /// Distances below this follow the square root.
        below_cylinders: f64,
        /// Constant of the square root.
        short_ns: f64,
        /// And its factor.
        short_ns_per_root: f64,
        /// Constant of the line.
        long_ns: f64,
        /// And its slope.
        long_ns_per_cylinder: f64,
    },
    /// Measured distances (rising, the first is 1) and their times in ns (not falling), straight lines between them and
    /// the last one's slope after it.
    Points(Vec<(f64, f64)>),
}

/// No arm takes longer. Times are tabulated in 32 bits of ns.
const LONGEST_NS: f64 = 4e9;

impl SeekForm {
    /// Points must rise.
    ///
    /// # Errors
    /// [`SeekCurveError::Points`] names the first that does not.
    pub fn points(points: Vec<(f64, f64)>) -> Result<Self, SeekCurveError> {
        let bad = |index: usize, problem| {
            let (distance_cylinders, ns) = points.get(index).copied().unwrap_or_default();
            Err(SeekCurveError::Points { index, distance_cylinders, ms: ns / 1e6, problem })
        };
        if points.len() < 2 {
            return bad(0, "expected at least two points");
        }
        if points[0].0 != 1.0 {
            return bad(0, "expected a distance of 1 for the first point");
        }
        if points[0].1 < 0.0 || !points.iter().all(|(x, y)| x.is_finite() && y.is_finite()) {
            return bad(0, "expected times of at least 0");
        }
        if let Some(index) = points.iter().position(|(_, ns)| *ns > LONGEST_NS) {
            return bad(index, "expected at most 4000 ms. Use milliseconds");
        }
        for index in 1..points.len() {
            if points[index].0 <= points[index - 1].0 {
                return bad(index, "expected rising distances");
            }
            if points[index].1 < points[index - 1].1 {
                return bad(
                    index,
                    "a longer seek takes less time. Use the larger of both times, or remove a point",
                );
            }
        }
        Ok(Self::Points(points))
    }

    /// The two pieces must rise and meet.
    ///
    /// # Errors
    /// [`SeekCurveError::TwoPiece`].
    pub fn two_piece(
        below_cylinders: f64,
        short_ns: f64,
        short_ns_per_root: f64,
        long_ns: f64,
        long_ns_per_cylinder: f64,
    ) -> Result<Self, SeekCurveError> {
        let short_end = short_ns + short_ns_per_root * below_cylinders.sqrt();
        let long_start = long_ns + long_ns_per_cylinder * below_cylinders;
        // Published coefficients are rounded: 2 % of a step down is a corner, more is a mistake.
        let all = [below_cylinders, short_ns, short_ns_per_root, long_ns, long_ns_per_cylinder];
        let numbers = all.into_iter().all(|value| value.abs() <= LONGEST_NS);
        let falls = short_ns < 0.0 || short_ns_per_root < 0.0 || long_ns_per_cylinder < 0.0;
        if !numbers || falls || below_cylinders < 1.0 || long_start < short_end * 0.98 {
            return Err(SeekCurveError::TwoPiece {
                below_cylinders,
                short_ms: short_end / 1e6,
                long_ms: long_start / 1e6,
            });
        }
        Ok(Self::TwoPiece { below_cylinders, short_ns, short_ns_per_root, long_ns, long_ns_per_cylinder })
    }

    /// The time for a distance of at least 1 cylinder.
    fn at(&self, distance: f64) -> f64 {
        match self {
            Self::LeeKatz(curve) => {
                let x = distance - 1.0;
                curve.a * x.sqrt() + curve.b * x + curve.c
            }
            Self::TwoPiece {
                below_cylinders,
                short_ns,
                short_ns_per_root,
                long_ns,
                long_ns_per_cylinder,
            } => {
                let long = long_ns + long_ns_per_cylinder * distance;
                if distance < *below_cylinders {
                    short_ns + short_ns_per_root * distance.sqrt()
                } else {
                    // Where rounded coefficients step down, the curve stays level.
                    long.max(short_ns + short_ns_per_root * below_cylinders.sqrt())
                }
            }
            Self::Points(points) => {
                let next = points.partition_point(|(x, _)| *x <= distance).clamp(1, points.len() - 1);
                let ((x0, y0), (x1, y1)) = (points[next - 1], points[next]);
                y0 + (y1 - y0) * (distance - x0) / (x1 - x0)
            }
        }
    }
}

/// Seek time over distance, for a disk with some number of cylinders.
#[derive(Clone, Debug)]
pub struct SeekTimes {
    form: SeekForm,
    /// Cylinders of the whole drive for each of this disk, after the first: a smaller disk keeps the arm's full stroke.
    scale: f64,
    table_ns: std::sync::Arc<[u32]>,
}

/// Longer tables would not stay in a processor's cache and cost more than the formula.
const MOST_IN_TABLE: u32 = 16_384;

impl SeekTimes {
    /// The seek times of a disk of `cylinders` cylinders that is a copy of one with `full_cylinders`.
    pub fn new(form: SeekForm, cylinders: u32, full_cylinders: u32) -> Self {
        let stroke = |cylinders: u32| f64::from(cylinders.saturating_sub(2).max(1));
        let scale =
            if cylinders == full_cylinders { 1.0 } else { stroke(full_cylinders) / stroke(cylinders) };
        let mut times = Self { form, scale, table_ns: [].into() };
        times.table_ns = (0..cylinders.min(MOST_IN_TABLE)).map(|distance| times.compute(distance)).collect();
        times
    }

    /// The time to move by `distance` cylinders, in ns.
    #[inline]
    pub fn time_ns(&self, distance: u32) -> u64 {
        match self.table_ns.get(distance as usize) {
            Some(time_ns) => u64::from(*time_ns),
            None => u64::from(self.compute(distance)),
        }
    }

    fn compute(&self, distance: u32) -> u32 {
        if distance == 0 {
            return 0;
        }
        self.form.at(1.0 + f64::from(distance - 1) * self.scale).round() as u32
    }
}

impl From<SeekCurve> for SeekTimes {
    fn from(curve: SeekCurve) -> Self {
        Self { form: SeekForm::LeeKatz(curve), scale: 1.0, table_ns: [].into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ruemmler_and_wilkes_hp_97560() {
        // Table 2: 3.24 + 0.400 sqrt(d) below 383 cylinders, 8.00 + 0.008 d from there.
        let form = SeekForm::two_piece(383.0, 3.24e6, 0.4e6, 8e6, 0.008e6).unwrap();
        let seek = SeekTimes::new(form, 1962, 1962);
        assert_eq!(
            [0, 1, 100, 1000, 1961].map(|d| seek.time_ns(d)),
            [0, 3_640_000, 7_240_000, 16_000_000, 23_688_000]
        );
        assert!((1..1961).all(|d| seek.time_ns(d) <= seek.time_ns(d + 1)));
    }

    #[test]
    fn lines_between_points_and_on_after_the_last() {
        let form = SeekForm::points(vec![(1.0, 1e6), (11.0, 3e6), (21.0, 4e6)]).unwrap();
        let seek = SeekTimes::new(form.clone(), 100, 100);
        assert_eq!(
            [1, 6, 11, 16, 31].map(|d| seek.time_ns(d)),
            [1_000_000, 2_000_000, 3_000_000, 3_500_000, 5_000_000]
        );
        // Half the cylinders after the first step: the same stroke.
        let half = SeekTimes::new(form, 51, 100);
        assert_eq!([half.time_ns(1), half.time_ns(50)], [seek.time_ns(1), seek.time_ns(99)]);
    }

    #[test]
    fn a_falling_curve_is_refused() {
        let error = SeekForm::points(vec![(1.0, 1e6), (2.0, 0.9e6)]).unwrap_err().to_string();
        assert!(error.contains("seek_points[1]") && error.contains("0.9"), "{error}");
        assert!(SeekForm::points(vec![(2.0, 1e6), (3.0, 2e6)]).is_err());
        let error = SeekForm::two_piece(383.0, 3.24e6, 0.4e6, 4e6, 0.008e6).unwrap_err().to_string();
        assert!(error.contains("383") && error.contains("11.06"), "{error}");
    }

    #[test]
    fn the_table_is_the_formula() {
        let curve = SeekCurve::solve(20_000, 1e6, 8e6, 16e6).unwrap();
        let seek = SeekTimes::new(SeekForm::LeeKatz(curve), 20_000, 20_000);
        for distance in [0, 1, 2, 500, 16_383, 16_384, 19_999] {
            assert_eq!(seek.time_ns(distance), curve.time_ns(distance));
        }
    }
}
