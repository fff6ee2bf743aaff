//! Context of a run: its options, the testbed, the journal of changes, and child processes.

pub(crate) mod child_processes;
pub(crate) mod journal;
mod json;
pub(crate) mod kernel;
pub(crate) mod options;
pub(crate) mod run_context;
pub(crate) mod testbed;

pub(crate) use json::write_json;
