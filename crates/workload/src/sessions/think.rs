//! Think times and session lengths.

use rand::{Rng, RngExt};

use super::spec::{Beyond, Lasts, Think};
use super::table::{Next, Transitions};

const NS_PER_MS: f64 = 1e6;

impl Think {
    /// The pause before going to `next`, in ns.
    pub(super) fn draw_ns(&self, table: &Transitions, next: Next, rng: &mut impl Rng) -> i64 {
        let ms = match *self {
            Think::Exponential { mean_ms, longest_ms, beyond } => {
                let drawn_ms = exponential(mean_ms, rng);
                match beyond {
                    _ if drawn_ms <= longest_ms => drawn_ms,
                    Beyond::Longest => longest_ms,
                    Beyond::Zero => 0.0,
                }
            }
            Think::WaitingTimes { scale } => f64::from(table.waiting_ms(next).unwrap_or(0)) * scale,
            Think::Fixed { ms } => ms,
        };
        (ms * NS_PER_MS).round() as i64
    }
}

impl Lasts {
    /// How long a session lasts at least, in ns.
    pub(super) fn draw_ns(&self, rng: &mut impl Rng) -> i64 {
        (exponential(self.mean_s, rng).min(self.longest_s) * 1e9).round() as i64
    }
}

/// Negative exponential. `libm` rather than the platform's logarithm: the same draw on every machine.
fn exponential(mean: f64, rng: &mut impl Rng) -> f64 {
    // From (0, 1]: the logarithm of 0 has no value.
    let uniform = 1.0 - rng.random::<f64>();
    -mean * libm::log(uniform)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    fn draws(think: &Think) -> Vec<i64> {
        let tables = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads/tables");
        let table = Transitions::read(&tables.join("rubis-default.yml")).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        (0..1_000_000).map(|_| think.draw_ns(&table, Next::State(0), &mut rng)).collect()
    }

    fn mean_ms(draws: &[i64]) -> f64 {
        draws.iter().map(|ns| *ns as f64).sum::<f64>() / draws.len() as f64 / NS_PER_MS
    }

    /// The share of draws beyond the limit is e^-10 = 4.54e-5: 45.4 of a million, give or take 4 * sqrt(45.4) = 27.
    #[test]
    fn think_time_has_the_mean_and_the_limit_of_tpc_w() {
        let draws =
            draws(&Think::Exponential { mean_ms: 7000.0, longest_ms: 70_000.0, beyond: Beyond::Longest });
        // The mean of min(X, c) is m(1 - e^(-c/m)); four standard errors are 28 ms.
        let expected_ms = 7000.0 * (1.0 - (-10f64).exp());
        assert!((mean_ms(&draws) - expected_ms).abs() < 28.0, "{} ms", mean_ms(&draws));
        let at_limit = draws.iter().filter(|ns| **ns == 70_000_000_000).count();
        assert!((18..73).contains(&at_limit), "{at_limit} draws at the limit");
        assert_eq!(draws.iter().max(), Some(&70_000_000_000));
    }

    #[test]
    fn beyond_the_limit_the_clients_of_rubis_do_not_think_at_all() {
        let draws =
            draws(&Think::Exponential { mean_ms: 7000.0, longest_ms: 70_000.0, beyond: Beyond::Zero });
        // The mean of X where X <= c, else 0, is m(1 - e^(-c/m) (1 + c/m)).
        let expected_ms = 7000.0 * (1.0 - 11.0 * (-10f64).exp());
        assert!((mean_ms(&draws) - expected_ms).abs() < 28.0, "{} ms", mean_ms(&draws));
        let none = draws.iter().filter(|ns| **ns == 0).count();
        assert!((18..73).contains(&none), "{none} draws of nothing");
        assert!(draws.iter().all(|ns| *ns < 70_000_000_000));
    }

    #[test]
    fn waiting_times_are_those_of_the_table() {
        assert_eq!(draws(&Think::WaitingTimes { scale: 0.3 })[0], 900_000_000);
        assert_eq!(draws(&Think::Fixed { ms: 1.0 })[0], 1_000_000);
    }

    #[test]
    fn a_session_lasts_a_quarter_of_an_hour_and_at_most_an_hour() {
        let lasts = Lasts { mean_s: 900.0, longest_s: 3600.0 };
        let mut rng = ChaCha8Rng::seed_from_u64(6);
        let draws: Vec<f64> = (0..100_000).map(|_| lasts.draw_ns(&mut rng) as f64 / 1e9).collect();
        let mean_s = draws.iter().sum::<f64>() / 1e5;
        // Four standard errors are less than 4 * 900 / sqrt(1e5) = 11.4 s.
        assert!((mean_s - 900.0 * (1.0 - (-4f64).exp())).abs() < 11.4, "{mean_s} s");
        assert!(draws.iter().all(|s| *s <= 3600.0));
    }
}
