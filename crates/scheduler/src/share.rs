//! Weights and virtual time as integers.

use crate::model::ServiceModel;
use crate::request::{Class, ClassId, Request};
use crate::settings::{SettingError, Settings};

/// A class's share, in steps of 2^-20.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Weight(u64);

impl Weight {
    const BITS: u32 = 20;
    const LEAST: f64 = 0.001;
    const MOST: f64 = 1_000_000.0;

    /// Weight 1, for unknown classes.
    pub(crate) const ONE: Weight = Weight(1 << Self::BITS);

    /// Weights of classes.
    pub(crate) fn of(policy: &'static str, classes: &[Class]) -> Result<Vec<Weight>, SettingError> {
        let weight = |class: &Class| match class.weight {
            weight if (Self::LEAST..=Self::MOST).contains(&weight) => {
                Ok(Weight((weight * f64::from(1 << Self::BITS)).round() as u64))
            }
            weight => Err(SettingError::Classes {
                policy,
                problem: format!(
                    "class `{}` has weight {weight}, expected {} to {}",
                    class.name,
                    Self::LEAST,
                    Self::MOST
                ),
            }),
        };
        classes.iter().map(weight).collect()
    }

    /// Rate of virtual time for a class of this weight.
    pub(crate) fn pace(self) -> Pace {
        Pace(Pace::ONE / u128::from(self.0.max(1)))
    }

    /// The same rate rounded up, for the virtual time of the whole system: rounding then never delays a class.
    pub(crate) fn pace_up(self) -> Pace {
        Pace(Pace::ONE.div_ceil(u128::from(self.0.max(1))))
    }
}

/// Rate of virtual time per unit of work, in steps of 2^-48. Virtual time fits into 128 bits for centuries of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pace(u128);

impl Pace {
    const ONE: u128 = 1 << (48 + Weight::BITS);

    /// Virtual time of work of this cost: cost / weight.
    pub(crate) fn times(self, cost: u64) -> u128 {
        self.0.saturating_mul(u128::from(cost))
    }
}

impl std::ops::Add for Weight {
    type Output = Weight;

    fn add(self, other: Weight) -> Weight {
        Weight(self.0.saturating_add(other.0))
    }
}

impl std::ops::Sub for Weight {
    type Output = Weight;

    fn sub(self, other: Weight) -> Weight {
        Weight(self.0.saturating_sub(other.0))
    }
}

impl std::iter::Sum for Weight {
    fn sum<I: Iterator<Item = Weight>>(weights: I) -> Weight {
        weights.fold(Weight(0), std::ops::Add::add)
    }
}

/// Shared resource of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cost {
    /// Bytes.
    Bytes,
    /// Expected service time in ns.
    Time,
}

impl Cost {
    pub(crate) const SETTING: (&'static str, &'static str) =
        ("cost", "shared resource. bytes: bytes; time: expected service time; default bytes");

    pub(crate) fn set(settings: &Settings) -> Result<Cost, SettingError> {
        Ok(match settings.word("cost", &["bytes", "time"])? {
            "time" => Cost::Time,
            _ => Cost::Bytes,
        })
    }

    /// Cost of a request from the current position of the arm; at least 1.
    pub(crate) fn of(self, request: &Request, model: &dyn ServiceModel) -> u64 {
        match self {
            Cost::Bytes => u64::from(request.size_bytes).max(1),
            Cost::Time => model.expected_ns(model.head_bytes(), request).max(1),
        }
    }
}

/// A scheduler's state of a class, created if the class is unknown.
pub(crate) fn of_class<T>(kept: &mut Vec<T>, class: ClassId, begin: impl FnMut() -> T) -> &mut T {
    let index = usize::from(class);
    if index >= kept.len() {
        kept.resize_with(index + 1, begin);
    }
    &mut kept[index]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::weighted;

    #[test]
    fn virtual_time_is_cost_by_weight() {
        let weights = Weight::of("x", &weighted(&[1.0, 4.0, 0.5])).unwrap();
        let times: Vec<u128> = weights.iter().map(|weight| weight.pace().times(100) >> 48).collect();
        assert_eq!(times, [100, 25, 200]);
        let all: Weight = weights.into_iter().sum();
        assert_eq!(all.pace_up().times(11) >> 48, 2);
        assert!(all.pace_up().times(11) - all.pace().times(11) == 11);
    }

    #[test]
    fn weights_that_are_none_are_refused_by_the_name_of_the_class() {
        for weight in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let error = Weight::of("sfq", &weighted(&[1.0, weight])).unwrap_err().to_string();
            assert!(error.starts_with("sfq: class `b` has weight"), "{error}");
        }
    }
}
