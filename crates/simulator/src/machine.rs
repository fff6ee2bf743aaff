//! Device of any profile, as device and service model of a virtual-time server.

use crate::disk::Disk;
use crate::flash::FlashSsd;
use crate::instant::Instant;
use crate::profile::{Profile, ProfileError};
use crate::ssd::Ssd;

/// A device of any profile. An enum instead of a trait object: its methods take most of the time of a simulation.
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

/// Implements the device trait for an enum of boxed devices by delegation.
#[macro_export]
macro_rules! device_of_several {
    ($name:ident { $($variant:ident),+ }) => {
        impl $crate::Device for $name {
            fn arrive(
                &mut self,
                now_ns: u64,
                request: $crate::IoRequest,
            ) -> Result<(), $crate::RequestError> {
                match self { $($name::$variant(device) => device.arrive(now_ns, request)),+ }
            }

            fn arrive_of(
                &mut self,
                now_ns: u64,
                request: $crate::IoRequest,
                class: usize,
            ) -> Result<(), $crate::RequestError> {
                match self { $($name::$variant(device) => device.arrive_of(now_ns, request, class)),+ }
            }

            fn next_event_ns(&self) -> Option<u64> {
                match self { $($name::$variant(device) => device.next_event_ns()),+ }
            }

            fn advance(&mut self, now_ns: u64, completions: &mut Vec<$crate::Completion>) {
                match self { $($name::$variant(device) => device.advance(now_ns, completions)),+ }
            }

            fn discard(&mut self, offset_bytes: u64, size_bytes: u64) {
                match self {
                    $($name::$variant(device) => $crate::Device::discard(&mut **device, offset_bytes, size_bytes)),+
                }
            }

            fn flash_counts(&self) -> Option<$crate::FlashCounts> {
                match self { $($name::$variant(device) => $crate::Device::flash_counts(&**device)),+ }
            }

            fn outstanding(&self) -> usize {
                match self { $($name::$variant(device) => device.outstanding()),+ }
            }

            fn capacity_bytes(&self) -> u64 {
                match self { $($name::$variant(device) => $crate::Device::capacity_bytes(&**device)),+ }
            }
        }

        impl ::weir_scheduler::ServiceModel for $name {
            fn cylinder(&self, offset_bytes: u64) -> u32 {
                match self { $($name::$variant(device) => device.cylinder(offset_bytes)),+ }
            }

            fn head_bytes(&self) -> u64 {
                match self { $($name::$variant(device) => ::weir_scheduler::ServiceModel::head_bytes(&**device)),+ }
            }

            fn positioning_ns(&self, now_ns: u64, request: &::weir_scheduler::Request) -> u64 {
                match self { $($name::$variant(device) => device.positioning_ns(now_ns, request)),+ }
            }

            fn least_positioning_ns(&self, offset_bytes: u64) -> u64 {
                match self { $($name::$variant(device) => device.least_positioning_ns(offset_bytes)),+ }
            }

            fn held(&self, tell: &mut dyn FnMut(::std::ops::Range<u64>)) {
                match self { $($name::$variant(device) => device.held(tell)),+ }
            }

            fn expected_ns(&self, from_bytes: u64, request: &::weir_scheduler::Request) -> u64 {
                match self { $($name::$variant(device) => device.expected_ns(from_bytes, request)),+ }
            }

            fn bound_ns(&self, from_bytes: u64, request: &::weir_scheduler::Request) -> u64 {
                match self { $($name::$variant(device) => device.bound_ns(from_bytes, request)),+ }
            }

            fn capacity_bytes(&self) -> u64 {
                $crate::Device::capacity_bytes(self)
            }
        }
    };
}

impl Model {
    /// A device of a profile; `seed` is for its random numbers, if it uses any.
    ///
    /// # Errors
    /// As [`Profile::build`].
    pub fn new(profile: &Profile, capacity_bytes: u64, seed: u64) -> Result<Self, ProfileError> {
        profile.check_capacity(capacity_bytes)?;
        Ok(match profile {
            Profile::Disk(disk) => Model::Disk(Box::new(disk.build_seeded(capacity_bytes, seed)?)),
            Profile::Ssd(ssd) => match ssd.build_flash(capacity_bytes, seed)? {
                Some(flash) => Model::Flash(Box::new(flash)),
                None => Model::Ssd(Box::new(ssd.build(capacity_bytes)?)),
            },
            Profile::Null(_) => Model::Instant(Box::new(Instant::new(capacity_bytes))),
        })
    }

    /// One device for each seed, as [`Model::new`] makes them. Disks share what is equal and does not change.
    ///
    /// # Errors
    /// As [`Profile::build`].
    pub fn several(
        profile: &Profile,
        capacity_bytes: u64,
        seeds: impl IntoIterator<Item = u64>,
    ) -> Result<Vec<Self>, ProfileError> {
        let mut models: Vec<Model> = Vec::new();
        for seed in seeds {
            models.push(match (profile, models.first()) {
                (Profile::Disk(disk), Some(Model::Disk(first))) => {
                    Model::Disk(Box::new(first.another(disk.options(seed))))
                }
                _ => Model::new(profile, capacity_bytes, seed)?,
            });
        }
        Ok(models)
    }
}

device_of_several!(Model { Disk, Ssd, Flash, Instant });
