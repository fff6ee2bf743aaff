//! Search order over start rounds.

use super::{AdmissionError, refused};

/// A source of randomness: a number below `n`, each as likely, for `n` of at least 1. This crate draws nothing itself.
pub trait Draw {
    /// Draws.
    fn below(&mut self, n: u64) -> u64;
}

impl<F: FnMut(u64) -> u64> Draw for F {
    fn below(&mut self, n: u64) -> u64 {
        self(n)
    }
}

/// The six policies of stream scheduling (Wijayaratne and Reddy, section 3.1). All look at the rounds of the window from
/// the arrival on to the latency target behind it, and around from its end to its beginning where they start within it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartPolicy {
    /// The first round in which the stream fits.
    Greedy,
    /// The first from a random round on.
    RandomStart,
    /// The first from the round on with which the last stream began.
    LastScheduled,
    /// The first from a round on that is a fixed distance behind the one with which the last stream began.
    FixedDistance(
        /// Rounds.
        u64,
    ),
    /// The one with which the highest load on any disk that the stream reads from becomes lowest; the earliest of equals.
    MinimalLoad,
    /// The first of a random round and those at multiples of a prime distance behind it.
    PrimeHopping(
        /// The prime, in rounds.
        u64,
    ),
}

impl StartPolicy {
    /// Whether the policy looks at each round of a window with the latency target.
    ///
    /// # Errors
    /// A hopping distance that is no prime, or divides the number of rounds in the window.
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

    /// The offset into the window that is looked at first, and what is added for each further one.
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
