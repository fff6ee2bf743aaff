//! Where a sector lies: zones, cylinders, heads, sectors per track.

/// A band of neighbouring cylinders with the same number of sectors on each track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    /// Address of the zone's first sector.
    pub first_sector: u64,
    /// The zone's first cylinder.
    pub first_cylinder: u32,
    /// Cylinders in the zone.
    pub cylinders: u32,
    /// Sectors on each track.
    pub sectors_per_track: u32,
}

/// The place of a sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// Cylinder, 0 at the outer edge.
    pub cylinder: u32,
    /// Head.
    pub head: u32,
    /// Sector on the track.
    pub sector: u32,
    /// Sectors on that track.
    pub sectors_per_track: u32,
}

/// The layout of a disk. Addresses fill a track, then the cylinder's other tracks, then the next cylinder inwards.
#[derive(Clone, Debug)]
pub struct Geometry {
    heads: u32,
    zones: Vec<Zone>,
    sectors: u64,
}

impl Geometry {
    /// Lays out the fewest cylinders that hold `sectors` sectors, divided over the zones by their shares.
    ///
    /// `zones` is a list of (share of the cylinders, sectors per track) from the outer edge inwards; the shares add up to 1.
    /// A small device is thus the whole disk with fewer cylinders, not its outer edge: zones and the arm's full stroke
    /// keep their proportions. A zone may get no cylinder if there are few.
    pub fn fitting(sectors: u64, heads: u32, zones: &[(f64, u32)]) -> Self {
        let mean_track: f64 = zones.iter().map(|(share, per_track)| share * f64::from(*per_track)).sum();
        // Start a little below the estimate, since the rounding of the shares may go either way.
        let estimate = sectors as f64 / (mean_track * f64::from(heads));
        let mut cylinders = ((estimate - zones.len() as f64).max(1.0)) as u32;
        loop {
            let geometry = Self::with_cylinders(cylinders, heads, zones);
            if geometry.sectors >= sectors {
                return geometry;
            }
            cylinders += 1;
        }
    }

    fn with_cylinders(cylinders: u32, heads: u32, shares: &[(f64, u32)]) -> Self {
        let mut zones = Vec::with_capacity(shares.len());
        let (mut first_sector, mut first_cylinder, mut cumulative) = (0, 0, 0.0);
        for (index, (share, sectors_per_track)) in shares.iter().enumerate() {
            cumulative += share;
            let last = index + 1 == shares.len();
            let end = if last { cylinders } else { (cumulative * f64::from(cylinders)).round() as u32 };
            let zone = Zone {
                first_sector,
                first_cylinder,
                cylinders: end.min(cylinders) - first_cylinder,
                sectors_per_track: *sectors_per_track,
            };
            first_cylinder += zone.cylinders;
            first_sector += u64::from(zone.cylinders) * u64::from(heads) * u64::from(*sectors_per_track);
            if zone.cylinders > 0 {
                zones.push(zone);
            }
        }
        Self { heads, zones, sectors: first_sector }
    }

    /// Heads, that is tracks in a cylinder.
    pub fn heads(&self) -> u32 {
        self.heads
    }

    /// All cylinders.
    pub fn cylinders(&self) -> u32 {
        self.zones.last().map_or(0, |zone| zone.first_cylinder + zone.cylinders)
    }

    /// All sectors; at least as many as were asked for.
    pub fn sectors(&self) -> u64 {
        self.sectors
    }

    /// The zones from the outer edge inwards.
    pub fn zones(&self) -> &[Zone] {
        &self.zones
    }

    /// The place of `sector`, which must be less than [`sectors`](Self::sectors).
    pub fn locate(&self, sector: u64) -> Location {
        let zone = &self.zones[self.zones.partition_point(|zone| zone.first_sector <= sector) - 1];
        let per_track = u64::from(zone.sectors_per_track);
        let within = sector - zone.first_sector;
        let track = within / per_track;
        Location {
            cylinder: zone.first_cylinder + (track / u64::from(self.heads)) as u32,
            head: (track % u64::from(self.heads)) as u32,
            sector: (within % per_track) as u32,
            sectors_per_track: zone.sectors_per_track,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_zones_by_hand() {
        // 100 sectors with 2 heads: a pair of cylinders holds 2 x (10 + 6) = 32, six cylinders 96, eight 128;
        // seven round to 4 outer and 3 inner: 4 x 20 + 3 x 12 = 116.
        let geometry = Geometry::fitting(100, 2, &[(0.5, 10), (0.5, 6)]);
        assert_eq!((geometry.cylinders(), geometry.sectors()), (7, 116));
        let at = |sector| {
            let l = geometry.locate(sector);
            (l.cylinder, l.head, l.sector, l.sectors_per_track)
        };
        assert_eq!(at(0), (0, 0, 0, 10));
        assert_eq!(at(19), (0, 1, 9, 10));
        assert_eq!(at(20), (1, 0, 0, 10));
        assert_eq!(at(80), (4, 0, 0, 6));
        assert_eq!(at(115), (6, 1, 5, 6));
    }

    #[test]
    fn a_device_smaller_than_its_zones_still_fits() {
        let geometry = Geometry::fitting(5, 1, &[(0.1, 4), (0.8, 4), (0.1, 4)]);
        assert!(geometry.sectors() >= 5);
        assert_eq!(geometry.locate(4).sector, 0);
    }
}
