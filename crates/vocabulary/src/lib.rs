//! Words that specifications, schedulers, device models and tables share, each defined once: the operation of a request, the kind
//! of a class's traffic, the kernel's I/O priorities.

#[cfg(feature = "text")]
mod io_priority;
mod op;
mod traffic_kind;

#[cfg(feature = "text")]
pub use io_priority::{IoPriority, IoPriorityClass};
pub use op::Op;
pub use traffic_kind::TrafficKind;
