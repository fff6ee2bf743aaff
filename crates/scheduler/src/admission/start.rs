//! Search order over start rounds.

use super::{AdmissionError, refused};

/// Source of uniform random numbers below `n`, for `n` of at least 1. This crate draws no random numbers itself.
pub trait Draw {
    /// Draws a number.
    fn below(&mut self, n: u64) -> u64;
}

impl<F: FnMut(u64) -> u64> Draw for F {
    fn below(&mut self, n: u64) -> u64 {
        self(n)
    }
}

/// The six policies of stream scheduling (Wijayaratne and Reddy, section 3.1). All search the window from the round of
/// arrival to the latency target, and wrap around at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartPolicy {
    /// The first round in which the stream fits.
    Greedy,
    /// The first fitting round from a random round on.
    RandomStart,
    /// The first fitting round from the start round of the last stream on.
    LastScheduled,
    /// The first fitting round from a fixed distance after the start round of the last stream.
    FixedDistance(
        /// Rounds.
        u64,
    ),
    /// The round with the lowest resulting peak load on the stream's disks; the earliest of equals.
    MinimalLoad,
    /// The first fitting round among a random round and rounds at multiples of a prime distance after it.
    PrimeHopping(
        /// The prime, in rounds.
        u64,
    ),
}

impl StartPolicy {
    /// Checks that the policy tests each round of the window.
    ///
    /// # Errors
    /// The hopping distance is no prime, or divides the number of rounds in the window.
    pub fn check(self, latency_rounds: u32) -> Result<(), AdmissionError> {
        let window = window(latency_rounds);
        match self {
            StartPolicy::PrimeHopping(stride) if !is_prime(stride) => {
                Err(refused("the distance of prime hopping", stride, "a prime number"))
            }
            StartPolicy::PrimeHopping(stride) if window > 1 && window.is_multiple_of(stride) => {
                Err(AdmissionError::Stride { stride, window })
            }
            _ => Ok(()),
        }
    }

    /// First tested offset into the window, and the step.
    pub(super) fn first_and_stride(
        self,
        window: u64,
        now_round: u64,
        last_start: Option<u64>,
        draw: &mut dyn Draw,
    ) -> (u64, u64) {
        let behind = |distance: u64| {
            let from_now =
                i128::from(last_start.unwrap_or(now_round)) + i128::from(distance) - i128::from(now_round);
            from_now.rem_euclid(i128::from(window)) as u64
        };
        match self {
            StartPolicy::Greedy | StartPolicy::MinimalLoad => (0, 1),
            StartPolicy::RandomStart => (draw.below(window) % window, 1),
            StartPolicy::LastScheduled => (behind(0), 1),
            // The first stream has none that it could keep its distance from.
            StartPolicy::FixedDistance(distance) => (last_start.map_or(0, |_| behind(distance)), 1),
            StartPolicy::PrimeHopping(stride) => (draw.below(window) % window, stride % window),
        }
    }
}

/// Rounds in the window: the arrival's and those up to the latency target.
pub(super) fn window(latency_rounds: u32) -> u64 {
    u64::from(latency_rounds) + 1
}

fn is_prime(number: u64) -> bool {
    number >= 2
        && (2..)
            .take_while(|divisor| divisor * divisor <= number)
            .all(|divisor| !number.is_multiple_of(divisor))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(policy: StartPolicy, latency: u32, now: u64, last: Option<u64>, drawn: u64) -> Vec<u64> {
        let window = window(latency);
        let (first, stride) = policy.first_and_stride(window, now, last, &mut |_| drawn);
        (0..window).map(|nth| now + (first + nth * stride) % window).collect()
    }

    #[test]
    fn each_policy_has_its_order() {
        assert_eq!(order(StartPolicy::Greedy, 3, 10, Some(12), 2), [10, 11, 12, 13]);
        assert_eq!(order(StartPolicy::RandomStart, 3, 10, None, 2), [12, 13, 10, 11]);
        assert_eq!(order(StartPolicy::LastScheduled, 3, 10, Some(11), 2), [11, 12, 13, 10]);
        assert_eq!(order(StartPolicy::LastScheduled, 3, 10, None, 2), [10, 11, 12, 13]);
        assert_eq!(order(StartPolicy::FixedDistance(2), 3, 10, Some(11), 0), [13, 10, 11, 12]);
        assert_eq!(order(StartPolicy::FixedDistance(2), 3, 10, Some(3), 0), [13, 10, 11, 12]);
        assert_eq!(order(StartPolicy::PrimeHopping(3), 4, 10, None, 1), [11, 14, 12, 10, 13]);
    }

    #[test]
    fn hopping_must_reach_every_round() {
        assert!(StartPolicy::PrimeHopping(7).check(300).unwrap_err().to_string().contains("301"));
        assert!(StartPolicy::PrimeHopping(9).check(300).is_err());
        assert!(StartPolicy::PrimeHopping(0).check(300).is_err());
        for stride in [2, 3, 5, 11, 13] {
            StartPolicy::PrimeHopping(stride).check(300).unwrap();
            let mut seen = order(StartPolicy::PrimeHopping(stride), 300, 0, None, 17);
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..301));
        }
    }
}
