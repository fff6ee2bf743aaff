//! Block devices in state files: path and device number.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A block device by path and device number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockDevice {
    /// `/dev/loopN` or `/dev/ublkbN`.
    pub path: PathBuf,
    /// Major number.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
}

impl BlockDevice {
    /// Major and minor number.
    pub(crate) fn number(&self) -> (u32, u32) {
        (self.major, self.minor)
    }
}

/// A loop device that a server adds to the host's. It is recorded before it is made, and again with its inode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AddedLoop {
    /// N of `/dev/loopN`; the host had no such device.
    pub number: u32,
    /// Unix time of the first record in nanoseconds.
    pub asked_unix_ns: u64,
    /// Inode of `/sys/block/loopN`, which no other device of this number has; `None` in the first record.
    pub inode: Option<u64>,
}

/// The block device of a class of a partitioned server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassDevice {
    /// Name of the class.
    pub class: String,
    /// Its device.
    pub device: BlockDevice,
}
