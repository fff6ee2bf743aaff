//! What happened to each request: at the block layer ([`block`], [`ftrace`]), at files ([`files`]), and on which
//! host ([`host`]).
//!
//! Every recording is reconciled with what the kernel itself counted ([`reconcile`]): what was lost is a number
//! in the report, never silence.
//!
//! What no source here sees: a wait that is over before a bio reaches `block_bio_queue`. That is the throttling by
//! `io.max` (blk-throttle holds bios back before), and io_uring's own queue, which first tries without waiting and
//! hands a request for which there is no tag to a worker. The application's own times contain both.

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

/// The git commit that this was built from, or `unknown`; `-dirty` is appended if files differed from it.
pub const GIT_COMMIT: &str = env!("WEIR_GIT_COMMIT");
