//! Angular position of the platter, in ns of rotation.

use crate::divisor::Divisor;
use crate::geometry::Location;

/// The spindle and the skews. An angle is the time that the platter needs to turn by it, in `0..revolution_ns`.
///
/// At time 0 the angle `phase_ns` is under the heads; all platters turn together, so at time t the angle
/// (t + `phase_ns`) mod `revolution_ns` is.
#[derive(Clone, Copy, Debug)]
pub struct Rotation {
    revolution: Divisor,
    /// Skew of the first sector of the next head's track.
    pub head_skew_ns: u64,
    /// Skew of the first sector of the next cylinder relative to this cylinder's last track.
    pub cylinder_skew_ns: u64,
    /// Tracks in a cylinder.
    pub heads: u32,
    /// The angle under the heads at time 0, less than a revolution.
    pub phase_ns: u64,
}

impl Rotation {
    /// Platters of so many tracks in a cylinder, without skews, with angle 0 under the heads at time 0.
    pub const fn new(revolution_ns: u64, heads: u32) -> Self {
        let revolution = Divisor::new(revolution_ns);
        Self { revolution, head_skew_ns: 0, cylinder_skew_ns: 0, heads, phase_ns: 0 }
    }

    /// One revolution.
    pub const fn revolution_ns(&self) -> u64 {
        self.revolution.get()
    }

    /// The angle at which a track's sector 0 begins.
    pub fn track_start_ns(&self, cylinder: u32, head: u32) -> u64 {
        let per_cylinder = u64::from(self.heads - 1) * self.head_skew_ns + self.cylinder_skew_ns;
        let turned_ns = u64::from(cylinder) * per_cylinder + u64::from(head) * self.head_skew_ns;
        self.revolution.divide(turned_ns).1
    }

    /// The angle at which a sector begins.
    pub fn sector_start_ns(&self, at: &Location) -> u64 {
        let (track_start_ns, sector) = self.track_angle(at);
        let angle = track_start_ns + self.within_track_ns(sector, at.sectors_per_track);
        // Both are less than a revolution, or the first is 0 and the second less than two.
        if angle < self.revolution_ns() { angle } else { angle - self.revolution_ns() }
    }

    /// An angle, and the number of sectors from it: from the start of the track, or from angle 0 if the zone states the
    /// starts of tracks in sectors. Sectors are then counted over more than one revolution.
    pub(crate) fn track_angle(&self, at: &Location) -> (u64, u32) {
        match at.skew_sectors {
            Some(skew) => (0, at.sector + skew),
            None => (self.track_start_ns(at.cylinder, at.head), at.sector),
        }
    }

    /// How long the platter takes from the start of the track's sector 0 to the start of sector `sector` (which may be one
    /// past the last: a whole revolution, and so on).
    pub fn within_track_ns(&self, sector: u32, sectors_per_track: u32) -> u64 {
        u64::from(sector) * self.revolution_ns() / u64::from(sectors_per_track)
    }

    /// How long, from `now_ns`, until the angle `angle_ns` is under the heads: `0..revolution_ns`.
    pub fn wait_ns(&self, now_ns: u64, angle_ns: u64) -> u64 {
        let (_, here) = self.revolution.divide(now_ns + self.phase_ns);
        if angle_ns >= here { angle_ns - here } else { angle_ns + self.revolution_ns() - here }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROTATION: Rotation =
        Rotation { head_skew_ns: 500_000, cylinder_skew_ns: 1_000_000, ..Rotation::new(8_000_000, 2) };

    #[test]
    fn angles_by_hand() {
        assert_eq!(ROTATION.track_start_ns(0, 1), 500_000);
        assert_eq!(ROTATION.track_start_ns(1, 0), 1_500_000);
        // Six cylinders of 1.5 ms each: 9 ms, one revolution and 1 ms.
        assert_eq!(ROTATION.track_start_ns(6, 0), 1_000_000);
        // Sector 25 of 100 is a quarter of a revolution in, 2 ms, plus the start of the track at 1.5 ms.
        let at = Location {
            cylinder: 1,
            head: 0,
            sector: 25,
            sectors_per_track: 100,
            left_on_track: 75,
            skew_sectors: None,
        };
        assert_eq!(ROTATION.sector_start_ns(&at), 3_500_000);
        assert_eq!(ROTATION.within_track_ns(100, 100), 8_000_000);
        // And 0.5 ms of the next revolution.
        let at = Location { cylinder: 1, sector: 90, left_on_track: 10, ..at };
        assert_eq!(ROTATION.sector_start_ns(&at), 700_000);
        // The zone has 30 sectors: 120 sectors of 80 us are a revolution and 1.6 ms.
        let at = Location { skew_sectors: Some(30), ..at };
        assert_eq!(ROTATION.sector_start_ns(&at), 1_600_000);
    }

    #[test]
    fn waiting_is_less_than_a_revolution() {
        assert_eq!(ROTATION.wait_ns(0, 0), 0);
        assert_eq!(ROTATION.wait_ns(1, 0), 7_999_999);
        assert_eq!(ROTATION.wait_ns(8_000_000 * 5 + 3_000_000, 3_500_000), 500_000);
        assert_eq!(ROTATION.wait_ns(3_500_001, 3_500_000), 7_999_999);
        let ahead = Rotation { phase_ns: 1_000_000, ..ROTATION };
        assert_eq!(ahead.wait_ns(3_000_000, 3_500_000), 7_500_000);
    }
}
