//! Division by a number that is known long before.

/// A divisor with its reciprocal: multiplications take a third of the time of a division.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Divisor {
    by: u64,
    /// (2^64 - 1) / `by`, rounded down: less than 2^64 / `by` by at most 1.
    reciprocal: u64,
}

impl Divisor {
    pub fn new(by: u64) -> Self {
        Self { by, reciprocal: u64::MAX.checked_div(by).unwrap_or(0) }
    }

    /// The number itself.
    pub fn get(self) -> u64 {
        self.by
    }

    /// Quotient and remainder. The divisor must not be 0.
    #[inline]
    pub fn divide(self, value: u64) -> (u64, u64) {
        let quotient = ((u128::from(value) * u128::from(self.reciprocal)) >> 64) as u64;
        // `value` x `reciprocal` / 2^64 is less than the exact quotient by at most 1, and so is this after rounding down.
        let rest = value - quotient * self.by;
        if rest < self.by { (quotient, rest) } else { (quotient + 1, rest - self.by) }
    }

    /// The remainder. The divisor must not be 0.
    #[inline]
    pub fn rest(self, value: u64) -> u64 {
        self.divide(value).1
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_divides(
            by in prop_oneof![1u64..9, 1u64..100_000, 1u64..=u64::MAX],
            value: u64,
            bits in 0u32..64,
            near in -2i64..3,
        ) {
            let divisor = Divisor::new(by);
            // Where an estimate is wrong first: at multiples, and at the largest values.
            let multiple = (value >> bits) / by * by;
            for value in [value >> bits, multiple.wrapping_add_signed(near), u64::MAX.wrapping_add_signed(near)] {
                prop_assert_eq!(divisor.divide(value), (value / by, value % by), "{} by {}", value, by);
                prop_assert_eq!(divisor.rest(value), value % by);
            }
        }
    }
}
