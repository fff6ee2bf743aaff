//! Models of the Linux kernel's I/O schedulers, without merging, zones and locks.
//!
//! Settings have the names of the kernel's tunables, and their units and defaults.

pub(crate) mod bfq;
mod bfq_device;
mod bfq_queue;
mod bfq_tree;
pub(crate) mod kyber;
pub(crate) mod mq_deadline;
