//! Sites of a run: data, servers, emulated browsers, and consistency of the data after the run.

mod after;
mod data;
mod database;
mod kept;
mod servers;
mod visit;

pub(crate) use after::{After, Findings, check, observed};
pub(crate) use data::{Laid, lay_out};
pub(crate) use database::{all, check as check_databases};
pub(crate) use kept::keep;
pub use kept::remove_kept;
pub(crate) use servers::start;
pub(crate) use visit::{Visited, Visits, visits};
