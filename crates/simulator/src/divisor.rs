//! Division by a number that is known long before.

/// A divisor with its reciprocal: a multiplication takes a third of the time of a division.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Divisor {
    by: u64,
    /// 2^64 / `by`, rounded up; 0 for a divisor below 2. By it, quotients are exact, or one too many (T. Granlund,
    /// P. L. Montgomery, "Division by invariant integers using multiplication", PLDI 1994).
    reciprocal: u64,
}

impl Divisor {
    pub const fn new(by: u64) -> Self {
        Self { by, reciprocal: if by < 2 { 0 } else { u64::MAX / by + 1 } }
    }

    /// The number itself.
    pub const fn get(self) -> u64 {
        self.by
    }

    /// Quotient and remainder. The divisor must not be 0.
    #[inline]
    pub fn divide(self, value: u64) -> (u64, u64) {
        if self.reciprocal < 3 {
            return (value / self.by, value % self.by);
        }
        let quotient = ((u128::from(value) * u128::from(self.reciprocal)) >> 64) as u64;
        let rest = value.wrapping_sub(quotient.wrapping_mul(self.by));
        // One too many makes the rest negative.
        if rest >= self.by { (quotient - 1, rest.wrapping_add(self.by)) } else { (quotient, rest) }
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
            // Where an estimate is wrong first: at multiples, and at the largest value that the reciprocal is used for.
            let multiple = (value >> bits) / by * by;
            for value in [value >> bits, multiple.wrapping_add_signed(near), divisor.reciprocal.wrapping_add_signed(near)] {
                prop_assert_eq!(divisor.divide(value), (value / by, value % by), "{} by {}", value, by);
            }
        }
    }
}
