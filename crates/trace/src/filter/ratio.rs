//! Exact factors: `0.5`, `3`, `1/3`.

use std::fmt;
use std::str::FromStr;

/// A number above 0, as a fraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ratio {
    numerator: u64,
    denominator: u64,
}

/// Invalid text of a [`Ratio`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("factor is {0:?}, expected a number above 0 with at most 18 digits, such as 0.5, 3 or 1/3")]
pub struct NoRatio(String);

impl Ratio {
    /// A fraction; `None` if either part is 0.
    pub fn new(numerator: u64, denominator: u64) -> Option<Self> {
        (numerator > 0 && denominator > 0).then_some(Ratio { numerator, denominator })
    }

    /// A number times this, rounded to the nearest whole number, half away from zero; `None` if out of range.
    pub fn times(self, value: i64) -> Option<i64> {
        let (n, d) = (i128::from(self.numerator), i128::from(self.denominator));
        let product = i128::from(value) * n;
        i64::try_from((product + product.signum() * (d / 2)) / d).ok()
    }

    /// A number times this, rounded down; `None` if out of range.
    pub fn times_down(self, value: u64) -> Option<u64> {
        let product = u128::from(value) * u128::from(self.numerator);
        u64::try_from(product / u128::from(self.denominator)).ok()
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.denominator {
            1 => write!(f, "{}", self.numerator),
            _ => write!(f, "{}/{}", self.numerator, self.denominator),
        }
    }
}

impl FromStr for Ratio {
    type Err = NoRatio;

    fn from_str(text: &str) -> Result<Self, NoRatio> {
        let wrong = || NoRatio(text.to_owned());
        let digits = |part: &str| {
            let fits = part.len() <= 18 && part.bytes().all(|byte| byte.is_ascii_digit());
            if fits && !part.is_empty() { part.parse().map_err(|_| wrong()) } else { Err(wrong()) }
        };
        let (numerator, denominator) = if let Some((above, below)) = text.split_once('/') {
            (digits(above)?, digits(below)?)
        } else if let Some((whole, part)) = text.split_once('.') {
            if whole.len() + part.len() > 18 || part.is_empty() {
                return Err(wrong());
            }
            (digits(&format!("{whole}{part}"))?, 10_u64.pow(part.len() as u32))
        } else {
            (digits(text)?, 1)
        };
        Ratio::new(numerator, denominator).ok_or_else(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(text: &str) -> Ratio {
        text.parse().unwrap()
    }

    #[test]
    fn products_are_exact() {
        assert_eq!(ratio("0.1").times(1_000_000_001), Some(100_000_000));
        assert_eq!(ratio("1/3").times(-8), Some(-3));
        assert_eq!(ratio("2.5").times(3), Some(8));
        assert_eq!(ratio("0.1").times(i64::MAX - 6), Some(922_337_203_685_477_580));
        assert_eq!(ratio("2").times(i64::MAX), None);
        assert_eq!(ratio("1/3").times_down(8), Some(2));
        assert_eq!(ratio(".5"), ratio("5/10"));
    }

    #[test]
    fn what_is_none_is_refused() {
        for text in
            ["", "0", "0.0", "-1", "1e3", "1/0", "0/1", "1.", ".", "nan", "1/2/3", "1234567890123456789"]
        {
            assert!(text.parse::<Ratio>().is_err(), "{text}");
        }
    }
}
