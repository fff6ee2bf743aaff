//! The files that a run leaves behind.
//!
//! Tables, each one row per request and each with a fixed schema:
//!
//! * [`request::Request`]: `requests.parquet`, requests as the application saw them;
//! * [`block::BlockRequest`]: `block.parquet`, requests as the block layer saw them;
//! * [`interaction::Interaction`]: `sessions.parquet`, what clients ask a site for;
//! * [`page::Page`]: `pages.parquet`, pages of a site as its browsers saw them;
//! * [`of_host::OfHost`]: any of them with the column `host`, of runs that several hosts carried out together.
//!
//! [`manifest`] lists what a run's folder holds with the SHA-256 of every file, and tells what was damaged since.
//!
//! All times are nanoseconds on `CLOCK_MONOTONIC`, relative to the start of the run (its *epoch*);
//! the epoch itself is kept in the file's metadata under [`EPOCH_KEY`]. Each page has a checksum (CRC-32, as
//! Parquet has it). A file is written under a temporary name and renamed when it is complete, so that a file that
//! exists is whole.

pub mod block;
mod bounded_pages;
pub mod cell;
mod checksummed_pages;
pub mod column;
pub mod error;
pub mod interaction;
pub mod manifest;
pub mod of_host;
pub mod page;
mod reader;
mod record;
pub mod request;
mod sane;
pub mod sealed;
mod table;

pub use block::{BlockOp, BlockRequest};
pub use error::Error;
pub use interaction::Interaction;
pub use manifest::{Damage, Manifest};
pub use of_host::OfHost;
pub use page::Page;
pub use reader::{TableReader, read_all};
pub use record::Record;
pub use request::{Op, Request};
pub use table::{TableWriter, write_all};

/// Metadata key of the run's start, in ns of `CLOCK_MONOTONIC`.
pub const EPOCH_KEY: &str = "weir.epoch_monotonic_ns";
