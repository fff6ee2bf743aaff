//! Entry of a scheduler in the registry.

use crate::policy::Policy;
use crate::request::Class;
use crate::settings::{SettingError, Settings};

/// A policy.
pub struct Entry {
    /// Its name in studies.
    pub name: &'static str,
    /// Its name in figures and tables.
    pub label: &'static str,
    /// What it is, with its source.
    pub about: &'static str,
    /// What it holds to, whatever happens.
    pub promises: &'static str,
    /// Its settings: name, and what it is with its unit and default.
    pub settings: &'static [(&'static str, &'static str)],
    /// Makes it for these classes. Settings that it does not have are refused before.
    pub build: Build,
}

/// Makes a policy for classes.
pub type Build = fn(&[Class], &Settings) -> Result<Box<dyn Policy>, SettingError>;
