//! A device of any profile, as a server in virtual time has it: it serves, and policies can ask about it.

use weir_schedulers::{Request, ServiceModel};

use crate::device::{Completion, Device, IoRequest, RequestError};
use crate::disk::Disk;
use crate::flash::FlashSsd;
use crate::instant::Instant;
use crate::profile::{Profile, ProfileError};
use crate::ssd::Ssd;

/// A device of any profile. It is not behind a pointer to a trait: its methods are most of what a simulation does.
pub enum Model {
    /// A disk with one arm.
    Disk(Box<Disk>),
    /// A flash device that is always ready to write.
    Ssd(Box<Ssd>),
    /// A flash device with a translation layer.
    Flash(Box<FlashSsd>),
    /// No service time.
    Instant(Box<Instant>),
}

/// The same call on whichever device it is.
macro_rules! each {
    ($model:expr, $device:ident => $call:expr) => {
        match $model {
            Model::Disk($device) => $call,
            Model::Ssd($device) => $call,
            Model::Flash($device) => $call,
            Model::Instant($device) => $call,
        }
    };
}

impl Model {
    /// A device of a profile; `seed` is of what it draws at random, if it does.
    ///
    /// # Errors
    /// As [`Profile::build`].
    pub fn new(profile: &Profile, capacity_bytes: u64, seed: u64) -> Result<Self, ProfileError> {
        profile.check_capacity(capacity_bytes)?;
        Ok(match profile {
            Profile::Disk(disk) => Model::Disk(Box::new(disk.build_seeded(capacity_bytes, seed)?)),
            Profile::Ssd(ssd) => match ssd.build_flash(capacity_bytes)? {
                Some(flash) => Model::Flash(Box::new(flash)),
                None => Model::Ssd(Box::new(ssd.build(capacity_bytes)?)),
            },
            Profile::Null(_) => Model::Instant(Box::new(Instant::new(capacity_bytes))),
        })
    }
}

impl Device for Model {
    fn arrive(&mut self, now_ns: u64, request: IoRequest) -> Result<(), RequestError> {
        each!(self, device => device.arrive(now_ns, request))
    }

    fn next_event_ns(&self) -> Option<u64> {
        each!(self, device => device.next_event_ns())
    }

    fn advance(&mut self, now_ns: u64, completions: &mut Vec<Completion>) {
        each!(self, device => device.advance(now_ns, completions));
    }

    fn outstanding(&self) -> usize {
        each!(self, device => device.outstanding())
    }

    fn capacity_bytes(&self) -> u64 {
        each!(self, device => Device::capacity_bytes(&**device))
    }
}

impl ServiceModel for Model {
    fn cylinder(&self, offset_bytes: u64) -> u32 {
        each!(self, device => device.cylinder(offset_bytes))
    }

    fn head_bytes(&self) -> u64 {
        each!(self, device => ServiceModel::head_bytes(&**device))
    }

    fn positioning_ns(&self, now_ns: u64, request: &Request) -> u64 {
        each!(self, device => device.positioning_ns(now_ns, request))
    }

    fn expected_ns(&self, from_bytes: u64, request: &Request) -> u64 {
        each!(self, device => device.expected_ns(from_bytes, request))
    }

    fn bound_ns(&self, from_bytes: u64, request: &Request) -> u64 {
        each!(self, device => device.bound_ns(from_bytes, request))
    }

    fn capacity_bytes(&self) -> u64 {
        Device::capacity_bytes(self)
    }
}
