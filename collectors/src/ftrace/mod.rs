//! ftrace collector of block requests: slower than BPF, but without BTF, and with completions that some kernels hide from BPF
//! programs.
//!
//! It records in its own trace instance (`instances/weir-TOKEN`), with its own buffer, clock and events. The host's tracing
//! settings are not changed, and other tracers are not disturbed. The token is recorded on disk before the instance is made;
//! [`recover`] removes the instances of dead processes.

mod capture;
mod decode;
mod instance;
pub mod ring;
mod tracefs;

pub use capture::{Capture, Collector};
pub use decode::Decoder;
pub use instance::recover;
