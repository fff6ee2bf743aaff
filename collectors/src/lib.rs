//! Collectors of requests at the block layer ([`block`], [`ftrace`]) and at files ([`files`]), and of facts of the host
//! ([`host`]).
//!
//! Every recording is reconciled with the kernel's own counters ([`reconcile`]): losses are numbers in the report.
//!
//! No source sees a wait before a bio reaches `block_bio_queue`: throttling by `io.max` (blk-throttle delays bios before), and
//! io_uring's queue, which passes a request without a free tag to a worker thread. The application's times contain both.

pub mod assemble;
pub mod blktrace_tool;
pub mod block;
pub mod capability;
mod detached;
pub mod disk;
mod error;
pub mod files;
pub mod fill;
pub mod ftrace;
#[doc(hidden)]
pub mod fuzzing;
pub mod host;
pub mod live;
pub mod paired;
pub mod reconcile;
mod spool;
pub mod to_blktrace;
mod worker;

pub use disk::Disk;
pub use error::Error;
pub use ftrace::recover;
pub use reconcile::Reconciliation;

/// Git commit of the build, or `unknown`; `-dirty` is appended if files differed from it.
pub const GIT_COMMIT: &str = env!("WEIR_GIT_COMMIT");
