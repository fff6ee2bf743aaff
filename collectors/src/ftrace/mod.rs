//! ftrace collector of block requests: slower than BPF, but without BTF, and with completions that some kernels hide from BPF
//! programs.
//!
//! Such completions were followed on one machine (Linux 6.18, 200,000 requests/s): no program and no sample of perf saw those that
//! a soft interrupt handled on top of a task of process 1, in a section without preemption, and all others were seen. In two
//! recordings these were 32 of 32 and 39 of 39 missed completions. perf never sampled that process either, so this kernel hides it from
//! tracing. `recursion_misses` of the programs were 0.
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
