//! BPF collector of block requests.

mod attach;
mod collector;
mod counters;
pub(crate) mod event;
mod readings;
mod rings;

pub use attach::Mode;
pub use collector::{Capture, Collector, Delivery, Options};
pub use counters::Counters;

/// What `libbpf-cargo` makes of `block.bpf.c`.
#[allow(
    missing_docs,
    unused_imports,
    dead_code,
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    unsafe_op_in_unsafe_fn
)]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/block.skel.rs"));
}
