//! Construction of a disk from its profile.

use crate::controller::ControllerOptions;
use crate::device::SECTOR_BYTES;
use crate::disk::Disk;
use crate::disk_profile::{DiskProfile, RotationMode, ZoneProfile};
use crate::geometry::{Geometry, Spares, ZoneLayout, ZoneSkew};
use crate::mechanism::Mechanism;
use crate::profile::ProfileError;
use crate::profile_types::{ns, within};
use crate::rotation::Rotation;
use crate::seek::{LEAST_CYLINDERS, SeekCurve};
use crate::seek_times::{SeekForm, SeekTimes};
use crate::write_cache::WriteCacheOptions;

/// Disks of more cylinders were not meant, and their seek curve would take seconds to solve.
const MOST_CYLINDERS: f64 = 1e7;

impl DiskProfile {
    /// Makes the disk, as [`Profile::build`](crate::profile::Profile::build) says. A `rotation: random` is drawn with seed 0.
    ///
    /// # Errors
    /// As [`Profile::build`](crate::profile::Profile::build).
    pub fn build(&self, capacity_bytes: u64) -> Result<Disk, ProfileError> {
        self.build_seeded(capacity_bytes, 0)
    }

    /// Makes the disk; where the profile says `rotation: random` the angles are drawn from a generator with this seed.
    ///
    /// # Errors
    /// As [`Profile::build`](crate::profile::Profile::build).
    pub fn build_seeded(&self, capacity_bytes: u64, seed: u64) -> Result<Disk, ProfileError> {
        self.check_fields()?;
        let zones = self.zone_layouts()?;
        let (least_bytes, most_bytes) = self.least_and_most_bytes()?;
        if !(least_bytes..=most_bytes).contains(&capacity_bytes) {
            return Err(ProfileError::Capacity { capacity_bytes, least_bytes, most_bytes });
        }
        let geometry = match self.full_geometry() {
            Some(full) if capacity_bytes == most_bytes => full,
            _ => Geometry::fitting_layouts(capacity_bytes / SECTOR_BYTES, self.heads, &zones),
        };
        let mut rotation = Rotation::new((60e9 / self.rpm).round() as u64, self.heads);
        rotation.head_skew_ns = ns(self.head_skew_ms.unwrap_or(0.0), 1e6);
        rotation.cylinder_skew_ns = ns(self.cylinder_skew_ms.unwrap_or(0.0), 1e6);
        let mechanism = Mechanism {
            seek: self.seek(geometry.cylinders(), self.full_cylinders(&zones)?)?,
            geometry: geometry.into(),
            rotation,
            head_switch_ns: ns(self.head_switch_ms, 1e6),
            write_settle_ns: ns(self.write_settle_ms, 1e6),
            read_on_arrival: self.read_on_arrival,
        };
        Ok(Disk::with_options(mechanism, capacity_bytes, self.queue_order, self.options(seed)))
    }

    /// Bytes of the smallest disk that has a seek curve, and of the whole disk in whole sectors.
    pub(crate) fn least_and_most_bytes(&self) -> Result<(u64, u64), ProfileError> {
        let least_bytes = (self.cylinder_bytes()? * f64::from(LEAST_CYLINDERS)).ceil() as u64;
        Ok((least_bytes, self.full_bytes()? / SECTOR_BYTES * SECTOR_BYTES))
    }

    /// Bytes of a mean cylinder.
    fn cylinder_bytes(&self) -> Result<f64, ProfileError> {
        let zones = self.zone_layouts()?;
        let mean_track: f64 =
            zones.iter().map(|(share, zone)| share * f64::from(zone.data_per_track())).sum();
        Ok(mean_track * f64::from(self.heads) * SECTOR_BYTES as f64)
    }

    /// Bytes of the whole disk: the capacity of its zones if their cylinders are stated, otherwise `capacity_gb`.
    ///
    /// # Errors
    /// [`ProfileError::Field`] or [`ProfileError::Missing`].
    pub fn full_bytes(&self) -> Result<u64, ProfileError> {
        match (self.full_geometry(), self.capacity_gb) {
            (Some(geometry), _) => Ok(geometry.sectors() * SECTOR_BYTES),
            (None, Some(capacity_gb)) => {
                within("capacity_gb", capacity_gb, 1e-9, 1e6)?;
                Ok((capacity_gb * 1e9) as u64)
            }
            (None, None) => Err(ProfileError::Missing {
                problem: "missing `capacity_gb`, and not all zones have `cylinders`",
                remedy: "give `capacity_gb` and the zones' `share`, or every zone's `cylinders`",
            }),
        }
    }

    fn full_geometry(&self) -> Option<Geometry> {
        let layouts: Option<Vec<_>> =
            self.zones.iter().map(|zone| zone.cylinders.map(|cylinders| zone.layout(cylinders))).collect();
        layouts.map(|layouts| Geometry::laid_out(self.heads, &layouts))
    }

    /// Each zone with its share of the cylinders.
    fn zone_layouts(&self) -> Result<Vec<(f64, ZoneLayout)>, ProfileError> {
        let given: Option<Vec<u32>> = self.zones.iter().map(|zone| zone.cylinders).collect();
        let all: Option<f64> = given.map(|given| given.iter().map(|cylinders| f64::from(*cylinders)).sum());
        let share = |zone: &ZoneProfile| match (all, zone.cylinders, zone.share) {
            (Some(all), Some(cylinders), None) => Ok(f64::from(cylinders) / all),
            (None, None, Some(share)) => Ok(share),
            _ => Err(ProfileError::Missing {
                problem: "`zones` mixes `share` and `cylinders`, or a zone has neither",
                remedy: "give every zone its `share`, or every zone its `cylinders`",
            }),
        };
        // Spare tracks, bad sectors and reserved sectors at the front belong to the whole disk, not to a small copy of
        // it.
        let small = |zone: &ZoneProfile| {
            let layout = zone.layout(0);
            let spares = Spares { tracks: 0, front_sectors: 0, ..layout.spares };
            ZoneLayout { spares, slipped_tracks: Vec::new(), ..layout }
        };
        self.zones.iter().map(|zone| Ok((share(zone)?, small(zone)))).collect()
    }

    fn full_cylinders(&self, zones: &[(f64, ZoneLayout)]) -> Result<u32, ProfileError> {
        Ok(match self.full_geometry() {
            Some(geometry) => geometry.cylinders(),
            None => {
                Geometry::fitting_layouts(self.full_bytes()? / SECTOR_BYTES, self.heads, zones).cylinders()
            }
        })
    }

    fn seek(&self, cylinders: u32, full_cylinders: u32) -> Result<SeekTimes, ProfileError> {
        let times = (self.seek_min_ms, self.seek_avg_ms, self.seek_max_ms);
        match (times, &self.seek_points, &self.seek_two_piece) {
            ((Some(min_ms), Some(avg_ms), Some(max_ms)), None, None) => {
                within("seek_min_ms", min_ms, 0.0, 4e3)?;
                within("seek_avg_ms", avg_ms, min_ms, 4e3)?;
                within("seek_max_ms", max_ms, avg_ms, 4e3)?;
                let curve = SeekCurve::solve(cylinders, min_ms * 1e6, avg_ms * 1e6, max_ms * 1e6)?;
                Ok(SeekTimes::new(SeekForm::LeeKatz(curve), cylinders, cylinders))
            }
            ((None, None, None), Some(points), None) => {
                let points = points.iter().map(|p| (f64::from(p.distance_cylinders), p.ms * 1e6)).collect();
                Ok(SeekTimes::new(SeekForm::points(points)?, cylinders, full_cylinders))
            }
            ((None, None, None), None, Some(two)) => {
                let form = SeekForm::two_piece(
                    f64::from(two.below_cylinders),
                    two.short_ms * 1e6,
                    two.short_ms_per_sqrt * 1e6,
                    two.long_ms * 1e6,
                    two.long_ms_per_cylinder * 1e6,
                )?;
                Ok(SeekTimes::new(form, cylinders, full_cylinders))
            }
            _ => Err(ProfileError::Missing {
                problem: "seek times are missing, incomplete or duplicate",
                remedy: "give `seek_min_ms`, `seek_avg_ms` and `seek_max_ms`, or `seek_points`, or `seek_two_piece`",
            }),
        }
    }

    pub(crate) fn options(&self, seed: u64) -> ControllerOptions {
        let sectors = |kib: u32| u64::from(kib) * 1024 / SECTOR_BYTES;
        let overhead_ns = |us: Option<f64>| ns(us.unwrap_or(self.command_overhead_us), 1e3);
        let segment_kib = self.segment_kib.unwrap_or(self.read_ahead_kib.saturating_mul(2));
        ControllerOptions {
            read_overhead_ns: overhead_ns(self.read_overhead_us),
            write_overhead_ns: overhead_ns(self.write_overhead_us),
            hit_overhead_ns: self.hit_overhead_us.map(|us| ns(us, 1e3)),
            completion_overhead_ns: ns(self.completion_overhead_us, 1e3),
            interface_bytes_per_s: self.interface_mb_s * 1e6,
            read_watermark: self.watermark,
            watermark_most_bytes: self.watermark_most_kib.map_or(u64::MAX, |kib| u64::from(kib) * 1024),
            write_data_delay_ns: ns(self.write_data_delay_us, 1e3),
            write_watermark: self.write_watermark.unwrap_or(self.watermark),
            read_ahead_sectors: sectors(self.read_ahead_kib),
            read_ahead_stop: self.read_ahead_stop,
            keep_sectors: sectors(segment_kib - self.read_ahead_kib),
            segments: self.read_segments as usize,
            write_cache: (self.write_cache_kib > 0).then(|| WriteCacheOptions {
                sectors: sectors(self.write_cache_kib),
                runs: self.write_cache_runs as usize,
                destage: self.write_cache_destage,
            }),
            random_phase_seed: (self.rotation == RotationMode::Random).then_some(seed),
            reads_by_track_from_sectors: self.reads_by_track_from_kib.map(sectors),
            writes_by_revolution: self.writes_by_revolution,
            seek_noise_ns: ns(self.seek_noise_ms, 1e6),
            // Other numbers than those of the angles.
            seek_noise_seed: !seed,
        }
    }

    /// Checks every field, and that they fit together.
    pub(crate) fn check(&self) -> Result<(), ProfileError> {
        self.check_fields()?;
        let zones = self.zone_layouts()?;
        // As many cylinders as show whether the curve is possible; solving it for all of a large disk takes long.
        let cylinders = self.full_cylinders(&zones)?.min(2_000);
        self.seek(cylinders, cylinders).map(|_| ())
    }

    /// Checked before the disk is laid out: far too many cylinders would take for ever.
    fn check_cylinders(&self) -> Result<(), ProfileError> {
        let given: Option<Vec<u32>> = self.zones.iter().map(|zone| zone.cylinders).collect();
        let cylinders = match given {
            Some(given) => given.into_iter().map(f64::from).sum(),
            None => self.full_bytes()? as f64 / self.cylinder_bytes()?,
        };
        if !(f64::from(LEAST_CYLINDERS)..=MOST_CYLINDERS).contains(&cylinders) {
            return Err(ProfileError::Cylinders { cylinders, least: LEAST_CYLINDERS, most: MOST_CYLINDERS });
        }
        let (least_bytes, most_bytes) = self.least_and_most_bytes()?;
        if most_bytes < least_bytes {
            return Err(ProfileError::Missing {
                problem: "spare sectors leave less space than 16 cylinders",
                remedy: "lower the zones' `spare_tracks`, `spare_sectors_per_group` or `front_sectors`",
            });
        }
        Ok(())
    }

    fn check_fields(&self) -> Result<(), ProfileError> {
        within("rpm", self.rpm, 60.0, 1e6)?;
        within("heads", f64::from(self.heads), 1.0, 1000.0)?;
        within("number of zones", self.zones.len() as f64, 1.0, 1000.0)?;
        let shared = self.zones.iter().all(|zone| zone.share.is_some() && zone.cylinders.is_none());
        for (zone, number) in self.zones.iter().zip(0..) {
            zone.check(self.heads)
                .map_err(|error| ProfileError::Zone { zone: number, error: Box::new(error) })?;
        }
        if shared {
            let sum = self.zones.iter().filter_map(|zone| zone.share).sum();
            within("sum of zones.share", sum, 0.999_999, 1.000_001)?;
        }
        within("write_settle_ms", self.write_settle_ms, 0.0, 4e3)?;
        within("seek_noise_ms", self.seek_noise_ms, 0.0, self.shortest_seek_ms().max(0.0))?;
        within("reads_by_track_from_kib", f64::from(self.reads_by_track_from_kib.unwrap_or(1)), 1.0, 1e6)?;
        within("head_switch_ms", self.head_switch_ms, 0.0, 4e3)?;
        self.check_skews()?;
        within("command_overhead_us", self.command_overhead_us, 0.0, 1e6)?;
        within("read_overhead_us", self.read_overhead_us.unwrap_or(0.0), 0.0, 1e6)?;
        within("write_overhead_us", self.write_overhead_us.unwrap_or(0.0), 0.0, 1e6)?;
        within("hit_overhead_us", self.hit_overhead_us.unwrap_or(0.0), 0.0, 1e6)?;
        within("write_data_delay_us", self.write_data_delay_us, 0.0, 1e6)?;
        within("completion_overhead_us", self.completion_overhead_us, 0.0, 1e6)?;
        within("interface_mb_s", self.interface_mb_s, 1e-3, 1e6)?;
        within("watermark", self.watermark, 0.0, 1.0)?;
        within("write_watermark", self.write_watermark.unwrap_or(0.0), 0.0, 1.0)?;
        within("read_segments", f64::from(self.read_segments), 1.0, 1e4)?;
        within("write_cache_runs", f64::from(self.write_cache_runs), 1.0, 1e6)?;
        let segment_kib = self.segment_kib.unwrap_or(self.read_ahead_kib.saturating_mul(2));
        within("segment_kib", f64::from(segment_kib), f64::from(self.read_ahead_kib), f64::from(u32::MAX))?;
        self.check_cylinders()
    }

    /// Skews shorter than the switch times would cost a revolution at each track.
    fn check_skews(&self) -> Result<(), ProfileError> {
        let revolution_ms = 60e3 / self.rpm;
        let least_ms = self.shortest_seek_ms().max(self.head_switch_ms);
        let by_zone = self.zones.iter().filter(|zone| zone.head_skew_sectors.is_some()).count();
        let both =
            self.zones.iter().all(|z| z.head_skew_sectors.is_some() == z.cylinder_skew_sectors.is_some());
        match (self.head_skew_ms, self.cylinder_skew_ms) {
            (Some(head_ms), Some(cylinder_ms)) if by_zone == 0 && both => {
                within("head_skew_ms", head_ms, self.head_switch_ms, revolution_ms)?;
                within("cylinder_skew_ms", cylinder_ms, least_ms, revolution_ms)
            }
            (None, None) if by_zone == self.zones.len() && both => self.zones.iter().try_for_each(|zone| {
                let per_track = f64::from(zone.sectors_per_track);
                let sectors = |ms: f64| (ms / revolution_ms * per_track).floor();
                let (head, cylinder) = (zone.head_skew_sectors, zone.cylinder_skew_sectors);
                within(
                    "zones.head_skew_sectors",
                    f64::from(head.unwrap_or(0)),
                    sectors(self.head_switch_ms),
                    per_track,
                )?;
                within(
                    "zones.cylinder_skew_sectors",
                    f64::from(cylinder.unwrap_or(0)),
                    sectors(least_ms),
                    per_track,
                )?;
                within("zones.first_skew_sectors", f64::from(zone.first_skew_sectors), 0.0, per_track)
            }),
            _ => Err(ProfileError::Missing {
                problem: "skews are missing, incomplete or duplicate",
                remedy: "give `head_skew_ms` and `cylinder_skew_ms`, or `head_skew_sectors` and `cylinder_skew_sectors` in every zone",
            }),
        }
    }

    fn shortest_seek_ms(&self) -> f64 {
        let points = self.seek_points.as_ref().and_then(|points| points.first()).map(|point| point.ms);
        let two = self.seek_two_piece.map(|two| two.short_ms + two.short_ms_per_sqrt);
        self.seek_min_ms.or(points).or(two).unwrap_or(0.0)
    }
}

impl ZoneProfile {
    fn layout(&self, cylinders: u32) -> ZoneLayout {
        ZoneLayout {
            cylinders,
            sectors_per_track: self.sectors_per_track,
            spares: Spares {
                sectors_per_track: self.spare_sectors_per_track,
                sectors_per_group: self.spare_sectors_per_group,
                group_cylinders: self.spare_group_cylinders,
                tracks: self.spare_tracks,
                front_sectors: self.front_sectors,
            },
            skew: self.head_skew_sectors.zip(self.cylinder_skew_sectors).map(
                |(head_sectors, cylinder_sectors)| ZoneSkew {
                    first_sectors: self.first_skew_sectors,
                    head_sectors,
                    cylinder_sectors,
                },
            ),
            slipped_tracks: self.slipped_tracks.clone(),
        }
    }

    fn check(&self, heads: u32) -> Result<(), ProfileError> {
        if let Some(share) = self.share {
            within("zones.share", share, 0.0, 1.0)?;
        }
        let per_track = f64::from(self.sectors_per_track);
        within("zones.sectors_per_track", per_track, 1.0, 1e6)?;
        within(
            "zones.spare_sectors_per_track",
            f64::from(self.spare_sectors_per_track),
            0.0,
            per_track - 1.0,
        )?;
        within("zones.spare_group_cylinders", f64::from(self.spare_group_cylinders), 1.0, 1e6)?;
        let data = f64::from(self.sectors_per_track - self.spare_sectors_per_track) * f64::from(heads);
        let group = data * f64::from(self.spare_group_cylinders);
        within("zones.spare_sectors_per_group", f64::from(self.spare_sectors_per_group), 0.0, group - 1.0)?;
        if let Some(cylinders) = self.cylinders {
            within("zones.cylinders", f64::from(cylinders), 1.0, 1e8)?;
            let most = (data * f64::from(cylinders) - 1.0).max(0.0);
            within("zones.front_sectors", f64::from(self.front_sectors), 0.0, most)?;
            let tracks = f64::from(cylinders) * f64::from(heads) - 1.0;
            within("zones.spare_tracks", f64::from(self.spare_tracks), 0.0, tracks)?;
            // Each bad track takes the place of a spare one.
            let bad = self.slipped_tracks.len() as f64;
            within("number of zones.slipped_tracks", bad, 0.0, f64::from(self.spare_tracks))?;
            if !self.slipped_tracks.is_sorted_by(|a, b| a < b) {
                return Err(ProfileError::Missing {
                    problem: "`zones.slipped_tracks` is not in rising order",
                    remedy: "sort it, and give each bad track once",
                });
            }
        }
        Ok(())
    }
}
