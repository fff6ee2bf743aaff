//! Settings of schedulers: `key=value`.

use std::collections::BTreeMap;

/// Settings of a policy, by name, as they are written in a study.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings(pub BTreeMap<String, String>);

/// Why settings are refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// There is no such policy.
    #[error("unknown scheduler `{name}`; did you mean `{nearest}`? There are: {known}")]
    UnknownPolicy {
        /// What was asked for.
        name: String,
        /// The name most like it.
        nearest: &'static str,
        /// All names.
        known: String,
    },
    /// The policy has no such setting.
    #[error("{policy} has no setting `{key}`; it has: {known}")]
    UnknownKey {
        /// The policy.
        policy: &'static str,
        /// What was set.
        key: String,
        /// What can be.
        known: String,
    },
    /// The value is none that the setting can have.
    #[error("{key}={value}: it must be {expected}")]
    Value {
        /// What was set.
        key: String,
        /// To what.
        value: String,
        /// What it can be set to.
        expected: String,
    },
    /// The classes do not suit the policy.
    #[error("{policy}: {problem}")]
    Classes {
        /// The policy.
        policy: &'static str,
        /// What is wrong, and the remedy.
        problem: String,
    },
}

impl Settings {
    /// A number between limits, or the default if it is not set.
    ///
    /// # Errors
    /// [`SettingError::Value`].
    pub fn number(&self, key: &str, default: f64, least: f64, most: f64) -> Result<f64, SettingError> {
        let Some(value) = self.0.get(key) else { return Ok(default) };
        match value.parse::<f64>() {
            Ok(number) if (least..=most).contains(&number) => Ok(number),
            _ => Err(self.refused(key, format!("a number from {least} to {most}"))),
        }
    }

    /// A time that is given in ms, in ns.
    ///
    /// # Errors
    /// [`SettingError::Value`].
    pub fn ms(&self, key: &str, default_ms: f64) -> Result<u64, SettingError> {
        let ms = self.number(key, default_ms, 0.0, 1e9)?;
        Ok((ms * 1e6).round() as u64)
    }

    /// A whole number between limits, or the default if it is not set.
    ///
    /// # Errors
    /// [`SettingError::Value`].
    pub fn count(&self, key: &str, default: u64, least: u64, most: u64) -> Result<u64, SettingError> {
        let Some(value) = self.0.get(key) else { return Ok(default) };
        match value.parse() {
            Ok(number) if (least..=most).contains(&number) => Ok(number),
            _ => Err(self.refused(key, format!("a whole number from {least} to {most}"))),
        }
    }

    /// One of some words, or the first if it is not set.
    ///
    /// # Errors
    /// [`SettingError::Value`].
    pub fn word(&self, key: &str, words: &[&'static str]) -> Result<&'static str, SettingError> {
        self.choice(key, words, |word| word).copied()
    }

    /// One of some things by its name, or the first if it is not set.
    ///
    /// # Errors
    /// [`SettingError::Value`].
    pub(crate) fn choice<'a, T>(
        &self,
        key: &str,
        all: &'a [T],
        name: impl Fn(&T) -> &'static str,
    ) -> Result<&'a T, SettingError> {
        let found = match self.0.get(key) {
            None => all.first(),
            Some(value) => all.iter().find(|one| name(one) == value),
        };
        found.ok_or_else(|| self.refused(key, all.iter().map(name).collect::<Vec<_>>().join(" or ")))
    }

    fn refused(&self, key: &str, expected: String) -> SettingError {
        let value = self.0.get(key).cloned().unwrap_or_default();
        SettingError::Value { key: key.to_owned(), value, expected }
    }
}
