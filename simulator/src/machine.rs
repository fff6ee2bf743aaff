//! A device of any profile, as a server in virtual time has it: it serves, and policies can ask about it.

use weir_schedulers::{Request, ServiceModel};

use crate::device::{Completion, Device, IoRequest, RequestError};
use crate::disk::Disk;
use crate::profile::{Profile, ProfileError};

/// A device of any profile. A disk is not behind a pointer to a trait: its methods are most of what a simulation does.
pub enum Model {
    /// A disk with one arm.
    Disk(Box<Disk>),
    /// A device to which all places are alike.
    Flat(Box<dyn Device>),
}

impl Model {
    /// A device of a profile; `seed` is of what it draws at random, if it does.
    ///
    /// # Errors
    /// As [`Profile::build`].
    pub fn new(profile: &Profile, capacity_bytes: u64, seed: u64) -> Result<Self, ProfileError> {
        match profile {
            Profile::Disk(disk) => Ok(Model::Disk(Box::new(disk.build_seeded(capacity_bytes, seed)?))),
            other => Ok(Model::Flat(other.build(capacity_bytes)?)),
        }
    }
}

impl Device for Model {
    fn arrive(&mut self, now_ns: u64, request: IoRequest) -> Result<(), RequestError> {
        match self {
            Model::Disk(disk) => disk.arrive(now_ns, request),
            Model::Flat(device) => device.arrive(now_ns, request),
        }
    }

    fn next_event_ns(&self) -> Option<u64> {
        match self {
            Model::Disk(disk) => disk.next_event_ns(),
            Model::Flat(device) => device.next_event_ns(),
        }
    }

    fn advance(&mut self, now_ns: u64, completions: &mut Vec<Completion>) {
        match self {
            Model::Disk(disk) => disk.advance(now_ns, completions),
            Model::Flat(device) => device.advance(now_ns, completions),
        }
    }

    fn outstanding(&self) -> usize {
        match self {
            Model::Disk(disk) => disk.outstanding(),
            Model::Flat(device) => device.outstanding(),
        }
    }

    fn capacity_bytes(&self) -> u64 {
        match self {
            Model::Disk(disk) => Device::capacity_bytes(&**disk),
            Model::Flat(device) => device.capacity_bytes(),
        }
    }
}

/// What a device without an arm says of an address: nothing tells one from another, so that all are at the same place.
impl ServiceModel for Model {
    fn cylinder(&self, offset_bytes: u64) -> u32 {
        match self {
            Model::Disk(disk) => disk.cylinder(offset_bytes),
            Model::Flat(_) => 0,
        }
    }

    fn head_bytes(&self) -> u64 {
        match self {
            Model::Disk(disk) => disk.head_bytes(),
            Model::Flat(_) => 0,
        }
    }

    fn positioning_ns(&self, now_ns: u64, request: &Request) -> u64 {
        match self {
            Model::Disk(disk) => disk.positioning_ns(now_ns, request),
            Model::Flat(_) => 0,
        }
    }

    fn expected_ns(&self, from_bytes: u64, request: &Request) -> u64 {
        match self {
            Model::Disk(disk) => disk.expected_ns(from_bytes, request),
            Model::Flat(_) => 0,
        }
    }

    fn bound_ns(&self, from_bytes: u64, request: &Request) -> u64 {
        match self {
            Model::Disk(disk) => disk.bound_ns(from_bytes, request),
            Model::Flat(_) => 0,
        }
    }

    fn capacity_bytes(&self) -> u64 {
        Device::capacity_bytes(self)
    }
}
