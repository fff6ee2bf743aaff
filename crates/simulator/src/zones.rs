//! Zones of a zoned device: written in order, reset as a whole, never cleaned.

use crate::device::{IoRequest, RequestError};
use crate::flash_options::UNIT_BYTES;

/// Zones, each of one block on every die. At the start all are full.
#[derive(Clone, Debug)]
pub(crate) struct Zones {
    zone_units: u64,
    units: u64,
    /// Units of each zone that were written.
    written: Vec<u64>,
    /// Resets of each zone.
    resets: Vec<u32>,
}

impl Zones {
    /// Zones of `zone_units` (at least 1); the last one may be smaller.
    pub fn new(units: u64, zone_units: u64) -> Self {
        let count = units.div_ceil(zone_units) as usize;
        let mut zones = Self { zone_units, units, written: vec![0; count], resets: vec![0; count] };
        for zone in 0..count {
            zones.written[zone] = zones.size_units(zone);
        }
        zones
    }

    fn size_units(&self, zone: usize) -> u64 {
        self.zone_units.min(self.units - zone as u64 * self.zone_units)
    }

    pub fn zone_bytes(&self) -> u64 {
        self.zone_units * UNIT_BYTES
    }

    /// First byte that the zone of a byte can be written at.
    pub fn write_pointer(&self, offset_bytes: u64) -> u64 {
        let zone = (offset_bytes / self.zone_bytes()).min(self.written.len() as u64 - 1);
        (zone * self.zone_units + self.written[zone as usize]) * UNIT_BYTES
    }

    /// Whether a unit was written since its zone's reset.
    pub fn is_written(&self, unit: u64) -> bool {
        unit % self.zone_units < self.written[(unit / self.zone_units) as usize]
    }

    /// Takes a write, and moves the write pointer.
    pub fn write(&mut self, request: &IoRequest) -> Result<(), RequestError> {
        let IoRequest { offset_bytes, size_bytes, .. } = *request;
        let pointer_bytes = self.write_pointer(offset_bytes);
        if offset_bytes != pointer_bytes {
            return Err(RequestError::NotAtWritePointer { offset_bytes, pointer_bytes });
        }
        let size_units = u64::from(size_bytes) / UNIT_BYTES;
        let zone = (offset_bytes / self.zone_bytes()) as usize;
        let is_whole = u64::from(size_bytes).is_multiple_of(UNIT_BYTES);
        if !is_whole || self.written[zone] + size_units > self.size_units(zone) {
            let left_bytes = (self.size_units(zone) - self.written[zone]) * UNIT_BYTES;
            return Err(RequestError::NotInZone { offset_bytes, size_bytes, left_bytes });
        }
        self.written[zone] += size_units;
        Ok(())
    }

    /// Resets the zones that lie in a range altogether; returns how many units were written in each.
    pub fn reset(&mut self, from_bytes: u64, end_bytes: u64) -> Vec<u64> {
        let mut reset = Vec::new();
        for zone in from_bytes.div_ceil(self.zone_bytes()) as usize..self.written.len() {
            if (zone as u64 * self.zone_units + self.size_units(zone)) * UNIT_BYTES > end_bytes {
                break;
            }
            let written = std::mem::take(&mut self.written[zone]);
            if written > 0 {
                self.resets[zone] += 1;
                reset.push(written);
            }
        }
        reset
    }

    /// The fewest and the most resets of a zone.
    pub fn wear(&self) -> (u32, u32) {
        let resets = || self.resets.iter().copied();
        (resets().min().unwrap_or(0), resets().max().unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use weir_vocabulary::Op;

    use super::*;

    fn write(offset_bytes: u64, size_bytes: u32) -> IoRequest {
        IoRequest { tag: 0, op: Op::Write, offset_bytes, size_bytes }
    }

    #[test]
    fn zones_are_written_in_order_and_reset_as_a_whole() {
        // 10 units in zones of 4: the last one has 2.
        let mut zones = Zones::new(10, 4);
        assert_eq!(zones.write_pointer(0), 4 * 4096);
        let elsewhere = RequestError::NotAtWritePointer { offset_bytes: 0, pointer_bytes: 16_384 };
        assert_eq!(zones.write(&write(0, 4096)), Err(elsewhere));
        // The byte behind a full zone is in the next one, which is full too.
        let next = RequestError::NotAtWritePointer { offset_bytes: 16_384, pointer_bytes: 32_768 };
        assert_eq!(zones.write(&write(16_384, 4096)), Err(next));
        // Not the second zone altogether.
        assert_eq!(zones.reset(0, 32_767), [4]);
        assert!(!zones.is_written(0) && zones.is_written(4));
        zones.write(&write(0, 8192)).unwrap();
        assert!(zones.is_written(1) && !zones.is_written(2));
        assert_eq!(zones.write_pointer(16_383), 8192);
        let left = RequestError::NotInZone { offset_bytes: 8192, size_bytes: 12_288, left_bytes: 8192 };
        assert_eq!(zones.write(&write(8192, 12_288)), Err(left));
        let half = RequestError::NotInZone { offset_bytes: 8192, size_bytes: 512, left_bytes: 8192 };
        assert_eq!(zones.write(&write(8192, 512)), Err(half));
        zones.write(&write(8192, 8192)).unwrap();
        assert_eq!(
            zones.write(&write(8192, 4096)),
            Err(RequestError::NotAtWritePointer { offset_bytes: 8192, pointer_bytes: 16_384 })
        );
        // An empty zone is not reset again.
        assert_eq!(zones.reset(0, 40_960), [4, 4, 2]);
        assert_eq!(zones.reset(0, 40_960), [0_u64; 0]);
        assert_eq!(zones.wear(), (1, 2));
    }
}
