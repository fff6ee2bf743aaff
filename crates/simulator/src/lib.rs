//! Models of storage devices: disks, striped arrays, flash devices.
//!
//! A model does no I/O and has no clock. The caller passes arrivals and the current time in integer nanoseconds; the model
//! returns the time of its next event. The same model therefore runs in virtual time and behind a real block device.
//!
//! ```
//! use weir_simulator::{Device, IoRequest, Op, profile};
//!
//! let mut disk = profile::load("hdd-7200")?.build(1 << 30)?;
//! disk.arrive(0, IoRequest { tag: 7, op: Op::Read, offset_bytes: 512 << 20, size_bytes: 4096 })?;
//! let done_ns = disk.next_event_ns().unwrap();
//! let mut completions = Vec::new();
//! disk.advance(done_ns, &mut completions);
//! assert_eq!((completions[0].tag, completions[0].done_ns), (7, done_ns));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod array;
mod controller;
mod device;
mod disk;
mod disk_build;
mod disk_profile;
mod divisor;
mod flash;
pub mod flash_fit;
mod flash_options;
mod ftl;
mod geometry;
mod instant;
pub mod machine;
mod mechanism;
pub mod profile;
mod profile_types;
mod random_phase;
mod read_ahead;
mod rotation;
mod seek;
mod seek_times;
pub mod server;
mod service_model;
mod service_model_flash;
mod slc_cache;
mod ssd;
mod steady;
mod submission_queues;
mod times;
mod write_cache;
mod zones;

pub use array::{Part, StripedArray, Striping};
pub use controller::ControllerOptions;
pub use device::{Completion, Device, IoRequest, Op, RequestError, SECTOR_BYTES};
pub use disk::{Disk, QueueOrder};
pub use flash::FlashSsd;
pub use flash_options::{
    FlashCounts, FlashOptions, Retries, SlcOptions, UNIT_BYTES as FLASH_UNIT_BYTES, WritePlacement,
};
pub use ftl::Victims;
pub use geometry::{Geometry, Location, Spares, Zone, ZoneLayout, ZoneSkew};
pub use instant::Instant;
pub use mechanism::{Access, Arm, Mechanism};
pub use read_ahead::ReadAheadStop;
pub use rotation::Rotation;
pub use seek::{SeekCurve, SeekCurveError};
pub use seek_times::{SeekForm, SeekTimes};
pub use ssd::{FlashTiming, Ssd};
pub use steady::{MOST_ROUNDS, Preconditioning, Steadiness, is_steady};
pub use submission_queues::QueueOptions;
pub use times::{DiskTimes, TimesError, TimesOptions};
pub use write_cache::{Destage, WriteCacheOptions};
