//! Files of classes kept on a network file system between runs: writing them again takes longer than a run.
//!
//! Only files of classes behind a web server are kept: the server cannot change them, and every response is compared. Between
//! runs a set lies beside the runs' folders; for a run it is moved into the run's folder. A run that fails, or had a wrong
//! response, keeps nothing.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use weir_host::owned::{self, Owner};
use weir_study::{Engine, FileSystem, Run};

use crate::Error;
use crate::files::free_space::free_bytes;
use crate::files::placement::Placement;
use crate::files::walk;
use crate::filesystem::mount_point::MountPoint;
use crate::filesystem::network;
use crate::load::fill;

/// Folder beside the folders of runs.
const FOLDER: &str = "weir-kept";
/// Free space needed, as a multiple of the files' size: a server frees removed files late.
const ROOM: u64 = 2;

/// Sets of files that a run takes from earlier runs, or leaves to later ones.
#[derive(Default)]
pub(crate) struct KeptFiles {
    /// Folder of each set during the run, and between runs.
    sets: Vec<(PathBuf, PathBuf)>,
}

/// Puts the files of all classes in place; also returns the bytes written.
///
/// # Errors
/// The file system is full or failed.
pub(crate) fn put(
    run: &Run,
    filesystem: &FileSystem,
    points: &[MountPoint],
    places: &[Placement],
) -> Result<(KeptFiles, u64), Error> {
    let root = filesystem.network.as_ref().and_then(|_| {
        let point = points.first()?;
        Some(Root { folder: point.path.join(FOLDER), owner: point.owner.clone()? })
    });
    root.as_ref().map_or(Ok(()), Root::check)?;
    let (mut kept, mut written_bytes) = (KeptFiles::default(), 0);
    for place in places {
        let lies = root.as_ref().and_then(|root| lies_at(&root.folder, place, run.seed));
        if let (Some(root), Some(lies)) = (&root, lies) {
            kept.sets.push((place.path.clone(), lies.clone()));
            if lies.is_dir() {
                fs::rename(&lies, &place.path).map_err(Error::io("cannot move", &lies))?;
                continue;
            }
            root.make_room(place.files.total_bytes())?;
        }
        fill::fill(place, run.seed, network::writers(filesystem))?;
        written_bytes += place.files.total_bytes();
    }
    Ok((kept, written_bytes))
}

/// Folder of a class's set between runs; `None` if it cannot be kept. Its name is a hash of everything that determines its bytes.
fn lies_at(root: &Path, place: &Placement, seed: u64) -> Option<PathBuf> {
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

/// Folder of all sets, with the marker of the state folder.
struct Root {
    folder: PathBuf,
    owner: Owner,
}

impl Root {
    fn check(&self) -> Result<(), Error> {
        if owned::is_owned(&self.folder, &self.owner)? {
            Ok(())
        } else {
            Ok(owned::check_empty(&self.folder)?)
        }
    }

    /// Removes sets of earlier runs if a new one lacks space.
    fn make_room(&self, bytes: u64) -> Result<(), Error> {
        owned::claim(&self.folder, &self.owner, "files kept between runs")?;
        if free_bytes(&self.folder)? < bytes.saturating_mul(ROOM) {
            owned::check_removable(&self.folder, &self.owner)?;
            walk::empty(&self.folder)?;
        }
        Ok(())
    }
}

impl KeptFiles {
    /// Leaves the files to later runs. Files that cannot be moved are removed with the run's folder.
    pub(crate) fn leave(self) {
        for (place, lies) in self.sets {
            let _ = fs::rename(place, lies);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sets_that_weir_kept_make_room() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join(FOLDER);
        let root =
            Root { folder: folder.clone(), owner: Owner::of_state(&place.path().join("state")).unwrap() };
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("a.jpg"), "precious").unwrap();
        assert!(root.check().unwrap_err().is_refusal());
        assert!(root.make_room(u64::MAX).unwrap_err().is_refusal());
        assert_eq!(fs::read_to_string(folder.join("a.jpg")).unwrap(), "precious");
        fs::remove_file(folder.join("a.jpg")).unwrap();
        root.make_room(0).unwrap();
        fs::create_dir(folder.join("set")).unwrap();
        fs::write(folder.join("set/000001.dat"), "").unwrap();
        root.make_room(0).unwrap();
        assert!(folder.join("set").exists(), "there was room");
        root.make_room(u64::MAX).unwrap();
        assert!(!folder.join("set").exists());
        root.check().unwrap();
    }
}
