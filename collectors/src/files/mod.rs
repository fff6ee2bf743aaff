//! BPF collector of file requests, for file systems without a block device: system calls, io_uring and FUSE of a process
//! and its descendants.

mod collector;
mod record;

pub use collector::{Collector, FileCapture, FileCounters};
pub use record::{FileOp, FileRequest, FileSource};

/// What `libbpf-cargo` makes of `files.bpf.c`.
#[allow(
    missing_docs,
    unused_imports,
    dead_code,
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    unsafe_op_in_unsafe_fn
)]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/files.skel.rs"));
}
