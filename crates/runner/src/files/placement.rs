//! Placement of each class's files on this host.

use std::path::{Path, PathBuf};

use weir_study::{Engine, Run, RunClass};
use weir_workload::{FileSet, Workload};

/// Files of a class and their place.
pub(crate) struct Placement {
    /// The class.
    pub(crate) class: RunClass,
    /// Workload of the class.
    pub(crate) recipe: Workload,
    /// Its files.
    pub(crate) files: FileSet,
    /// A folder of files, or a device node.
    pub(crate) path: PathBuf,
    /// On a raw device: the first byte of each file. Empty on a file system.
    pub(crate) offsets_bytes: Vec<u64>,
}

impl Placement {
    /// Whether the files are ranges of a raw device.
    pub(crate) fn is_raw(&self) -> bool {
        !self.offsets_bytes.is_empty()
    }
}

/// Places the classes of a run that have files. `target` gives the mount point of a device, or its node where it is raw.
pub(crate) fn all(run: &Run, raw: bool, target: impl Fn(&str) -> PathBuf) -> Vec<Placement> {
    let mut used: std::collections::BTreeMap<&str, u64> = std::collections::BTreeMap::new();
    run.classes
        .iter()
        // The access benchmark writes its own files.
        .filter(|class| class.engine != Engine::Access)
        .filter_map(|class| Some((class, class.recipe.requests()?)))
        .map(|(class, recipe)| {
            let files = FileSet::new(&recipe.files, &class.name, run.seed);
            let root = target(&class.device);
            let (path, offsets_bytes) = if raw {
                let first = used.entry(&class.device).or_default();
                *first = first.next_multiple_of(row_bytes(run, &class.device));
                let offsets = files.offsets_bytes().iter().map(|offset| offset + *first).collect();
                *first += files.total_bytes();
                (root, offsets)
            } else {
                (root.join(&class.name), Vec::new())
            };
            Placement { class: class.clone(), recipe: recipe.clone(), files, path, offsets_bytes }
        })
        .collect()
}

/// Alignment of a class's first byte on a raw device. With weir's schedulers it is a row of stripe units, one on each head, as
/// in virtual time.
fn row_bytes(run: &Run, device: &str) -> u64 {
    let live = run.devices.iter().find(|found| found.name == device && found.live);
    live.map_or(1, |device| u64::from(device.heads) * (device.stripe_unit_kib << 10)).max(1)
}

/// The file of a class on a file system.
pub(crate) fn file_path(folder: &Path, id: u32) -> PathBuf {
    folder.join(weir_content::file_name(id))
}
