//! The ftrace `blk` tracer as a source of block requests: slower than BPF, but it needs neither BTF nor debugfs, and it
//! sees completions that this kernel hides from BPF.
//!
//! Tracing is global to the host. What is changed is written to a state file first and put back at the end; the next
//! start puts back what a crash left behind.

mod capture;
mod settings;
mod tracefs;

pub use capture::{Capture, Collector};
