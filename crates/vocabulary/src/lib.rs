//! Types that specifications, schedulers, device models and tables share: operation of a request, traffic kind of a
//! class, I/O priority of the kernel.

#[cfg(feature = "text")]
mod io_priority;
mod op;
mod traffic_kind;

#[cfg(feature = "text")]
pub use io_priority::{IoPriority, IoPriorityClass};
pub use op::Op;
pub use traffic_kind::TrafficKind;
