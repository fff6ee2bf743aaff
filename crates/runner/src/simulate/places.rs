//! Placement of classes' files on simulated heads.

use weir_simulator::server::{ClassLayout, Placement, Scatter, Volume};
use weir_study::{Run, RunClass, RunDevice, SimulatedClass};
use weir_workload::FileSet;

use crate::Error;

/// Seed of the random order of scattered places, separate from that of each class's files.
const SCATTERED: u64 = 0x5ca7_7e4e_d000_0000;

/// A device of a run and its heads.
#[derive(Clone, Copy)]
pub(super) struct Heads<'a> {
    pub(super) device: &'a RunDevice,
    pub(super) volume: Volume,
}

impl Heads<'_> {
    /// Size of one head, in bytes.
    pub(super) fn head_bytes(&self) -> u64 {
        head_bytes(self.device)
    }

    /// Heads that hold the files of a class.
    pub(super) fn of_class(&self, class: &SimulatedClass) -> Volume {
        match class.disks.as_deref() {
            Some([first, ..]) => Volume {
                first_head: self.volume.first_head + first,
                heads: class.disks.as_ref().map_or(0, Vec::len) as u32,
            },
            _ => self.volume,
        }
    }
}

/// Size of a head of a device, in bytes.
pub(super) fn head_bytes(device: &RunDevice) -> u64 {
    (device.size_mib << 20) / u64::from(device.heads.max(1))
}

/// Used bytes of heads.
#[derive(Clone, Copy)]
struct Taken {
    volume: Volume,
    from_bytes: u64,
    end_bytes: u64,
}

impl Taken {
    fn shares_heads(&self, volume: Volume) -> bool {
        let end = |volume: Volume| volume.first_head + volume.heads;
        self.volume.first_head < end(volume) && volume.first_head < end(self.volume)
    }
}

/// First place from a byte on with enough free bytes on all heads of a volume.
fn first_fit(taken: &[Taken], volume: Volume, from_bytes: u64, size_bytes: u64) -> u64 {
    let of_heads = || taken.iter().filter(|taken| taken.shares_heads(volume));
    let is_free = |at: &u64| {
        !of_heads().any(|taken| *at < taken.end_bytes && taken.from_bytes < at.saturating_add(size_bytes))
    };
    let ends = of_heads().map(|taken| taken.end_bytes).filter(|end_bytes| *end_bytes >= from_bytes);
    // The end of the last one always qualifies.
    ends.chain([from_bytes]).filter(is_free).min().unwrap_or(from_bytes)
}

/// Places classes one by one.
pub(super) struct Places<'a> {
    run: &'a Run,
    taken: Vec<Taken>,
    /// Scattered places, by device.
    scatter: Vec<(&'a str, Scatter)>,
}

impl<'a> Places<'a> {
    pub(super) fn new(run: &'a Run) -> Self {
        Places { run, taken: Vec::new(), scatter: Vec::new() }
    }

    /// Lays out the files of a class, by index, on its heads.
    ///
    /// # Errors
    /// The files do not fit.
    pub(super) fn place(
        &mut self,
        number: usize,
        class: &RunClass,
        simulated: &SimulatedClass,
        heads: Heads<'a>,
        files: &FileSet,
    ) -> Result<ClassLayout, Error> {
        let refused =
            |error: &dyn std::fmt::Display| Error::Refused(format!("class {}: {error}", class.name));
        let volume = heads.of_class(simulated);
        let unit = simulated.stripe_unit_kib << 10;
        let sizes = files.sizes_bytes();
        let lay_out = |placement| {
            ClassLayout::new(volume, unit, heads.head_bytes(), sizes, placement)
                .map_err(|error| refused(&error))
        };
        match self.run.placement {
            weir_study::Placement::Scattered => {
                let scatter = self.scatter(heads).map_err(|error| refused(&error))?;
                ClassLayout::scattered(volume, unit, sizes, scatter).map_err(|error| refused(&error))
            }
            weir_study::Placement::Spread => {
                lay_out(Placement::Spread { seed: self.run.seed ^ number as u64 })
            }
            weir_study::Placement::Packed => {
                let size_bytes = lay_out(Placement::Packed { from_bytes: 0 })?.used_bytes();
                let from_bytes = simulated.from_mib.unwrap_or(0) << 20;
                let from_bytes = first_fit(&self.taken, volume, from_bytes, size_bytes);
                self.taken.push(Taken { volume, from_bytes, end_bytes: from_bytes + size_bytes });
                lay_out(Placement::Packed { from_bytes })
            }
        }
    }

    /// Scattered places of a device; slots have the size of the largest stripe unit of its classes.
    fn scatter(&mut self, heads: Heads<'a>) -> Result<&mut Scatter, weir_simulator::server::ServerError> {
        let name = heads.device.name.as_str();
        let at = match self.scatter.iter().position(|(device, _)| *device == name) {
            Some(at) => at,
            None => {
                let of_device = self.run.classes.iter().filter(|class| class.device == name);
                let units = of_device.filter_map(|class| Some(class.simulated.as_ref()?.stripe_unit_kib));
                let slot_bytes = units.max().unwrap_or(1) << 10;
                let seed = self.run.seed ^ SCATTERED ^ self.scatter.len() as u64;
                let count = heads.volume.first_head + heads.volume.heads;
                self.scatter.push((name, Scatter::new(count, heads.head_bytes(), slot_bytes, seed)?));
                self.scatter.len() - 1
            }
        };
        Ok(&mut self.scatter[at].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn volume(first_head: u32, heads: u32) -> Volume {
        Volume { first_head, heads }
    }

    #[test]
    fn packed_classes_lie_one_behind_the_other_from_where_they_may() {
        let mut taken = Vec::new();
        let mut place = |volume, from_bytes, size_bytes| {
            let from_bytes = first_fit(&taken, volume, from_bytes, size_bytes);
            taken.push(Taken { volume, from_bytes, end_bytes: from_bytes + size_bytes });
            from_bytes
        };
        assert_eq!(place(volume(0, 3), 100, 50), 100);
        assert_eq!(place(volume(0, 3), 100, 50), 150);
        // Before them there is room for 100 bytes: on two disks for one and for another, on the third for both.
        assert_eq!(place(volume(0, 1), 0, 60), 0);
        assert_eq!(place(volume(1, 2), 0, 90), 0);
        assert_eq!(place(volume(0, 2), 0, 10), 90);
        assert_eq!(place(volume(0, 1), 0, 30), 60);
        assert_eq!(place(volume(0, 1), 0, 1), 200);
    }

    proptest! {
        #[test]
        fn the_first_fit_is_the_first(
            classes in prop::collection::vec((0u32..3, 1u32..3, 0u64..20, 1u64..12), 1..9),
        ) {
            let mut taken: Vec<Taken> = Vec::new();
            let mut used = std::collections::BTreeSet::new();
            for (first, heads, from, size) in classes {
                let of = |at: u64| (first..first + heads).flat_map(move |head| (at..at + size).map(move |byte| (head, byte)));
                let plain = (from..).find(|at| of(*at).all(|byte| !used.contains(&byte))).unwrap();
                let found = first_fit(&taken, volume(first, heads), from, size);
                prop_assert_eq!(found, plain);
                taken.push(Taken { volume: volume(first, heads), from_bytes: found, end_bytes: found + size });
                used.extend(of(found));
            }
        }
    }
}
