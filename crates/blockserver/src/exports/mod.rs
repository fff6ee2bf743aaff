//! Ways to a server's data: a file in FUSE, a loop device over it, a block device of ublk, the NBD protocol.

pub(crate) mod fuse;
pub(crate) mod loop_device;
pub(crate) mod nbd;
pub(crate) mod queue;
pub(crate) mod ublk;
