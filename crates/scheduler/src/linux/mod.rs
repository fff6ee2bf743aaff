//! Models of the Linux kernel's I/O schedulers, without zones and locks; only that of 2.4 merges.
//!
//! Settings have the names of the kernel's tunables, and their units and defaults.

pub(crate) mod bfq;
mod bfq_device;
mod bfq_queue;
mod bfq_tree;
pub(crate) mod elevator_linus;
pub(crate) mod kyber;
pub(crate) mod mq_deadline;
