//! Where a server of a cluster keeps its data: a folder, or a device that is formatted and mounted for it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weir_fsbench::mounted_at;
use weir_studies::FileSystem;

use crate::Error;

/// What a server's data lie on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Brick {
    /// A folder that is there, and stays.
    Folder(PathBuf),
    /// A block device; its data are lost.
    Device(PathBuf),
    /// A folder of the cluster's own, which goes with it.
    Own,
}

/// What a device gets: what most distributions would give it.
const ON_DEVICES: &str = "ext4";

impl Brick {
    /// Makes the place ready. `point` is where a device is mounted, or the folder of its own; returns where data go.
    ///
    /// # Errors
    /// The folder is not there or not empty, or the device cannot be formatted or mounted.
    pub(crate) fn make(&self, point: &Path) -> Result<PathBuf, Error> {
        fs::create_dir_all(point).map_err(Error::io("cannot make", point))?;
        match self {
            Brick::Own => Ok(point.to_owned()),
            Brick::Folder(folder) => {
                let mut entries = fs::read_dir(folder).map_err(Error::io("cannot read", folder))?.flatten();
                if let Some(entry) = entries.find(|entry| entry.file_name() != "lost+found") {
                    return Err(Error::Refused(format!(
                        "{} is to hold a server's data and holds {:?}; name an empty folder",
                        folder.display(),
                        entry.file_name()
                    )));
                }
                Ok(folder.clone())
            }
            Brick::Device(node) => {
                blank(node)?;
                let filesystem = FileSystem::load(ON_DEVICES)
                    .ok_or_else(|| Error::Failed(format!("file system {ON_DEVICES} is unknown")))?;
                let (kind, options) = (filesystem.mount_type.unwrap_or_default(), filesystem.mount_options);
                let mut make = filesystem.make.iter();
                run(Command::new(make.next().map_or("", String::as_str)).args(make).arg(node))?;
                run(Command::new("mount").args(["-t", &kind, "-o", &options]).arg(node).arg(point))?;
                // Not the top itself, where lost+found is.
                let data = point.join("data");
                fs::create_dir_all(&data).map_err(Error::io("cannot make", &data))?;
                Ok(data)
            }
        }
    }

    /// Gives the place back. What was put into a folder that stays is removed.
    ///
    /// # Errors
    /// It is still in use.
    pub(crate) fn clear(&self, point: &Path) -> Result<(), Error> {
        match self {
            Brick::Own => Ok(()),
            Brick::Device(node) => {
                // Only what is mounted there was formatted here.
                let formatted = mounted_at(point).is_some();
                unmount(point)?;
                // Blank again, for whoever uses it next.
                if formatted && node.exists() {
                    run(Command::new("wipefs").args(["--all", "--quiet"]).arg(node))?;
                }
                Ok(())
            }
            Brick::Folder(folder) => {
                for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                    let path = entry.path();
                    let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
                    let removed = match entry.file_name() {
                        name if name == "lost+found" => Ok(()),
                        _ if is_folder => fs::remove_dir_all(&path),
                        _ => fs::remove_file(&path),
                    };
                    removed.map_err(Error::io("cannot remove", &path))?;
                }
                Ok(())
            }
        }
    }
}

/// It carries no file system and no partition table.
fn blank(node: &Path) -> Result<(), Error> {
    let output = Command::new("blkid").args(["--probe", "--output", "export"]).arg(node).output();
    let output = output.map_err(|error| Error::Failed(format!("blkid: {error}")))?;
    // blkid(8): 2 is "nothing was found".
    if output.status.code() == Some(2) {
        return Ok(());
    }
    let found = String::from_utf8_lossy(&output.stdout).into_owned();
    let kind = found.lines().find(|line| line.starts_with("TYPE=") || line.starts_with("PTTYPE="));
    Err(Error::Refused(format!(
        "{} carries data ({}) or is no block device; if they may be lost, wipe it first: wipefs --all {0}",
        node.display(),
        kind.unwrap_or("an unknown signature")
    )))
}

/// Unmounts; nothing being mounted is fine. A busy mount is given a moment: a dying process may hold it.
pub(crate) fn unmount(point: &Path) -> Result<(), Error> {
    let mut last = String::new();
    for attempt in 0..50 {
        if mounted_at(point).is_none() {
            return Ok(());
        }
        if attempt > 0 {
            sleep(Duration::from_millis(100));
        }
        if let Err(error) = run(Command::new("umount").arg(point)) {
            last = error.to_string();
        }
    }
    if mounted_at(point).is_none() {
        Ok(())
    } else {
        Err(Error::Failed(format!("{}: {last}", point.display())))
    }
}

pub(crate) fn run(command: &mut Command) -> Result<(), Error> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| Error::Failed(format!("{name}: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    Err(Error::Failed(format!("{name} failed: {}", String::from_utf8_lossy(&output.stderr).trim())))
}
