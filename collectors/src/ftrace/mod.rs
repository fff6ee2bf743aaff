//! Block trace events of ftrace as a source of block requests: dearer than BPF, but they need no BTF, and they see
//! completions that some kernels hide from BPF programs.
//!
//! Recording happens in a trace instance of weir's own (`instances/weir-TOKEN`), with its own buffer, clock and events. No
//! setting of the host's tracing is changed, so that other tracers and other weirs on the host go on undisturbed. The token is
//! recorded on disk before the instance is made; [`recover`] removes the instances of processes that died.

mod capture;
mod decode;
mod instance;
pub mod ring;
mod tracefs;

pub use capture::{Capture, Collector};
pub use decode::Decoder;
pub use instance::recover;
