//! What is asked of storage.
//!
//! A [`Workload`] is a recipe: when requests arrive, how large they are, which files they touch, how soon
//! they must be answered. [`Stream`] turns an open-loop recipe into timed requests, deterministically from a
//! seed, in memory bounded by the number of clients. Closed-loop recipes are carried out by fio. [`sessions`] are recipes
//! for the people in front of a web site.

mod catalog;
mod client;
mod distribution;
mod fileset;
mod frames;
mod seed;
pub mod sessions;
mod spec;
mod stream;
mod validate;

pub use catalog::{Catalog, apply_overrides};
pub use fileset::{ALIGNMENT_BYTES, FileSet};
pub use spec::{
    Access, Arrivals, Deadline, Distribution, Files, FrameSource, FrameUnit, Frames, Popularity, Sizes,
    SyntheticFrames, Workload,
};
pub use stream::{Stream, StreamOptions};
