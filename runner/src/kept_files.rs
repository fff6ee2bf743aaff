//! Files of classes that stay on a network file system from run to run: to write them again takes longer than a run.
//!
//! Only of classes behind a web server, which is not able to change them, and whose every answer is compared. Between runs a
//! set lies beside the runs' folders; for a run it is moved into the run's own. A run that fails, or had a wrong answer, keeps
//! nothing.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use weir_studies::{Engine, FileSystem, Run};

use crate::place::Place;
use crate::prepare::MountPoint;
use crate::room::free_bytes;
use crate::{Error, fill, networked, tree};

/// Beside the folders of runs.
const FOLDER: &str = "weir-kept";
/// Room to leave for what a run's files need, as a multiple: a server does not remove at once what was removed.
const ROOM: u64 = 2;

/// The sets of files that a run has from the runs before it, or leaves to those after it.
#[derive(Default)]
pub(crate) struct KeptFiles {
    /// Where each is during the run, and where between runs.
    sets: Vec<(PathBuf, PathBuf)>,
}

/// Puts the files of all classes in place; gives what was written, in bytes, too.
///
/// # Errors
/// The file system is full or failed.
pub(crate) fn put(
    run: &Run,
    filesystem: &FileSystem,
    points: &[MountPoint],
    places: &[Place],
) -> Result<(KeptFiles, u64), Error> {
    let root = filesystem.network.as_ref().and_then(|_| Some(points.first()?.path.join(FOLDER)));
    let (mut kept, mut written_bytes) = (KeptFiles::default(), 0);
    for place in places {
        let lies = root.as_deref().and_then(|root| lies_at(root, place, run.seed));
        if let (Some(root), Some(lies)) = (&root, lies) {
            kept.sets.push((place.path.clone(), lies.clone()));
            if lies.is_dir() {
                fs::rename(&lies, &place.path).map_err(Error::io("cannot move", &lies))?;
                continue;
            }
            make_room(root, place.files.total_bytes())?;
        }
        fill::fill(place, run.seed, networked::writers(filesystem))?;
        written_bytes += place.files.total_bytes();
    }
    Ok((kept, written_bytes))
}

/// Where a set that is like a class's lies between runs; `None` if it cannot be kept. A name says all that its bytes depend on.
fn lies_at(root: &Path, place: &Place, seed: u64) -> Option<PathBuf> {
    if place.class.engine != Engine::Web {
        return None;
    }
    let mut hash = Sha256::new();
    hash.update(place.class.name.as_bytes());
    hash.update(seed.to_le_bytes());
    place.files.sizes_bytes().iter().for_each(|size| hash.update(size.to_le_bytes()));
    let name: String = hash.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    Some(root.join(name))
}

fn make_room(root: &Path, bytes: u64) -> Result<(), Error> {
    fs::create_dir_all(root).map_err(Error::io("cannot make", root))?;
    if free_bytes(root)? < bytes.saturating_mul(ROOM) {
        tree::remove(root)?;
        fs::create_dir(root).map_err(Error::io("cannot make", root))?;
    }
    Ok(())
}

impl KeptFiles {
    /// Leaves the files to later runs. What cannot be moved is removed with the run's folder.
    pub(crate) fn leave(self) {
        for (place, lies) in self.sets {
            let _ = fs::rename(place, lies);
        }
    }
}
