//! Benchmark of opening and reading files on a file system.
//!
//! [`bench`] measures the latencies by which Table 2 of Vaidyanathan et al. compares file systems: open and close, and a read
//! of a whole cached or uncached file. Whether a read was cached is verified by asking the kernel which pages it held before
//! and after. Where the kernel does not know (a file system with a cache of its own), the result says that it is not verified.

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
