//! Profile file of a disk.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::disk::QueueOrder;
use crate::read_ahead::ReadAheadStop;
use crate::write_cache::Destage;

/// Parameters of a disk, as in a data sheet.
///
/// The size is `capacity_gb` with each zone's share of the cylinders, or the sum of each zone's cylinders. Seek times
/// have one of three forms: `seek_min_ms`, `seek_avg_ms` and `seek_max_ms`, or `seek_points`, or `seek_two_piece`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DiskProfile {
    /// One line for people.
    pub description: String,
    /// Capacity of the real disk in 10^9 bytes: no larger device can be made. Absent if the zones have `cylinders`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_gb: Option<f64>,
    /// Revolutions a minute.
    pub rpm: f64,
    /// Whether the platter's angle is followed, or drawn for each access.
    #[serde(default)]
    pub rotation: RotationMode,
    /// Heads, that is tracks in a cylinder.
    pub heads: u32,
    /// Zones from the outer edge inwards; their shares add up to 1, or all of them have `cylinders`.
    pub zones: Vec<ZoneProfile>,
    /// Seek to the next cylinder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seek_min_ms: Option<f64>,
    /// Mean seek of a read over all pairs of cylinders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seek_avg_ms: Option<f64>,
    /// Seek across all cylinders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seek_max_ms: Option<f64>,
    /// Measured seek times; lines between them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seek_points: Option<Vec<SeekPointProfile>>,
    /// A square root for short seeks and a line for long ones (Ruemmler and Wilkes 1994).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seek_two_piece: Option<TwoPieceProfile>,
    /// By how much a seek may take longer or shorter than the curve, each deviation as likely (drawn from the run's seed);
    /// at most the shortest seek. Without it seeks over one distance take the same time.
    #[serde(default, skip_serializing_if = "is_zero_ms")]
    pub seek_noise_ms: f64,
    /// Additional seek time of a write over more than one cylinder.
    #[serde(default)]
    pub write_settle_ms: f64,
    /// Changing to another head.
    pub head_switch_ms: f64,
    /// Delay of the start of the next head's track; at least `head_switch_ms`, otherwise sequential streams lose
    /// revolutions. Absent if the zones have skews in sectors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_skew_ms: Option<f64>,
    /// How much later the next cylinder begins; at least the shortest seek and `head_switch_ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cylinder_skew_ms: Option<f64>,
    /// Controller time for each command; overlaps with the work on earlier ones.
    pub command_overhead_us: f64,
    /// The same for reads, if it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_overhead_us: Option<f64>,
    /// The same for writes, if it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_overhead_us: Option<f64>,
    /// From when the arm starts for a write until its data begin to flow into the buffer.
    #[serde(default)]
    pub write_data_delay_us: f64,
    /// `command_overhead_us` for reads from the buffer, if it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hit_overhead_us: Option<f64>,
    /// From the end of the transfer to the completion at the host.
    #[serde(default)]
    pub completion_overhead_us: f64,
    /// How fast data pass between buffer and host, in 10^6 bytes a second.
    pub interface_mb_s: f64,
    /// How much of a request must be in the buffer before the other side (host or platter) starts to take it, 0 to 1.
    #[serde(default)]
    pub watermark: f64,
    /// The same for writes, if it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_watermark: Option<f64>,
    /// Requests longer than this count as being so long for the watermarks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watermark_most_kib: Option<u32>,
    /// Whether a read begins with whichever wanted sector of the track comes first.
    #[serde(default)]
    pub read_on_arrival: bool,
    /// Reads of at least this size are read track by track: each track as a whole, beginning with whichever sector comes
    /// first, and the host gets a track when all of it has been read. A read that begins or ends within a track takes the
    /// whole revolution of that track. Absent: reads take only what is asked for, and the host gets it as `watermark` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reads_by_track_from_kib: Option<u32>,
    /// Whether a write of more than a track to the platter takes a revolution for each track, without time for changes of
    /// tracks, and a revolution more if it begins or ends within a track. Writes of a track or less, and writes from
    /// the write cache, are not affected.
    #[serde(default, skip_serializing_if = "is_false")]
    pub writes_by_revolution: bool,
    /// How far the disk reads ahead after a read; 0 for not at all.
    #[serde(default)]
    pub read_ahead_kib: u32,
    /// Where reading ahead ends at the latest: when the segment is full, or already at the end of the track.
    #[serde(default)]
    pub read_ahead_stop: ReadAheadStop,
    /// Segments of the read buffer.
    #[serde(default = "one")]
    pub read_segments: u32,
    /// Size of a segment, at least `read_ahead_kib`; default twice `read_ahead_kib`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment_kib: Option<u32>,
    /// Size of the write cache: writes complete when they are there. 0 for none.
    #[serde(default)]
    pub write_cache_kib: u32,
    /// Separate runs of sectors that the write cache holds.
    #[serde(default = "default_write_runs")]
    pub write_cache_runs: u32,
    /// When the write cache is written to the platter.
    #[serde(default)]
    pub write_cache_destage: Destage,
    /// Order of the disk's own queue.
    #[serde(default)]
    pub queue_order: QueueOrder,
}

fn one() -> u32 {
    1
}

fn default_write_runs() -> u32 {
    64
}

/// Where the platter is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RotationMode {
    /// Followed exactly.
    #[default]
    Exact,
    /// At an angle drawn for each access, each as likely: half a revolution's wait on average.
    Random,
}

/// One zone of a disk.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ZoneProfile {
    /// Share of the cylinders, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// Or the cylinders outright.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cylinders: Option<u32>,
    /// Sectors of 512 bytes on each track, spare ones too.
    pub sectors_per_track: u32,
    /// Of these, spare ones at the end of each track.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub spare_sectors_per_track: u32,
    /// Spare sectors at the end of each `spare_group_cylinders` cylinders.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub spare_sectors_per_group: u32,
    /// Cylinders in a group that shares spare sectors.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub spare_group_cylinders: u32,
    /// Spare tracks at the end of the zone.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub spare_tracks: u32,
    /// Sectors before the zone's first address.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub front_sectors: u32,
    /// How many sectors later the next head's track begins, where that differs from zone to zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_skew_sectors: Option<u32>,
    /// Skew of the next cylinder, in sectors. Requires `head_skew_sectors`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cylinder_skew_sectors: Option<u32>,
    /// Angle of the zone's first track, in sectors.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub first_skew_sectors: u32,
    /// Bad tracks that addresses skip, counted from the zone's start, rising. Spare tracks take their place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slipped_tracks: Vec<u32>,
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero_ms(value: &f64) -> bool {
    *value == 0.0
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_false(value: &bool) -> bool {
    !*value
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(value: &u32) -> bool {
    *value == 0
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_one(value: &u32) -> bool {
    *value == 1
}

/// One measured seek time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SeekPointProfile {
    /// Distance in cylinders of the whole disk.
    pub distance_cylinders: u32,
    /// Time, settling included.
    pub ms: f64,
}

/// A seek curve of two pieces: `short_ms + short_ms_per_sqrt sqrt(d)` for d < `below_cylinders`, and
/// `long_ms + long_ms_per_cylinder d` from there.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TwoPieceProfile {
    /// Where the second piece begins.
    pub below_cylinders: u32,
    /// Constant of the first piece.
    pub short_ms: f64,
    /// Its factor of the square root.
    pub short_ms_per_sqrt: f64,
    /// Constant of the second piece.
    pub long_ms: f64,
    /// Its slope.
    pub long_ms_per_cylinder: f64,
}
