//! Certificate of a replay: the rate that was asked, the rate that was kept, and the rate up to which it may be trusted.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::Error;

/// Limit on the 99th percentile of lateness: at 10,000 requests per second, a mean gap.
pub const LIMIT_P99_NS: u64 = 100_000;
/// Length of the windows whose requests give a rate.
const WINDOW_NS: i64 = 10_000_000;
/// Least requests at a rate from which a 99th percentile is taken: ten are above it.
const LEAST_REQUESTS: u64 = 1000;
/// Classes of rates per doubling.
const PER_DOUBLING: f64 = 2.0;
/// Largest recorded lateness: an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// How far the timing of a replay may be trusted. Warm-up requests do not count.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Certificate {
    /// Mean rate of the intended times, requests per second; `None` below two distinct times.
    pub asked_per_s: Option<f64>,
    /// Mean rate of the submissions.
    pub kept_per_s: Option<f64>,
    /// Highest rate in any window of 10 ms, requests per second.
    pub peak_per_s: f64,
    /// The highest rate, in windows of 10 ms, at which and below which 99 % of the requests were at most `limit_p99_ns` late;
    /// `None` if they were later at the lowest rate. Higher rates were not asked, or asked too rarely to tell, or were not
    /// kept.
    pub trusted_per_s: Option<f64>,
    /// The limit.
    pub limit_p99_ns: u64,
    /// Lateness by rate.
    pub rates: Vec<RateLateness>,
}

/// Lateness of the requests in windows of one class of rates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RateLateness {
    /// Rates from here, requests per second...
    pub from_per_s: f64,
    /// ... up to here.
    pub below_per_s: f64,
    /// Highest rate of a window in the class.
    pub highest_per_s: f64,
    /// Requests.
    pub requests: u64,
    /// 99th percentile of their lateness.
    pub lateness_p99_ns: u64,
}

impl Certificate {
    /// Certificate of two simultaneous replays. Rates add up: they are those of both together if their peaks coincide.
    pub(crate) fn and(self, other: Certificate) -> Certificate {
        let sum = |one: Option<f64>, two: Option<f64>| match (one, two) {
            (Some(one), Some(two)) => Some(one + two),
            (one, two) => one.or(two),
        };
        let mut rates = [self.rates, other.rates].concat();
        rates.sort_by(|one, two| one.from_per_s.total_cmp(&two.from_per_s));
        Certificate {
            asked_per_s: sum(self.asked_per_s, other.asked_per_s),
            kept_per_s: sum(self.kept_per_s, other.kept_per_s),
            peak_per_s: self.peak_per_s + other.peak_per_s,
            trusted_per_s: self.trusted_per_s.zip(other.trusted_per_s).map(|(one, two)| one.min(two)),
            limit_p99_ns: self.limit_p99_ns,
            rates,
        }
    }
}

/// Collects lateness by rate.
pub(crate) struct ByRate {
    /// Requests of all rings for each of this one.
    rings: f64,
    window: i64,
    /// Lateness in this window.
    late_ns: Vec<u64>,
    /// Lateness in earlier windows that was not recorded yet, and its class: recording a whole window at once would make the
    /// next request late.
    closed: Vec<u64>,
    closed_class: i32,
    classes: BTreeMap<i32, Class>,
}

struct Class {
    lateness: Histogram<u64>,
    highest_per_s: f64,
}

impl ByRate {
    pub fn new(rings: usize) -> Self {
        ByRate {
            rings: rings as f64,
            window: i64::MIN,
            late_ns: Vec::new(),
            closed: Vec::new(),
            closed_class: 0,
            classes: BTreeMap::new(),
        }
    }

    /// Records a request, in order of intended time.
    pub fn add(&mut self, intended_ns: i64, late_ns: u64) -> Result<(), Error> {
        let window = intended_ns.div_euclid(WINDOW_NS);
        if window != self.window {
            self.close()?;
            self.window = window;
        }
        self.late_ns.push(late_ns);
        // As fast as windows of any size are closed.
        for _ in 0..2 {
            if let Some(late) = self.closed.pop() {
                self.class(self.closed_class)?.lateness.saturating_record(late);
            }
        }
        Ok(())
    }

    /// Ends the window, whose number of requests is its rate.
    fn close(&mut self) -> Result<(), Error> {
        self.record_closed()?;
        if self.late_ns.is_empty() {
            return Ok(());
        }
        let rate = self.late_ns.len() as f64 * self.rings * 1e9 / WINDOW_NS as f64;
        self.closed_class = (rate.log2() * PER_DOUBLING).floor() as i32;
        std::mem::swap(&mut self.closed, &mut self.late_ns);
        let class = self.class(self.closed_class)?;
        class.highest_per_s = class.highest_per_s.max(rate);
        Ok(())
    }

    fn record_closed(&mut self) -> Result<(), Error> {
        while let Some(late) = self.closed.pop() {
            self.class(self.closed_class)?.lateness.saturating_record(late);
        }
        Ok(())
    }

    fn class(&mut self, number: i32) -> Result<&mut Class, Error> {
        Ok(match self.classes.entry(number) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(Class {
                lateness: Histogram::new_with_bounds(1, LONGEST_NS, 2)?,
                highest_per_s: 0.0,
            }),
        })
    }

    /// Adds what another ring recorded at the same time.
    pub fn merge(&mut self, mut other: ByRate) -> Result<(), Error> {
        for part in [&mut *self, &mut other] {
            part.close()?;
            part.record_closed()?;
        }
        for (number, more) in other.classes {
            let class = self.class(number)?;
            class.highest_per_s = class.highest_per_s.max(more.highest_per_s);
            // Both have the same bounds.
            let _ = class.lateness.add(&more.lateness);
        }
        Ok(())
    }

    /// The certificate; rates are those of the whole replay.
    pub fn finish(mut self, asked_per_s: Option<f64>, kept_per_s: Option<f64>) -> Result<Certificate, Error> {
        self.close()?;
        self.record_closed()?;
        let edge = |number: i32| 2_f64.powf(f64::from(number) / PER_DOUBLING);
        let rates: Vec<RateLateness> = self
            .classes
            .iter()
            .map(|(number, class)| RateLateness {
                from_per_s: edge(*number),
                below_per_s: edge(*number + 1),
                highest_per_s: class.highest_per_s,
                requests: class.lateness.len(),
                lateness_p99_ns: class.lateness.value_at_quantile(0.99),
            })
            .collect();
        let known = rates.iter().filter(|rate| rate.requests >= LEAST_REQUESTS);
        let kept = known.take_while(|rate| rate.lateness_p99_ns <= LIMIT_P99_NS);
        Ok(Certificate {
            asked_per_s,
            kept_per_s,
            peak_per_s: rates.iter().map(|rate| rate.highest_per_s).fold(0.0, f64::max),
            trusted_per_s: kept.last().map(|rate| rate.highest_per_s),
            limit_p99_ns: LIMIT_P99_NS,
            rates,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds seconds of a steady rate.
    fn steady(to: &mut ByRate, from_ns: i64, rate: i64, seconds: i64, late_ns: u64) {
        for number in 0..rate * seconds {
            to.add(from_ns + number * 1_000_000_000 / rate, late_ns).unwrap();
        }
    }

    #[test]
    fn a_rate_is_trusted_up_to_the_first_that_is_late() {
        let mut by_rate = ByRate::new(1);
        steady(&mut by_rate, 0, 2_000, 2, 5_000);
        steady(&mut by_rate, 2_000_000_000, 40_000, 1, 80_000);
        steady(&mut by_rate, 3_000_000_000, 100_000, 1, 300_000);
        // Too few to tell.
        steady(&mut by_rate, 5_000_000_000, 500, 1, 900_000);
        let found = by_rate.finish(Some(1.0), Some(2.0)).unwrap();
        assert_eq!((found.trusted_per_s, found.peak_per_s), (Some(40_000.0), 100_000.0));
        assert_eq!((found.asked_per_s, found.kept_per_s), (Some(1.0), Some(2.0)));
        let requests: Vec<_> = found.rates.iter().map(|rate| rate.requests).collect();
        assert_eq!(requests, [500, 4_000, 40_000, 100_000]);
        for rate in &found.rates {
            assert!(
                rate.from_per_s <= rate.highest_per_s && rate.highest_per_s < rate.below_per_s,
                "{rate:?}"
            );
        }
    }

    #[test]
    fn two_rings_are_one_replay() {
        let (mut one, mut two) = (ByRate::new(2), ByRate::new(2));
        steady(&mut one, 0, 10_000, 1, 1_000);
        steady(&mut two, 0, 10_000, 1, 200_000);
        one.merge(two).unwrap();
        let found = one.finish(None, None).unwrap();
        assert_eq!((found.peak_per_s, found.trusted_per_s), (20_000.0, None));
        assert_eq!((found.rates.len(), found.rates[0].requests), (1, 20_000));
    }

    #[test]
    fn without_requests_nothing_is_trusted() {
        let found = ByRate::new(1).finish(None, None).unwrap();
        assert_eq!((found.trusted_per_s, found.peak_per_s, found.rates.len()), (None, 0.0, 0));
    }
}
