//! Engine with a scheduler of `weir-scheduler` in real time, in front of modelled disks or real devices.

mod arrange;
mod attribution;
mod buffer;
mod class_stats;
pub(crate) mod classes;
mod direct;
mod durable;
mod engine;
mod file;
mod inner;
mod machine;
mod manage;
mod policy_text;
mod spec;
mod tally;
#[cfg(test)]
pub(crate) mod tests;

pub use arrange::Arrangement;
pub(crate) use attribution::Caller;
pub(crate) use buffer::{BorrowedPayload, Buffer, OwnedPayload, Reply, Written};
pub use class_stats::{ClassStats, HeadStats, SchedulingStats};
pub use classes::{ClassSpec, ClassesFile, ContractSpec};
pub(crate) use engine::Engine;
pub(crate) use policy_text::PolicyText;
pub(crate) use spec::{Export, build};
pub use spec::{ExportKind, Layout, SchedulingSpec};
