//! Arrival processes: the clock of a client.

use rand::Rng;

use crate::draw::{below, chance, exponential, pareto_mean, pareto_quantile, unit};
use crate::spec::{Arrivals, MmppState, ParetoTime};

const NS_PER_MS: f64 = 1e6;
const NS_PER_S: f64 = 1e9;

/// A client's clock.
#[derive(Debug, Clone)]
pub(crate) struct Clock {
    next_ns: f64,
    phase: Phase,
}

/// State of a modulated process, and its end.
#[derive(Debug, Clone, Copy)]
enum Phase {
    Steady,
    OnOff { on: bool, until_ns: f64 },
    State { index: usize, until_ns: f64 },
}

impl Clock {
    /// A clock set to the first arrival of the stationary process from time 0.
    pub(crate) fn new(arrivals: &Arrivals, rng: &mut impl Rng) -> Self {
        let (next_ns, phase) = match arrivals {
            Arrivals::Rounds { in_step: true, .. } | Arrivals::Periodic { in_step: true, .. } => {
                return Clock { next_ns: 0.0, phase: Phase::Steady };
            }
            Arrivals::Periodic { interval_ms: ms, .. } | Arrivals::Rounds { round_ms: ms, .. } => {
                return Clock { next_ns: unit(rng) * ms * NS_PER_MS, phase: Phase::Steady };
            }
            Arrivals::Poisson { .. } => (0.0, Phase::Steady),
            Arrivals::OnOff { on, off, .. } => (0.0, begin_on_off(on, off, rng)),
            Arrivals::Mmpp { states } => (0.0, begin_mmpp(states, rng)),
            Arrivals::Closed { .. } | Arrivals::ServerDay(_) | Arrivals::Recorded(_) => {
                (f64::INFINITY, Phase::Steady)
            }
        };
        let mut clock = Clock { next_ns, phase };
        clock.advance(arrivals, rng);
        clock
    }

    /// Time of the next request, in ns.
    pub(crate) fn next_ns(&self) -> i64 {
        self.next_ns as i64
    }

    /// Moves on to the request after the next; returns the gap between the two, in ns.
    pub(crate) fn advance(&mut self, arrivals: &Arrivals, rng: &mut impl Rng) -> f64 {
        let from_ns = self.next_ns;
        match arrivals {
            Arrivals::Periodic { interval_ms: ms, in_step: true } => {
                // Whole ns, so sums are exact: a gap is never shorter than the period of a contract.
                let gap_ns = (ms * NS_PER_MS).round();
                self.next_ns += gap_ns;
                return gap_ns;
            }
            Arrivals::Periodic { interval_ms: ms, .. } | Arrivals::Rounds { round_ms: ms, .. } => {
                self.next_ns += ms * NS_PER_MS;
                // Not the difference of two clocks, which is rounded.
                return ms * NS_PER_MS;
            }
            Arrivals::Poisson { rate_per_s } => self.next_ns += exponential(NS_PER_S / rate_per_s, rng),
            Arrivals::OnOff { rate_per_s, on, off } => self.on_off(*rate_per_s, on, off, rng),
            Arrivals::Mmpp { states } => self.mmpp(states, rng),
            Arrivals::Closed { .. } | Arrivals::ServerDay(_) | Arrivals::Recorded(_) => {
                self.next_ns = f64::INFINITY;
            }
        }
        self.next_ns - from_ns
    }

    fn on_off(&mut self, rate_per_s: f64, on_time: &ParetoTime, off_time: &ParetoTime, rng: &mut impl Rng) {
        let Phase::OnOff { mut on, mut until_ns } = self.phase else { return };
        loop {
            if on {
                // Exponential gaps have no memory: one that reaches past the period is drawn anew in the next.
                let next_ns = self.next_ns + exponential(NS_PER_S / rate_per_s, rng);
                if next_ns < until_ns {
                    self.next_ns = next_ns;
                    break;
                }
            }
            self.next_ns = until_ns;
            on = !on;
            until_ns += if on { on_time } else { off_time }.draw_ns(rng);
        }
        self.phase = Phase::OnOff { on, until_ns };
    }

    fn mmpp(&mut self, states: &[MmppState], rng: &mut impl Rng) {
        let Phase::State { mut index, mut until_ns } = self.phase else { return };
        loop {
            let rate_per_s = states[index].rate_per_s;
            if rate_per_s > 0.0 {
                let next_ns = self.next_ns + exponential(NS_PER_S / rate_per_s, rng);
                if next_ns < until_ns {
                    self.next_ns = next_ns;
                    break;
                }
            }
            self.next_ns = until_ns;
            let weight = |at: usize| if at == index { 0.0 } else { states[at].weight };
            index = pick(states.len(), weight, rng);
            until_ns += exponential(states[index].stay_s * NS_PER_S, rng);
        }
        self.phase = Phase::State { index, until_ns };
    }
}

impl ParetoTime {
    fn draw_ns(&self, rng: &mut impl Rng) -> f64 {
        pareto_quantile(self.shape, self.min_s, self.max_s, unit(rng)) * NS_PER_S
    }

    /// Mean length, in seconds.
    pub(crate) fn mean_s(&self) -> f64 {
        pareto_mean(self.shape, self.min_s, self.max_s)
    }

    /// Residual time of the period at a random instant: long periods are more likely. Periods weighted by their length
    /// follow the same law with the exponent less 1.
    fn residual_ns(&self, rng: &mut impl Rng) -> f64 {
        unit(rng) * pareto_quantile(self.shape - 1.0, self.min_s, self.max_s, unit(rng)) * NS_PER_S
    }
}

fn begin_on_off(on: &ParetoTime, off: &ParetoTime, rng: &mut impl Rng) -> Phase {
    let is_on = chance(on.mean_s() / (on.mean_s() + off.mean_s()), rng);
    Phase::OnOff { on: is_on, until_ns: if is_on { on } else { off }.residual_ns(rng) }
}

/// Visits to state i are proportional to `w_i * (W - w_i)`: the jumps satisfy detailed balance with it.
fn begin_mmpp(states: &[MmppState], rng: &mut impl Rng) -> Phase {
    let sum: f64 = states.iter().map(|state| state.weight).sum();
    let time = |at: usize| states[at].weight * (sum - states[at].weight) * states[at].stay_s;
    let index = pick(states.len(), time, rng);
    Phase::State { index, until_ns: exponential(states[index].stay_s * NS_PER_S, rng) }
}

/// An index below `n` in proportion to its weight; uniform if no weight is above 0.
fn pick(n: usize, weight: impl Fn(usize) -> f64, rng: &mut impl Rng) -> usize {
    let mut left = unit(rng) * (0..n).map(&weight).sum::<f64>();
    for index in 0..n {
        left -= weight(index);
        if left < 0.0 {
            return index;
        }
    }
    // Only rounding, or weights of 0 alone, lead here.
    (0..n).rev().find(|index| weight(*index) > 0.0).unwrap_or_else(|| below(n as u64, rng) as usize)
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    /// Arrivals per second in each of `windows` windows of a second, over `clients` independent clocks.
    fn counts(arrivals: &Arrivals, clients: u64, windows: usize) -> Vec<f64> {
        let mut counts = vec![0.0; windows];
        for client in 0..clients {
            let mut rng = ChaCha8Rng::seed_from_u64(client);
            let mut clock = Clock::new(arrivals, &mut rng);
            while clock.next_ns < windows as f64 * NS_PER_S {
                counts[(clock.next_ns / NS_PER_S) as usize] += 1.0;
                clock.advance(arrivals, &mut rng);
            }
        }
        counts
    }

    fn mean(values: &[f64]) -> f64 {
        values.iter().sum::<f64>() / values.len() as f64
    }

    fn dispersion(values: &[f64]) -> f64 {
        let mean = mean(values);
        values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64 / mean
    }

    #[test]
    fn clients_in_step_begin_together_and_others_do_not() {
        let rounds = |in_step| Arrivals::Rounds { round_ms: 40.0, in_step };
        let periodic = |in_step| Arrivals::Periodic { interval_ms: 40.0, in_step };
        for (arrivals, in_step) in
            [(rounds(true), true), (rounds(false), false), (periodic(true), true), (periodic(false), false)]
        {
            let starts: std::collections::BTreeSet<i64> = (0..50)
                .map(|client| {
                    let mut rng = ChaCha8Rng::seed_from_u64(client);
                    let mut clock = Clock::new(&arrivals, &mut rng);
                    let first = clock.next_ns();
                    clock.advance(&arrivals, &mut rng);
                    assert!((0..40_000_000).contains(&first) && clock.next_ns() - first == 40_000_000);
                    first
                })
                .collect();
            assert_eq!(starts.len() == 1, in_step);
        }
    }

    #[test]
    fn on_off_clients_have_the_rate_that_their_periods_imply_from_the_first_second_on() {
        let time = |max_s| ParetoTime { shape: 1.4, min_s: 0.2, max_s };
        let (on, off) = (time(20.0), time(60.0));
        let arrivals = Arrivals::OnOff { rate_per_s: 10.0, on, off };
        let expected = 4000.0 * 10.0 * on.mean_s() / (on.mean_s() + off.mean_s());
        let counts = counts(&arrivals, 4000, 40);
        assert!((mean(&counts) / expected - 1.0).abs() < 0.03, "{} for {expected}", mean(&counts));
        // Stationary: the first quarter is as busy as the last.
        let (first, last) = (mean(&counts[..10]), mean(&counts[30..]));
        assert!((first / last - 1.0).abs() < 0.08, "{first} then {last}");
    }

    #[test]
    fn heavy_tailed_periods_stay_bursty_over_long_scales_where_poisson_does_not() {
        let time = ParetoTime { shape: 1.2, min_s: 0.5, max_s: 1000.0 };
        let arrivals = Arrivals::OnOff { rate_per_s: 20.0, on: time, off: time };
        let by_ten =
            |counts: Vec<f64>| dispersion(&counts.chunks(10).map(|c| c.iter().sum()).collect::<Vec<_>>());
        let heavy = by_ten(counts(&arrivals, 20, 5000));
        let poisson = by_ten(counts(&Arrivals::Poisson { rate_per_s: 10.0 }, 20, 5000));
        assert!((0.8..1.2).contains(&poisson), "{poisson}");
        assert!(heavy > 20.0, "{heavy}");
    }

    #[test]
    fn an_mmpp_has_the_rate_and_dispersion_of_its_states() {
        let state = |rate_per_s, stay_s| MmppState { rate_per_s, stay_s, weight: 1.0 };
        let arrivals = Arrivals::Mmpp { states: vec![state(2.0, 4.0), state(30.0, 1.0)] };
        // Two states alternate: time shares 0.8 and 0.2.
        let expected = 0.8 * 2.0 + 0.2 * 30.0;
        let counts = counts(&arrivals, 100, 2000);
        assert!((mean(&counts) / 100.0 / expected - 1.0).abs() < 0.02, "{}", mean(&counts));
        // Variance of counts of an interrupted process (Fischer and Meier-Hellstern 1993): index of dispersion
        // 1 + 2 (r1 - r2)^2 s1 s2 / ((s1 + s2)^2 (r1 s2 + r2 s1)) * (1 - (1 - e^-(s1+s2)t) / ((s1+s2)t)).
        let (s1, s2) = (0.25, 1.0);
        let factor = 2.0 * 28f64.powi(2) * s1 * s2 / ((s1 + s2) * (s1 + s2) * (2.0 * s2 + 30.0 * s1));
        let index = 1.0 + factor * (1.0 - (1.0 - (-1.25f64).exp()) / 1.25);
        assert!((dispersion(&counts) / index - 1.0).abs() < 0.1, "{} for {index}", dispersion(&counts));
    }
}
