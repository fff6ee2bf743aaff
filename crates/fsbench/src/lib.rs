//! Cost of opening and reading files on a file system; page-cache residency of folders.
//!
//! [`bench`] measures the latencies by which Table 2 of Vaidyanathan et al. compares file systems: open and close, and a read
//! of a whole file that is cached and of one that is not. Each read is checked to have been what it is called, by asking the
//! kernel which pages it held before and after; where nobody can know (a file system that keeps its cache to itself), the
//! result says so.

mod bench;
mod cold;
mod content;
mod place;
mod quantiles;
mod sampling;

pub use bench::{Latency, Options, Report, SizeReport, Verified, bench, bench_before};
pub use cold::Cold;
pub use place::FileSystemOf;
pub use quantiles::Summary;
pub use sampling::{Operation, Sample, Witness};
pub use weir_host::Error;
