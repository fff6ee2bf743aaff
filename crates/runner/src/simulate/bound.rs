//! Bound on the time of a round's requests on a device of a profile.

use weir_scheduler::admission::RoundBound;
use weir_simulator::profile::{self, Profile};
use weir_simulator::{Disk, SECTOR_BYTES};
use weir_study::{AdmissionSettings, RotationBound, RunDevice, SeekBound, TransferBound};

use crate::Error;

/// Maximum requests of a round on one disk.
const MOST_REQUESTS: u64 = 1_000_000;

/// A device as admission control sees it.
struct Figures {
    /// Seek time over a number of cylinders, in ns.
    seek_ns: Box<dyn Fn(u32) -> u64>,
    /// Cylinders of a sweep.
    way_cylinders: u32,
    /// Latency of each request besides seek and transfer, in ns.
    latency_ns: u64,
    bytes_per_s: u64,
}

/// Bound for rounds on one head of a device, under the settings' assumptions.
///
/// # Errors
/// The profile is not known, cannot have this size, or has no service times.
pub(super) fn of_device(device: &RunDevice, settings: &AdmissionSettings) -> Result<RoundBound, Error> {
    let refused = |error: &dyn std::fmt::Display| Error::Refused(format!("device {}: {error}", device.name));
    let profile = profile::load(&device.profile).map_err(|error| refused(&error))?;
    let head_bytes = (device.size_mib << 20) / u64::from(device.heads.max(1));
    let figures = match &profile {
        Profile::Disk(disk) => of_disk(&disk.build(head_bytes).map_err(|error| refused(&error))?, settings),
        // No arm: command and page time are the latency, and blocks come page by page over all channels.
        Profile::Ssd(ssd) => {
            let page_bytes = f64::from(ssd.page_kib) * 1024.0;
            let page_us = ssd.read_latency_us + page_bytes / ssd.channel_mb_s;
            Figures {
                seek_ns: Box::new(|_| 0),
                way_cylinders: 1,
                latency_ns: ((ssd.command_overhead_us + page_us) * 1e3).round() as u64,
                bytes_per_s: (f64::from(ssd.channels) * page_bytes / page_us * 1e6) as u64,
            }
        }
        Profile::Null(_) => {
            return Err(refused(
                &"a device without service times never refuses a stream. Choose another profile",
            ));
        }
    };
    let most = settings.round_ns() / figures.latency_ns.max(1) + 1;
    RoundBound::new(
        figures.seek_ns,
        figures.way_cylinders,
        figures.latency_ns,
        figures.bytes_per_s,
        settings.block_kib << 10,
        most.min(MOST_REQUESTS) as u32,
    )
    .map_err(|error| refused(&error))
}

fn of_disk(disk: &Disk, settings: &AdmissionSettings) -> Figures {
    let mechanism = disk.mechanism().clone();
    let cylinders = mechanism.geometry.cylinders();
    let revolution_ns = mechanism.rotation.revolution_ns();
    let latency_ns = match settings.rotation {
        RotationBound::Whole => revolution_ns,
        RotationBound::Half => revolution_ns / 2,
    };
    let tracks = || mechanism.geometry.zones().iter().map(|zone| u64::from(zone.sectors_per_track));
    let sectors = match settings.transfer {
        TransferBound::Lowest => tracks().min().unwrap_or(1) as f64,
        TransferBound::Highest => tracks().max().unwrap_or(1) as f64,
        // All sectors divided by the revolutions for all tracks.
        TransferBound::Mean => {
            let count = f64::from(cylinders) * f64::from(mechanism.geometry.heads());
            mechanism.geometry.sectors() as f64 / count.max(1.0)
        }
    };
    let bytes_per_s = (sectors * SECTOR_BYTES as f64 * 1e9 / revolution_ns as f64) as u64;
    let seek = mechanism.seek;
    let longest_ns = seek.time_ns(cylinders.saturating_sub(1));
    Figures {
        seek_ns: match settings.seek {
            SeekBound::Sweep => Box::new(move |distance| seek.time_ns(distance)),
            SeekBound::Longest => Box::new(move |_| longest_ns),
        },
        way_cylinders: cylinders,
        latency_ns,
        bytes_per_s,
    }
}
