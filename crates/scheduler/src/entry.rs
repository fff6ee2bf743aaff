//! Entry of a scheduler in the registry.

use crate::policy::Policy;
use crate::request::Class;
use crate::settings::{SettingError, Settings};

/// A scheduler of weir's own.
pub struct Entry {
    /// Name in studies.
    pub name: &'static str,
    /// Label in figures and tables.
    pub label: &'static str,
    /// Description with the source.
    pub about: &'static str,
    /// Guarantees for every order of arrivals.
    pub promises: &'static str,
    /// Settings: name, and meaning with unit and default.
    pub settings: &'static [(&'static str, &'static str)],
    /// Builds the scheduler. The registry refuses unknown settings first.
    pub build: Build,
}

/// Function that builds a scheduler for classes.
pub type Build = fn(&[Class], &Settings) -> Result<Box<dyn Policy>, SettingError>;
