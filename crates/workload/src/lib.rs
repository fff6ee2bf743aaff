//! Workloads: specifications turned into timed requests.
//!
//! A [`Workload`] is a recipe: when requests arrive, how large they are, which files they touch, how soon
//! they must be answered. [`Stream`] turns an open-loop recipe into timed requests, deterministically from a
//! seed, in memory bounded by the number of clients. Closed-loop recipes are carried out by fio. [`sessions`] are recipes
//! for visitors of a web site.

mod arrivals;
mod calibrate;
mod catalog;
mod client;
mod demand;
mod distribution;
mod draw;
mod fileset;
mod frames;
pub mod limits;
mod movie;
mod player;
mod queue;
mod recording;
mod seed;
mod server;
mod server_day;
mod server_plan;
pub mod sessions;
mod spec;
mod statistics;
mod stream;
mod target;
mod validate;
mod validate_server;
mod visitor;
mod zipf;

pub use calibrate::{Achieved, Calibration, calibrate};
pub use catalog::{Catalog, apply_overrides};
pub use fileset::FileSet;
pub use limits::ALIGNMENT_BYTES;
pub use movie::{Movie, movie};
pub use recording::Recording;
pub use server::{Disk, DiskWindow, Flushes, Hot, KnownHour, ReadWrite, ServerDay, Spike, Trains, Window};
pub use spec::{
    Access, AccessMix, Arrivals, Correlation, Deadline, Distribution, Files, FrameSource, FrameUnit, Frames,
    Marginal, MmppState, ParetoTime, Part, Popularity, Sizes, SyntheticFrames, Workload,
};
pub use stream::{Draw, Stream, StreamOptions};
pub use target::{Operation, STATISTICS, Statistic, Target, Targets};
pub use visitor::{Popularities, Visitor};
