//! Storage of a cluster's server: a folder, or a device that is formatted and mounted for it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weir_host::device::contents::check_blank;
use weir_host::device::{Claim, GivenBack, Mark, Written, make_file_system, random_uuid};
use weir_host::owned::{self, Owner};
use weir_host::{mounts, record};
use weir_study::FileSystem;

use crate::Error;

/// Storage of a server's data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerStorage {
    /// An existing empty folder: it is marked, data go into a folder in it, and it stays.
    Folder(PathBuf),
    /// A block device; its data are lost.
    Device(PathBuf),
    /// A folder of the cluster, removed with it.
    Own,
}

/// File system of a device: the default of most distributions.
const ON_DEVICES: &str = "ext4";
/// Folder of the data in a marked folder. Programs need an empty folder of their own.
pub(crate) const DATA: &str = "data";

/// Owner of the data on a storage.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Holder<'a> {
    /// State folder; the marker has its id.
    pub(crate) state: &'a Path,
    /// Cluster and server, the purpose in the marker.
    pub(crate) purpose: &'a str,
}

impl Holder<'_> {
    /// Whether a folder has this holder's marker.
    fn has(self, folder: &Path) -> Result<bool, Error> {
        let Some(owner) = Owner::find(self.state)? else { return Ok(false) };
        let marker = owned::marker(folder)?;
        Ok(marker.is_some_and(|marker| marker.owner == owner && marker.purpose == self.purpose))
    }
}

impl ServerStorage {
    /// Checks whether the storage can be prepared; changes nothing. `again`: the cluster's record lists the storage, and the data
    /// on the device are the cluster's.
    ///
    /// # Errors
    /// [`Error::Refused`] if it has data of another owner.
    pub(crate) fn check(&self, holder: Holder<'_>, again: bool) -> Result<(), Error> {
        match self {
            ServerStorage::Own => Ok(()),
            ServerStorage::Folder(folder) => check_folder(folder, holder),
            ServerStorage::Device(_) if again => Ok(()),
            ServerStorage::Device(node) => {
                let claim = Claim::take(node)?;
                Ok(check_blank(&claim)?)
            }
        }
    }

    /// Prepares the storage. `point` is the mount point of a device, or the cluster's own folder. Returns the folder for data.
    ///
    /// # Errors
    /// The folder is not there or not empty, or the device cannot be formatted or mounted.
    pub(crate) fn make(&self, holder: Holder<'_>, point: &Path) -> Result<PathBuf, Error> {
        fs::create_dir_all(point).map_err(Error::io("cannot make", point))?;
        match self {
            ServerStorage::Own => Ok(point.to_owned()),
            ServerStorage::Folder(folder) => make_folder(folder, holder),
            ServerStorage::Device(node) => make_device(node, point),
        }
    }

    /// Releases the storage. The data are removed from a folder that has the holder's marker; `false` if the folder has no such
    /// marker and is unchanged.
    ///
    /// # Errors
    /// It is still in use.
    pub(crate) fn clear(&self, holder: Holder<'_>, point: &Path) -> Result<bool, Error> {
        match self {
            ServerStorage::Own => Ok(true),
            ServerStorage::Device(node) => clear_device(node, point),
            ServerStorage::Folder(folder) => {
                if !holder.has(folder)? {
                    return Ok(false);
                }
                let owner = Owner::of_state(holder.state)?;
                owned::remove_inside(folder, &owner, DATA)?;
                owned::release(folder, &owner)?;
                Ok(true)
            }
        }
    }

    /// The user's folder or device; `None` for the cluster's own folder.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            ServerStorage::Own => None,
            ServerStorage::Folder(path) | ServerStorage::Device(path) => Some(path),
        }
    }
}

fn check_folder(folder: &Path, holder: Holder<'_>) -> Result<(), Error> {
    let real = folder.canonicalize().map_err(|error| {
        Error::Refused(format!(
            "{} is to hold a server's data: {error}. Make it, or name another folder",
            folder.display()
        ))
    })?;
    if holder.state.canonicalize().is_ok_and(|state| real.starts_with(state)) {
        return Err(Error::Refused(format!(
            "{} lies in the state folder {}. Name a folder outside of it",
            folder.display(),
            holder.state.display()
        )));
    }
    for above in real.ancestors().skip(1) {
        if !matches!(owned::marker(above), Ok(None)) {
            return Err(Error::Refused(format!(
                "{} lies in {}, which a weir made (it has a marker {}). Name a folder outside of it",
                folder.display(),
                above.display(),
                owned::MARKER
            )));
        }
    }
    // Left by a cluster of this name that died: its own.
    if holder.has(&real)? { Ok(()) } else { Ok(owned::check_empty(&real)?) }
}

/// Marks a folder, and makes the one for data in it.
fn make_folder(folder: &Path, holder: Holder<'_>) -> Result<PathBuf, Error> {
    check_folder(folder, holder)?;
    let left_behind = holder.has(folder)?;
    let owner = Owner::of_state(holder.state)?;
    owned::claim(folder, &owner, holder.purpose)?;
    if left_behind {
        owned::remove_inside(folder, &owner, DATA)?;
    }
    let data = folder.join(DATA);
    fs::create_dir(&data).map_err(Error::io("cannot make", &data))?;
    Ok(data)
}

/// Formats a blank device and mounts it. The record beside the mount point is written first.
fn make_device(node: &Path, point: &Path) -> Result<PathBuf, Error> {
    let filesystem = FileSystem::load(ON_DEVICES)
        .ok_or_else(|| Error::Failed(format!("file system {ON_DEVICES} is unknown")))?;
    let mut claim = Claim::take(node)?;
    check_blank(&claim)?;
    let uuid = random_uuid()?;
    let written = Written::on(&claim, Mark::Uuid(uuid.clone()));
    record::write(&record_file(point), &written, 0o600)?;
    make_file_system(&mut claim, &filesystem.make_command(), &uuid, false)?;
    let (kind, options) = (filesystem.mount_type.unwrap_or_default(), filesystem.mount_options);
    run(Command::new("mount").args(["-t", &kind, "-o", &options]).arg(node).arg(point))?;
    // Not the top itself, where lost+found is.
    let data = point.join(DATA);
    fs::create_dir_all(&data).map_err(Error::io("cannot make", &data))?;
    Ok(data)
}

/// Unmounts a device and makes it blank, if it is the recorded device with the recorded file system. `false` if it is another
/// device, which stays unchanged.
fn clear_device(node: &Path, point: &Path) -> Result<bool, Error> {
    let file = record_file(point);
    let advice = format!("Look at {}, then remove the file", node.display());
    // Without a record nothing was made on it.
    let Some(written) = record::read::<Written>(&file, &advice)? else { return Ok(true) };
    if mounts::at(point)?.is_some_and(|mount| mount.source == node) {
        unmount(point)?;
    }
    match written.give_back() {
        GivenBack::Blanked | GivenBack::Nothing => {}
        GivenBack::Left(why) => {
            eprintln!("{why}");
            fs::remove_file(&file).map_err(Error::io("cannot remove", &file))?;
            return Ok(false);
        }
        GivenBack::Failed(why) => return Err(Error::Failed(why)),
    }
    fs::remove_file(&file).map_err(Error::io("cannot remove", &file))?;
    Ok(true)
}

/// File of the record of a device.
fn record_file(point: &Path) -> PathBuf {
    point.with_file_name("device.json")
}

/// Unmounts; nothing being mounted is fine. A busy mount is retried for a moment: an ending process may hold it.
pub(crate) fn unmount(point: &Path) -> Result<(), Error> {
    mounts::unmount_patiently(point, Duration::from_secs(5))
}

pub(crate) fn run(command: &mut Command) -> Result<(), Error> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| Error::Failed(format!("{name}: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    Err(Error::Failed(format!("{name} failed: {}", String::from_utf8_lossy(&output.stderr).trim())))
}
