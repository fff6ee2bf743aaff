//! Runs of several hosts: the part of each host, and one run made of the parts.

mod hosts_rule;
mod join;
mod join_tables;
mod observe;
mod part;

pub use join::{Joined, join};
pub use observe::observe;
pub(crate) use part::carry_out;
