//! Service-time measurement of a modelled disk.

use crate::device::{Device, IoRequest, Op, SECTOR_BYTES};
use crate::disk_profile::DiskProfile;
use crate::profile::ProfileError;

/// Which requests are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimesOptions {
    /// Number of the zone, from the outer edge.
    pub zone: usize,
    /// Bytes of each request.
    pub size_bytes: u32,
    /// Operation of the requests.
    pub op: Op,
    /// Whether they begin where tracks do.
    pub aligned: bool,
    /// Whether each begins at the end of the previous one (no seeks except to the next cylinder); otherwise they begin
    /// anywhere in the zone.
    pub sequential: bool,
    /// How many, at least 1.
    pub requests: u32,
    /// Seed of where they begin and how long the disk rests between them.
    pub seed: u64,
}

/// How long they took, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskTimes {
    /// The shortest.
    pub min_ns: u64,
    /// All of them, on average.
    pub mean_ns: u64,
    /// 95th percentile.
    pub p95_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// Longest seek of the disk, not part of the other figures.
    pub longest_seek_ns: u64,
}

/// Error in a measurement of service times.
#[derive(Debug, thiserror::Error)]
pub enum TimesError {
    /// Invalid profile.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// Invalid request.
    #[error(transparent)]
    Request(#[from] crate::device::RequestError),
    /// Unknown zone.
    #[error("zone: found {zone}, expected 0 to {}", zones.saturating_sub(1))]
    Zone {
        /// Its number.
        zone: usize,
        /// Number of zones.
        zones: usize,
    },
    /// A request is larger than the zone, or empty.
    #[error("request size in zone {zone}: found {size_bytes} bytes, expected {SECTOR_BYTES} to {most_bytes}")]
    Size {
        /// Size of a request.
        size_bytes: u32,
        /// The zone.
        zone: usize,
        /// Bytes of the zone.
        most_bytes: u64,
    },
}

impl DiskTimes {
    /// Serves requests one at a time by a whole drive of the profile; between them it rests for up to four revolutions.
    ///
    /// # Errors
    /// The zone, the request or the profile is invalid.
    pub fn measure(profile: &DiskProfile, options: &TimesOptions) -> Result<Self, TimesError> {
        let TimesOptions { zone, size_bytes, op, .. } = *options;
        let mut disk = profile.build(profile.full_bytes()?)?;
        let mechanism = disk.mechanism();
        let zones = mechanism.geometry.zones();
        let of_zone = zones.get(zone).ok_or(TimesError::Zone { zone, zones: zones.len() })?;
        let end_sector = of_zone.end_sector.min(Device::capacity_bytes(&disk) / SECTOR_BYTES);
        let (first, track) =
            (of_zone.first_sector, u64::from(of_zone.sectors_per_track - of_zone.spares.sectors_per_track));
        let sectors = u64::from(size_bytes).div_ceil(SECTOR_BYTES);
        let room = end_sector.saturating_sub(first);
        if sectors == 0 || sectors > room {
            let most_bytes = room * SECTOR_BYTES;
            return Err(TimesError::Size { size_bytes, zone, most_bytes });
        }
        let step = if options.aligned { track.max(1) } else { 1 };
        let places = (room - sectors) / step + 1;
        let rest_ns = 4 * mechanism.rotation.revolution_ns();
        let longest = mechanism.geometry.cylinders().saturating_sub(1);
        let longest_seek_ns = mechanism.seek.time_ns(longest);
        let mut random = crate::server::SplitMix(options.seed);
        let mut took_ns = Vec::with_capacity(options.requests as usize);
        let (mut now_ns, mut place, mut done) = (0, 0, Vec::new());
        for number in 0..=options.requests.max(1) {
            if !options.sequential {
                place = random.below(places);
            }
            let offset_bytes = (first + place * step) * SECTOR_BYTES;
            disk.arrive(now_ns, IoRequest { tag: 0, op, offset_bytes, size_bytes })?;
            let Some(done_ns) = disk.next_event_ns() else { break };
            disk.advance(done_ns, &mut done);
            done.clear();
            // The arm of the first one is elsewhere.
            if number > 0 {
                took_ns.push(done_ns - now_ns);
            }
            now_ns = done_ns + random.below(rest_ns);
            place = (place + sectors.div_ceil(step)) % places;
        }
        took_ns.sort_unstable();
        let count = took_ns.len().max(1);
        let rank = |share: f64| took_ns.get(((share * count as f64).ceil() as usize).clamp(1, count) - 1);
        let quantile = |share| rank(share).copied().unwrap_or(0);
        let sum: u128 = took_ns.iter().map(|ns| u128::from(*ns)).sum();
        Ok(DiskTimes {
            min_ns: quantile(0.0),
            mean_ns: (sum / count as u128) as u64,
            p95_ns: quantile(0.95),
            p99_ns: quantile(0.99),
            max_ns: quantile(1.0),
            longest_seek_ns,
        })
    }
}
