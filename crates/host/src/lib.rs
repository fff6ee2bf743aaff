//! Facts of the host, each learned in one place: process identity, locks, files that survive a crash.
//!
//! Nothing here knows of studies or runs. A thing is identified by what cannot be taken over by another: a process by pid
//! and start time, never by a name or a number that is given again.

pub mod clock;
pub mod device;
pub mod durable;
mod error;
pub mod lock;
pub mod mounts;
pub mod owned;
pub mod page_cache;
pub mod process;
pub mod space;
pub mod steal;
pub mod sysfs;
pub mod thread;

pub use error::Error;
