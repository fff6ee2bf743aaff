//! Random placement of stripe units on random heads.

use super::layout::Volume;
use super::server_run::ServerError;
use super::split_mix::SplitMix;

/// Place of a stripe unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnitPlace {
    /// The head, among all of the server.
    pub head: u32,
    /// Its first byte there.
    pub offset_bytes: u64,
}

/// Maximum number of placed units.
const MOST_UNITS: u64 = 1 << 24;

/// Places of all heads in random order, each used once.
///
/// Heads are divided into slots of the largest stripe unit; smaller units fill a slot with the next units of the same
/// head. A row of units, one for each head, is on all heads in random order: a read of a row reads one unit from each
/// head.
pub struct Scatter {
    slot_bytes: u64,
    /// By head: its slots in random order.
    slots: Vec<Vec<u32>>,
    /// By head: how many of them are taken.
    taken: Vec<usize>,
    random: SplitMix,
}

impl Scatter {
    /// Places of `heads` heads of `head_bytes` each, for units of at most `largest_unit_bytes`.
    ///
    /// # Errors
    /// Too many slots, or units of 0 bytes.
    pub fn new(heads: u32, head_bytes: u64, largest_unit_bytes: u64, seed: u64) -> Result<Self, ServerError> {
        let slots = head_bytes.checked_div(largest_unit_bytes).filter(|slots| *slots <= MOST_UNITS);
        let Some(slots) = slots else {
            return Err(ServerError::Layout(format!(
                "stripe unit too small to scatter over heads of {head_bytes} bytes (found {largest_unit_bytes} bytes, expected at least {})",
                head_bytes.div_ceil(MOST_UNITS)
            )));
        };
        let mut random = SplitMix(seed);
        let mut of_head = |_| {
            let mut slots: Vec<u32> = (0..slots as u32).collect();
            random.shuffle(&mut slots);
            slots
        };
        let slots = (0..heads).map(&mut of_head).collect();
        Ok(Scatter { slot_bytes: largest_unit_bytes, slots, taken: vec![0; heads as usize], random })
    }

    /// Takes places for `units` units, in whole rows.
    ///
    /// # Errors
    /// Units do not fill the slots, or there is too little room.
    pub fn take(
        &mut self,
        volume: Volume,
        unit_bytes: u64,
        units: u64,
    ) -> Result<Vec<UnitPlace>, ServerError> {
        let wrong = |problem: String| Err(ServerError::Layout(problem));
        if unit_bytes == 0 || !self.slot_bytes.is_multiple_of(unit_bytes) {
            return wrong(format!(
                "stripe unit of {unit_bytes} bytes does not divide the largest one of {} bytes. Use a divisor",
                self.slot_bytes
            ));
        }
        let heads: Vec<u32> = (volume.first_head..volume.first_head + volume.heads).collect();
        let in_slot = self.slot_bytes / unit_bytes;
        let rows = units.div_ceil(u64::from(volume.heads.max(1)));
        let slots = rows.div_ceil(in_slot);
        let free = |head: &u32| {
            let head = *head as usize;
            self.slots.get(head).map_or(0, |slots| slots.len() - self.taken[head]) as u64
        };
        let least = heads.iter().map(free).min().unwrap_or(0);
        if slots > least || rows.saturating_mul(heads.len() as u64) > MOST_UNITS {
            return wrong(format!(
                "{units} scattered stripe units of {unit_bytes} bytes need {slots} free places of {} bytes on each of {} \
                 heads (found {least}). Use larger or more heads, or fewer files",
                self.slot_bytes,
                heads.len()
            ));
        }
        let mut places = Vec::with_capacity((rows * heads.len() as u64) as usize);
        let mut order = heads.clone();
        for row in 0..rows {
            if row.is_multiple_of(in_slot) && row > 0 {
                heads.iter().for_each(|head| self.taken[*head as usize] += 1);
            }
            self.random.shuffle(&mut order);
            places.extend(order.iter().map(|head| {
                let slot = self.slots[*head as usize][self.taken[*head as usize]];
                let offset_bytes = u64::from(slot) * self.slot_bytes + row % in_slot * unit_bytes;
                UnitPlace { head: *head, offset_bytes }
            }));
        }
        if rows > 0 {
            heads.iter().for_each(|head| self.taken[*head as usize] += 1);
        }
        Ok(places)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const VOLUME: Volume = Volume { first_head: 1, heads: 2 };

    #[test]
    fn what_does_not_fit_is_refused() {
        let mut scatter = Scatter::new(4, 64 << 20, 1 << 20, 7).unwrap();
        assert!(scatter.take(VOLUME, 1 << 20, 128).is_ok());
        let error = scatter.take(VOLUME, 1 << 20, 1).unwrap_err().to_string();
        assert!(error.contains("1 free places") && error.contains("(found 0)"), "{error}");
        let error = scatter.take(VOLUME, 300 << 10, 1).unwrap_err().to_string();
        assert!(error.contains("307200 bytes does not divide"), "{error}");
        assert!(Scatter::new(1, 1 << 40, 0, 7).is_err() && Scatter::new(1, 1 << 40, 4096, 7).is_err());
    }

    #[test]
    fn places_are_all_over_the_heads() {
        let mut scatter = Scatter::new(2, 4096 << 20, 1 << 20, 3).unwrap();
        let places = scatter.take(Volume { first_head: 0, heads: 2 }, 1 << 20, 2000).unwrap();
        let mean = |head| {
            let on: Vec<u64> =
                places.iter().filter(|p| p.head == head).map(|p| p.offset_bytes >> 20).collect();
            assert_eq!(on.len(), 1000);
            on.iter().sum::<u64>() as f64 / 1000.0
        };
        // Mean 2048, standard deviation of a mean of 1000 about 32.
        assert!((mean(0) - 2048.0).abs() < 160.0 && (mean(1) - 2048.0).abs() < 160.0);
        let first_is_first = places.chunks(2).filter(|row| row[0].head == 0).count();
        assert!((400..600).contains(&first_is_first), "{first_is_first}");
    }

    proptest! {
        #[test]
        fn nothing_overlaps_and_each_row_is_on_every_head(
            seed: u64,
            classes in prop::collection::vec((0u32..3, 1u32..4, 0u32..4, 0u64..60), 1..5),
        ) {
            let mut scatter = Scatter::new(6, 200 * 4096, 4096, seed).unwrap();
            let mut seen = BTreeSet::new();
            for (first_head, heads, halvings, units) in classes {
                let (volume, unit) = (Volume { first_head, heads }, 4096u64 >> halvings);
                let places = scatter.take(volume, unit, units).unwrap();
                prop_assert_eq!(places.len() as u64, units.div_ceil(u64::from(heads)) * u64::from(heads));
                for row in places.chunks(heads as usize) {
                    let mut on: Vec<u32> = row.iter().map(|place| place.head).collect();
                    on.sort_unstable();
                    prop_assert_eq!(on, (first_head..first_head + heads).collect::<Vec<_>>());
                }
                for place in places {
                    prop_assert!(place.offset_bytes + unit <= 200 * 4096);
                    for byte in (place.offset_bytes..place.offset_bytes + unit).step_by(512) {
                        prop_assert!(seen.insert((place.head, byte)), "{:?} twice", place);
                    }
                }
            }
        }
    }
}
