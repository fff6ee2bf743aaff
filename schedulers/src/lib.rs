//! Who goes next: disk schedulers, with and without quality of service.
//!
//! A [`Policy`] does no I/O and has no clock: it is told what time it is, what has arrived and what is done, and says
//! which request the device is to serve next. What it may know of the device it asks a [`ServiceModel`]. The same policy
//! therefore orders requests in a simulator and in front of a real disk.
//!
//! [`POLICIES`] lists all of them; to add one, write a file and a line there.

pub mod admission;
mod cello;
mod fcfs;
mod model;
mod policy;
mod registry;
mod request;
mod settings;
mod wr;

pub use model::{LinearModel, ServiceModel};
pub use policy::{Decision, Policy};
pub use registry::{Build, Entry, POLICIES, build};
pub use request::{Class, ClassId, Op, Request, Service};
pub use settings::{SettingError, Settings};
