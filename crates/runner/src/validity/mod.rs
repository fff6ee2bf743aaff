//! Validity of a run's data: rules with ids, each with a status and a reason.

pub(crate) mod facts;
pub(crate) mod judge;
mod lateness;
mod load_rules;
pub(crate) mod rule;
pub(crate) mod testbed_rules;
#[cfg(test)]
mod tests;
pub(crate) mod transit;
