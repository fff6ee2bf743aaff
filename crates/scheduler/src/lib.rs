//! Disk schedulers, with and without quality of service.
//!
//! A [`Policy`] does no I/O and has no clock: the caller reports time, arrivals and completions, and the policy chooses
//! the next request of the device. A [`ServiceModel`] describes the device. The same policy therefore orders requests in
//! a simulator and in front of a real disk.
//!
//! [`POLICIES`] lists all of them; to add one, write a file and a line there.

pub mod admission;
mod by_offset;
mod cello;
mod clockwise;
mod edf;
mod elevator;
mod entry;
mod fcfs;
#[cfg(test)]
mod fixture;
pub mod guarantee;
pub mod hds;
mod linux;
mod model;
mod n_step_scan;
mod policy;
mod registry;
mod request;
mod round_robin;
mod satf;
mod scan_edf;
mod settings;
mod sfq;
mod share;
mod sstf;
mod sweep;
mod wf2q;
mod wr;

pub use entry::{Build, Entry};
pub use model::{LinearModel, ServiceModel};
pub use policy::{Account, Decision, Policy};
pub use registry::{KERNEL_SCHEDULERS, KernelScheduler, POLICIES, build, kernel_scheduler, names};
pub use request::{Class, ClassId, Contract, Op, Request, TrafficKind};
pub use settings::{SettingError, Settings};
