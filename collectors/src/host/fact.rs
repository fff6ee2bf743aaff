//! Fact of the host, or the reason why it is not known.

use std::fs;
use std::path::Path;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::Serialize;

/// A known value, or the reason why it is not known; in JSON either the value or `{"value": null, "reason": "..."}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Fact<T> {
    /// The value.
    Known(T),
    /// No value, with a reason.
    Missing {
        /// Always null.
        value: (),
        /// Why.
        reason: String,
    },
}

impl<T> Fact<T> {
    pub(super) fn missing(reason: impl Into<String>) -> Self {
        Fact::Missing { value: (), reason: reason.into() }
    }

    pub(super) fn from_option(value: Option<T>, reason: &str) -> Self {
        value.map_or_else(|| Fact::missing(reason), Fact::Known)
    }

    /// The value, if there is one.
    pub fn known(&self) -> Option<&T> {
        match self {
            Fact::Known(value) => Some(value),
            Fact::Missing { .. } => None,
        }
    }

    pub(super) fn map<U>(self, with: impl FnOnce(T) -> U) -> Fact<U> {
        match self {
            Fact::Known(value) => Fact::Known(with(value)),
            Fact::Missing { reason, .. } => Fact::missing(reason),
        }
    }
}

/// The trimmed text of a file of `/sys` or `/proc`.
pub(super) fn text(path: impl AsRef<Path>) -> Fact<String> {
    let path = path.as_ref();
    match fs::read_to_string(path) {
        Ok(text) => Fact::Known(text.trim().to_owned()),
        Err(error) => Fact::missing(format!("{}: {error}", path.display())),
    }
}

/// The number in such a file.
pub(super) fn number<N: FromStr>(path: impl AsRef<Path>) -> Fact<N> {
    let path = path.as_ref();
    match text(path) {
        Fact::Known(text) => match text.parse() {
            Ok(number) => Fact::Known(number),
            Err(_) => Fact::missing(format!("{}: not a number (found {text:?})", path.display())),
        },
        Fact::Missing { value, reason } => Fact::Missing { value, reason },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_fact_is_null_with_its_reason() {
        let fact: Fact<u64> = number("/no/such/file");
        let json = serde_json::to_value(&fact).unwrap();
        assert!(json["value"].is_null());
        assert!(json["reason"].as_str().unwrap().starts_with("/no/such/file: "));
        assert_eq!(serde_json::to_value(Fact::Known(3)).unwrap(), 3);
    }
}
