//! Disk geometry: zones, cylinders, heads, sectors per track, spares.

use crate::divisor::Divisor;

/// Spare space of a zone. Addresses skip it; the sectors still pass under the head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spares {
    /// Sectors at the end of each track.
    pub sectors_per_track: u32,
    /// Sectors at the end of each group of cylinders.
    pub sectors_per_group: u32,
    /// Cylinders in such a group; at least 1 where `sectors_per_group` is above 0.
    pub group_cylinders: u32,
    /// Whole tracks at the end of the zone.
    pub tracks: u32,
    /// Sectors before the zone's first address.
    pub front_sectors: u32,
}

/// Where the tracks of a zone begin, in sectors of that zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneSkew {
    /// Angle of the zone's first track.
    pub first_sectors: u32,
    /// From the start of a track to that of the next head's.
    pub head_sectors: u32,
    /// From the start of a cylinder's last track to that of the next cylinder's first.
    pub cylinder_sectors: u32,
}

/// A zone in the description of a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneLayout {
    /// Cylinders in the zone.
    pub cylinders: u32,
    /// Sectors that pass under the head in a revolution, spare ones too.
    pub sectors_per_track: u32,
    /// Reserved sectors.
    pub spares: Spares,
    /// Where its tracks begin, if that is not the same time for all zones.
    pub skew: Option<ZoneSkew>,
    /// Bad tracks that addresses skip, counted from the zone's first track, rising.
    pub slipped_tracks: Vec<u32>,
}

/// A band of neighbouring cylinders with the same number of sectors on each track.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    /// Address of the zone's first sector.
    pub first_sector: u64,
    /// Address after the zone's last sector.
    pub end_sector: u64,
    /// The zone's first cylinder.
    pub first_cylinder: u32,
    /// Cylinders in the zone.
    pub cylinders: u32,
    /// Sectors that pass under the head in a revolution, spare ones too.
    pub sectors_per_track: u32,
    /// Reserved sectors.
    pub spares: Spares,
    /// Where its tracks begin, if that is not the same time for all zones.
    pub skew: Option<ZoneSkew>,
    /// For each bad track that addresses skip, the first address (within the zone) after it, in ascending order.
    pub slipped: Vec<u64>,
    /// Sectors with an address on a track.
    data_per_track: Divisor,
    /// Sectors with an address in a group of cylinders that shares spares; 0 if there are no groups.
    data_per_group: Divisor,
    /// Sectors of a cylinder's tracks, without what its group reserves.
    data_per_cylinder: Divisor,
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
    /// Sectors on that track, spare ones too.
    pub sectors_per_track: u32,
    /// This sector and those after it on the same track whose addresses follow.
    pub left_on_track: u32,
    /// Angle of the track's sector 0, in sectors, if the zone states it.
    pub skew_sectors: Option<u32>,
}

/// The layout of a disk. Addresses fill a track, then the cylinder's other tracks, then the next cylinder inwards.
#[derive(Clone, Debug)]
pub struct Geometry {
    heads: Divisor,
    zones: Vec<Zone>,
    sectors: u64,
    /// For each 2^`index_shift` sectors, the zone of the first of them.
    zone_index: Vec<u16>,
    index_shift: u32,
}

/// About how many entries the index of zones has.
const INDEX_ENTRIES: u64 = 256;

impl Geometry {
    /// The disk with exactly these zones, from the outer edge inwards. Zones without a sector are left out.
    pub fn laid_out(heads: u32, layouts: &[ZoneLayout]) -> Self {
        let mut zones = Vec::with_capacity(layouts.len());
        let (mut first_sector, mut first_cylinder) = (0, 0);
        for layout in layouts {
            let sectors = layout.sectors(heads);
            if sectors > 0 {
                zones.push(Zone {
                    first_sector,
                    end_sector: first_sector + sectors,
                    first_cylinder,
                    cylinders: layout.cylinders,
                    sectors_per_track: layout.sectors_per_track,
                    spares: layout.spares,
                    skew: layout.skew,
                    slipped: layout.slipped_addresses(),
                    data_per_track: Divisor::new(u64::from(layout.data_per_track())),
                    data_per_group: Divisor::new(layout.data_per_group(heads)),
                    data_per_cylinder: Divisor::new(u64::from(heads) * u64::from(layout.data_per_track())),
                });
            }
            first_cylinder += layout.cylinders;
            first_sector += sectors;
        }
        let index_shift = (first_sector / INDEX_ENTRIES).max(1).ilog2();
        let mut zone = 0;
        let zone_index = (0..=first_sector >> index_shift)
            .map(|entry| {
                while zone + 1 < zones.len() && zones[zone + 1].first_sector <= entry << index_shift {
                    zone += 1;
                }
                zone as u16
            })
            .collect();
        let heads = Divisor::new(u64::from(heads));
        Self { heads, zones, sectors: first_sector, zone_index, index_shift }
    }

    /// Lays out the fewest cylinders that hold `sectors` sectors, divided over the zones by their shares.
    ///
    /// `zones` is a list of (share of the cylinders, sectors per track) from the outer edge inwards; the shares add up to 1.
    /// A small device is thus the whole disk with fewer cylinders, not its outer edge: zones and the arm's full stroke
    /// keep their proportions. A zone may get no cylinder if there are few.
    pub fn fitting(sectors: u64, heads: u32, zones: &[(f64, u32)]) -> Self {
        let plain = |per_track| ZoneLayout::plain(0, per_track);
        let zones: Vec<_> = zones.iter().map(|(share, per_track)| (*share, plain(*per_track))).collect();
        Self::fitting_layouts(sectors, heads, &zones)
    }

    /// As [`fitting`](Self::fitting), for zones with spares. The layouts' own numbers of cylinders are not used.
    pub fn fitting_layouts(sectors: u64, heads: u32, zones: &[(f64, ZoneLayout)]) -> Self {
        let mean_track: f64 =
            zones.iter().map(|(share, zone)| share * f64::from(zone.data_per_track().max(1))).sum();
        // Start a little below the estimate, since the rounding of the shares may go either way.
        let estimate = sectors as f64 / (mean_track * f64::from(heads));
        let mut cylinders = ((estimate - zones.len() as f64).max(1.0)) as u32;
        loop {
            let geometry = Self::laid_out(heads, &Self::divide(cylinders, zones));
            if geometry.sectors >= sectors {
                return geometry;
            }
            cylinders += 1;
        }
    }

    fn divide(cylinders: u32, zones: &[(f64, ZoneLayout)]) -> Vec<ZoneLayout> {
        let (mut first_cylinder, mut cumulative) = (0, 0.0);
        let mut layouts = Vec::with_capacity(zones.len());
        for (index, (share, zone)) in zones.iter().enumerate() {
            cumulative += share;
            let last = index + 1 == zones.len();
            let end = if last { cylinders } else { (cumulative * f64::from(cylinders)).round() as u32 };
            let end = end.clamp(first_cylinder, cylinders);
            layouts.push(ZoneLayout { cylinders: end - first_cylinder, ..zone.clone() });
            first_cylinder = end;
        }
        layouts
    }

    /// Heads, that is tracks in a cylinder.
    pub fn heads(&self) -> u32 {
        self.heads.get() as u32
    }

    /// All cylinders.
    pub fn cylinders(&self) -> u32 {
        self.zones.last().map_or(0, |zone| zone.first_cylinder + zone.cylinders)
    }

    /// All sectors that have an address.
    pub fn sectors(&self) -> u64 {
        self.sectors
    }

    /// The zones from the outer edge inwards.
    pub fn zones(&self) -> &[Zone] {
        &self.zones
    }

    fn zone_of(&self, sector: u64) -> &Zone {
        let mut index = usize::from(self.zone_index[(sector >> self.index_shift) as usize]);
        while self.zones[index].end_sector <= sector {
            index += 1;
        }
        &self.zones[index]
    }

    /// The cylinder of `sector`, which must be less than [`sectors`](Self::sectors): that of its [place](Self::locate).
    pub fn cylinder(&self, sector: u64) -> u32 {
        let zone = self.zone_of(sector);
        let (before, rest) = zone.within_group(sector - zone.first_sector);
        zone.first_cylinder + before + zone.data_per_cylinder.divide(rest).0 as u32
    }

    /// The place of `sector`, which must be less than [`sectors`](Self::sectors).
    // Most callers need some of the fields only; the others are then not computed (`make bench-simulator`: 1.03 times the rate).
    #[inline(always)]
    pub fn locate(&self, sector: u64) -> Location {
        let zone = self.zone_of(sector);
        let address = sector - zone.first_sector;
        let (mut in_zone, rest) = zone.within_group(address);
        let mut left = zone.end_sector - sector;
        if let Some(next) = zone.slipped.get(zone.slipped_before(address)) {
            left = left.min(next - address);
        }
        if zone.data_per_group.get() > 0 {
            left = left.min(zone.data_per_group.get() - rest);
        }
        let (track, on_track) = zone.data_per_track.divide(rest);
        let (cylinders, head) = self.heads.divide(track);
        in_zone += cylinders as u32;
        Location {
            cylinder: zone.first_cylinder + in_zone,
            head: head as u32,
            sector: on_track as u32,
            sectors_per_track: zone.sectors_per_track,
            left_on_track: left.min(zone.data_per_track.get() - on_track) as u32,
            skew_sectors: zone.skew.map(|skew| {
                let per_cylinder =
                    (self.heads.get() - 1) * u64::from(skew.head_sectors) + u64::from(skew.cylinder_sectors);
                let start = u64::from(skew.first_sectors)
                    + u64::from(in_zone) * per_cylinder
                    + head * u64::from(skew.head_sectors);
                (start % u64::from(zone.sectors_per_track)) as u32
            }),
        }
    }
}

impl Zone {
    /// Bad tracks that an address of the zone has skipped.
    fn slipped_before(&self, address: u64) -> usize {
        self.slipped.partition_point(|first| *first <= address)
    }

    /// Cylinders of the groups before that of an address of the zone, and its sector within the group. Without groups the zone
    /// is one.
    fn within_group(&self, address: u64) -> (u32, u64) {
        let skipped = self.slipped_before(address) as u64 * self.data_per_track.get();
        let sector = address + u64::from(self.spares.front_sectors) + skipped;
        if self.data_per_group.get() == 0 {
            return (0, sector);
        }
        let (group, rest) = self.data_per_group.divide(sector);
        (group as u32 * self.spares.group_cylinders, rest)
    }
}

impl ZoneLayout {
    /// A zone without spares.
    pub fn plain(cylinders: u32, sectors_per_track: u32) -> Self {
        Self {
            cylinders,
            sectors_per_track,
            spares: Spares::default(),
            skew: None,
            slipped_tracks: Vec::new(),
        }
    }

    /// For each slipped track the first address after it.
    fn slipped_addresses(&self) -> Vec<u64> {
        let per_track = u64::from(self.data_per_track());
        let after = |(before, track): (usize, &u32)| {
            let places = u64::from(*track).saturating_sub(before as u64) * per_track;
            places.saturating_sub(u64::from(self.spares.front_sectors))
        };
        self.slipped_tracks.iter().enumerate().map(after).collect()
    }

    /// Sectors with an address on a whole track.
    pub fn data_per_track(&self) -> u32 {
        self.sectors_per_track.saturating_sub(self.spares.sectors_per_track)
    }

    fn data_per_group(&self, heads: u32) -> u64 {
        let Spares { sectors_per_group, group_cylinders, .. } = self.spares;
        if sectors_per_group == 0 || group_cylinders == 0 {
            return 0;
        }
        let all = u64::from(group_cylinders) * u64::from(heads) * u64::from(self.data_per_track());
        all.saturating_sub(u64::from(sectors_per_group))
    }

    /// Sectors with an address.
    pub fn sectors(&self, heads: u32) -> u64 {
        let per_cylinder = u64::from(heads) * u64::from(self.data_per_track());
        let spares = &self.spares;
        let group = self.data_per_group(heads);
        let data = if group == 0 {
            u64::from(self.cylinders) * per_cylinder
        } else {
            let rest = u64::from(self.cylinders % spares.group_cylinders) * per_cylinder;
            u64::from(self.cylinders / spares.group_cylinders) * group
                + rest.saturating_sub(u64::from(spares.sectors_per_group))
        };
        let free =
            u64::from(spares.tracks) * u64::from(self.data_per_track()) + u64::from(spares.front_sectors);
        data.saturating_sub(free)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(geometry: &Geometry, sector: u64) -> (u32, u32, u32, u32) {
        let l = geometry.locate(sector);
        (l.cylinder, l.head, l.sector, l.sectors_per_track)
    }

    #[test]
    fn two_zones_by_hand() {
        // 100 sectors with 2 heads: a pair of cylinders holds 2 x (10 + 6) = 32, six cylinders 96, eight 128;
        // seven round to 4 outer and 3 inner: 4 x 20 + 3 x 12 = 116.
        let geometry = Geometry::fitting(100, 2, &[(0.5, 10), (0.5, 6)]);
        assert_eq!((geometry.cylinders(), geometry.sectors()), (7, 116));
        assert_eq!(at(&geometry, 0), (0, 0, 0, 10));
        assert_eq!(at(&geometry, 19), (0, 1, 9, 10));
        assert_eq!(at(&geometry, 20), (1, 0, 0, 10));
        assert_eq!(at(&geometry, 80), (4, 0, 0, 6));
        assert_eq!(at(&geometry, 115), (6, 1, 5, 6));
    }

    #[test]
    fn a_device_smaller_than_its_zones_still_fits() {
        let geometry = Geometry::fitting(5, 1, &[(0.1, 4), (0.8, 4), (0.1, 4)]);
        assert!(geometry.sectors() >= 5);
        assert_eq!(geometry.locate(4).sector, 0);
    }

    #[test]
    fn addresses_skip_what_is_spare() {
        // 5 cylinders of 2 tracks with 10 sectors, one of them spare: 18 a cylinder; groups of 2 cylinders lose 4 more: 32
        // a group, and the odd cylinder 14. Then one track (9) and 3 sectors at the front are kept free.
        let spares = Spares {
            sectors_per_track: 1,
            sectors_per_group: 4,
            group_cylinders: 2,
            tracks: 1,
            front_sectors: 3,
        };
        let zone = ZoneLayout { spares, ..ZoneLayout::plain(5, 10) };
        let geometry = Geometry::laid_out(2, &[zone.clone(), zone]);
        assert_eq!(geometry.sectors(), 2 * (32 + 32 + 14 - 9 - 3));
        assert_eq!(at(&geometry, 0), (0, 0, 3, 10));
        assert_eq!(geometry.locate(0).left_on_track, 6);
        // The group's last address is its 32nd sector: 28 on the tracks before, the fifth of its cylinder 1, head 1.
        assert_eq!((at(&geometry, 28), geometry.locate(28).left_on_track), ((1, 1, 4, 10), 1));
        assert_eq!(at(&geometry, 29), (2, 0, 0, 10));
        assert_eq!(at(&geometry, 66), (5, 0, 3, 10));
    }

    #[test]
    fn every_address_has_its_own_place() {
        let spares = Spares { sectors_per_track: 1, tracks: 3, front_sectors: 12, ..Spares::default() };
        let grouped = Spares { sectors_per_group: 5, group_cylinders: 3, tracks: 2, ..Spares::default() };
        let first = ZoneLayout { spares, slipped_tracks: vec![3, 4, 9], ..ZoneLayout::plain(7, 9) };
        let last = ZoneLayout { spares: grouped, ..ZoneLayout::plain(9, 5) };
        let zones = [first, ZoneLayout::plain(4, 8), last];
        let geometry = Geometry::laid_out(3, &zones);
        let places: Vec<_> = (0..geometry.sectors()).map(|sector| geometry.locate(sector)).collect();
        assert!(places.is_sorted_by(|a, b| (a.cylinder, a.head, a.sector) < (b.cylinder, b.head, b.sector)));
        for (sector, place) in places.iter().enumerate() {
            assert_eq!(geometry.cylinder(sector as u64), place.cylinder, "sector {sector}");
            let last = &places[sector + place.left_on_track as usize - 1];
            assert_eq!(
                (last.cylinder, last.head, last.sector),
                (place.cylinder, place.head, place.sector + place.left_on_track - 1)
            );
        }
    }

    #[test]
    fn bad_tracks_are_skipped_and_tracks_begin_where_the_zone_says() {
        // Two heads, 10 sectors; tracks 1 and 2 are bad, two spare tracks at the end take their place: 40 addresses.
        let skew = ZoneSkew { first_sectors: 1, head_sectors: 4, cylinder_sectors: 7 };
        let zone = ZoneLayout {
            spares: Spares { tracks: 2, ..Spares::default() },
            skew: Some(skew),
            slipped_tracks: vec![1, 2],
            ..ZoneLayout::plain(3, 10)
        };
        let geometry = Geometry::laid_out(2, &[zone]);
        let place = |sector| {
            let l = geometry.locate(sector);
            (l.cylinder, l.head, l.sector, l.left_on_track, l.skew_sectors)
        };
        assert_eq!(geometry.sectors(), 40);
        assert_eq!(place(2), (0, 0, 2, 8, Some(1)));
        // Cylinder 1 begins 4 + 7 sectors later, its second head 4 more; cylinder 2 with that and 7 more.
        assert_eq!(place(10), (1, 1, 0, 10, Some(6)));
        assert_eq!(place(25), (2, 0, 5, 5, Some(3)));
        assert_eq!(place(39), (2, 1, 9, 1, Some(7)));
    }
}
