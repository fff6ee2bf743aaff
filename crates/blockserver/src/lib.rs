//! A kernel block device whose service times are known.
//!
//! A file of a FUSE file system holds the data. Each request to it is stamped on arrival, given to a device model of
//! `weir-simulator`, and answered at the time at which the model completes it. A loop device with direct I/O on top of that file
//! makes it a block device that the kernel schedules like any other: I/O schedulers, priorities, cgroups and file systems
//! work on it, and the time that each request takes is the model's.
//!
//! With a policy ([`ServeSpec::live`]) it decides itself what each head serves next: [`weir_scheduler`] on the real clock, in front
//! of the same models or of real devices, which are then asked by direct I/O. Such a server can also be
//! a block device of the kernel's ublk driver, without FUSE and loop, or be reached by the NBD protocol.
//!
//! [`serve`] runs such a device in the foreground, [`serve_in_background`] in a process of its own; [`down()`] takes it
//! away again, whatever state it is in; [`Control`] talks to it meanwhile.
//!
//! # Limits
//!
//! * The way through FUSE and the loop device costs processor time, and so does keeping time: the last stretch before each
//!   completion is spun, ahead of ordinary threads. For a disk model that is little. A flash model on two
//!   processors gets about 20,000 requests a second through, well under what its profile allows, though each one that
//!   arrives is served in the model's time. `examples/bench_serve` measures the way itself with the `null` profile.
//! * Nothing is cached: a write is answered when it is on the modelled medium, so flushes cost nothing. Discards cost nothing either.
//! * The server needs memory to take a write. Without CAP_SYS_RESOURCE it cannot mark itself as an I/O flusher, so leave memory
//!   free while much is written through a file system on it.

mod clock;
mod control;
mod engine;
mod error;
mod exports;
#[doc(hidden)]
pub mod fuzzing;
mod lifecycle;
mod sockets;
mod spec;
mod state;
mod stats;
mod wait;

pub use control::Control;
pub use engine::scheduled::{
    Arrangement, ClassSpec, ClassStats, ClassesFile, ContractSpec, ExportKind, HeadStats, Layout,
    SchedulingSpec, SchedulingStats,
};
pub use error::Error;
pub use exports::loop_device::missing_capability;
pub use exports::queue::QueueSettings;
pub use lifecycle::background::{serve_in_background, wait_until_ready};
pub use lifecycle::down::{DownOutcome, DownReport, down, down_all};
pub use lifecycle::serve::{serve, unable};
pub use lifecycle::status::{Status, status};
pub use spec::ServeSpec;
pub use state::{BlockDevice, ClassDevice, State, state_path, states};
pub use stats::{LatencySummary, OpCount, Stats};
