//! Settings of schedulers: `key=value`.

use std::collections::BTreeMap;

/// Settings of a scheduler by name, as written in a study.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings(pub BTreeMap<String, String>);

/// Error in the settings of a scheduler.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// Unknown scheduler.
    #[error("unknown scheduler `{name}`; did you mean `{nearest}`? Known schedulers: {known}")]
    UnknownPolicy {
        /// Name in the study.
        name: String,
        /// Most similar name.
        nearest: &'static str,
        /// All known names.
        known: String,
    },
    /// Unknown setting.
    #[error("{policy} has no setting `{key}`. Its settings: {known}")]
    UnknownKey {
        /// Scheduler.
        policy: &'static str,
        /// Name of the setting.
        key: String,
        /// Known settings.
        known: String,
    },
    /// Invalid value of a setting.
    #[error("setting `{key}` is invalid (found {key}={value}, expected {expected})")]
    Value {
        /// Name of the setting.
        key: String,
        /// Value in the study.
        value: String,
        /// Valid values.
        expected: String,
    },
    /// Classes that the scheduler cannot serve.
    #[error("{policy}: {problem}")]
    Classes {
        /// Scheduler.
        policy: &'static str,
        /// Problem and remedy.
        problem: String,
    },
}

impl Settings {
    /// A number from `least` to `most`; the default if not set.
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

    /// A time in ns, set in ms.
    ///
    /// # Errors
    /// [`SettingError::Value`].
    pub fn ms(&self, key: &str, default_ms: f64) -> Result<u64, SettingError> {
        let ms = self.number(key, default_ms, 0.0, 1e9)?;
        Ok((ms * 1e6).round() as u64)
    }

    /// A whole number from `least` to `most`; the default if not set.
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

    /// One of several words; the first if not set.
    ///
    /// # Errors
    /// [`SettingError::Value`].
    pub fn word(&self, key: &str, words: &[&'static str]) -> Result<&'static str, SettingError> {
        self.choice(key, words, |word| word).copied()
    }

    /// One of several choices by name; the first if not set.
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

    /// The error of a setting whose value is not one of those expected.
    pub fn refused(&self, key: &str, expected: String) -> SettingError {
        let value = self.0.get(key).cloned().unwrap_or_default();
        SettingError::Value { key: key.to_owned(), value, expected }
    }
}
