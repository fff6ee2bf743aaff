//! Block devices of a run: which they are, their queues, the schedulers in front of them, and the capture of their requests.

pub(crate) mod array;
pub(crate) mod block_device;
pub(crate) mod capture;
pub(crate) mod held_disk;
pub(crate) mod kernel_queue;
pub(crate) mod medium;
pub(crate) mod open;
pub(crate) mod queue_record;
pub(crate) mod server_scheduler;
