//! Cost of opening and reading files on a file system; page-cache residency of folders.
//!
//! [`bench`] measures the latencies by which Table 2 of Vaidyanathan et al. compares file systems: open and close, and a read
//! of a whole file that is cached and of one that is not. Each read is checked to have been what it is called, by asking the
//! kernel which pages it held before and after; where nobody can know (a file system that keeps its cache to itself), the
//! result says so. [`residency`] answers the same question for a whole folder.

mod bench;
mod cold;
mod content;
mod error;
mod forget;
mod place;
mod quantiles;
mod residency;
mod sampling;

pub use bench::{Latency, Options, Report, SizeReport, Verified, bench, bench_before};
pub use cold::Cold;
pub use error::Error;
pub use forget::forget;
pub use place::{FileSystemOf, mounted_at};
pub use quantiles::Summary;
pub use residency::{Method, Residency, residency, residency_of};
pub use sampling::{Operation, Sample, Witness};
