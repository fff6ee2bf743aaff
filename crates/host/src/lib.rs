//! Facts of the host, each read in one place: process identity, locks, files that survive a crash.
//!
//! Nothing here knows of studies or runs. Identities cannot be reused: a process is identified by pid and start time, never by
//! a name or a number alone.

pub mod clock;
pub mod device;
pub mod durable;
mod error;
pub mod lock;
pub mod mounts;
pub mod owned;
pub mod page_cache;
pub mod process;
pub mod record;
pub mod space;
pub mod steal;
pub mod sysfs;
pub mod thread;

pub use error::Error;
