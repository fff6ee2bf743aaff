//! Exports of a server: a file in FUSE, a loop device over it, a ublk block device, the NBD protocol.

pub(crate) mod fuse;
pub(crate) mod loop_device;
pub(crate) mod nbd;
pub(crate) mod queue;
pub(crate) mod ublk;
