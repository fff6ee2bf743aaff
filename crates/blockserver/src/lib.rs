//! Block server: kernel block devices with the service times of a device model.
//!
//! A file of a FUSE file system holds the data. Each request is timestamped on arrival, passed to a device model of
//! `weir-simulator`, and completed at the model's time. A loop device with direct I/O on that file makes it a block device that
//! the kernel schedules like any other: I/O schedulers, priorities, control groups and file systems work on it.
//!
//! With a scheduler ([`ServeSpec::live`]) the server decides what each head serves next: [`weir_scheduler`] in real time, in front
//! of the same models or of real devices, which it accesses by direct I/O. A server can also export a block device of the
//! kernel's ublk driver, without FUSE and loop, or use the NBD protocol.
//!
//! [`serve`] runs a device in the foreground, [`serve_in_background`] in another process; [`down()`] removes it in any
//! state; [`Control`] sends commands to it.
//!
//! # Limits
//!
//! * FUSE and the loop device cost CPU time, and so does timing: a thread with real-time priority spins shortly before each
//!   completion. For a disk model this is little. A flash model on two CPUs reaches about 20,000 requests per second, well
//!   under its profile's limit, with correct service times. `examples/bench_serve` measures the overhead with the profile `null`.
//! * Nothing is cached: a write completes when it is on the modelled medium, and flushes cost nothing. Discards cost nothing.
//! * The server needs memory for each write. Without CAP_SYS_RESOURCE it cannot mark itself as an I/O flusher: keep memory free
//!   while a file system on it writes much.

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
pub use state::{AddedLoop, BlockDevice, ClassDevice, State, state_path, states};
pub use stats::{LatencySummary, OpCount, Stats};
