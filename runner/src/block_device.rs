//! A block device of this host: who it is, and whether it may be used.

use std::fs;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use weir_blockserver::{Control, State};
use weir_studies::RunDevice;

use crate::mount::mounts;
use crate::testbed::{Device, Disk};
use crate::{Error, array};

/// Who has a device during a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    /// The run alone.
    Own,
    /// A server that outlives the run.
    Mounted,
}

/// A disk with a request queue.
pub(crate) struct Queue {
    /// Its name in the study's device, for errors.
    pub(crate) device: String,
    /// Its kernel name, such as `loop3`.
    pub(crate) kernel_name: String,
    /// Modelled disks in it.
    pub(crate) heads: u32,
}

impl Queue {
    /// A file below `/sys/block/NAME/`.
    pub(crate) fn sys(&self, file: &str) -> PathBuf {
        Path::new("/sys/block").join(&self.kernel_name).join(file)
    }
}

/// A device that has been found fit for use.
pub(crate) struct BlockDevice {
    /// Its name in the study.
    pub(crate) name: String,
    /// Its node, such as `/dev/loop3`; that of an array is there once it is assembled.
    pub(crate) node: PathBuf,
    /// The disks that answer: itself, or the members of an array.
    pub(crate) queues: Vec<Queue>,
    /// The names by which the members of an array are listed; none if it is a single device.
    pub(crate) members: Vec<PathBuf>,
    /// Bytes on it; on an array at most.
    pub(crate) size_bytes: u64,
    /// Connection to the server of a modelled device.
    pub(crate) control: Option<Control>,
    /// Whether that server can put policies in front of its disks.
    pub(crate) has_policies: bool,
}

impl BlockDevice {
    /// Finds a device and checks that it may be used.
    ///
    /// # Errors
    /// It is absent, is not what the test bed says, is in use, or holds somebody's data.
    pub(crate) fn open(wanted: &RunDevice, device: &Device) -> Result<Self, Error> {
        Self::find(wanted, device, Use::Own)
    }

    /// Finds a device that a server of a network file system has mounted: nothing on it is touched.
    ///
    /// # Errors
    /// It is absent, or is not what the test bed says.
    pub(crate) fn open_mounted(wanted: &RunDevice, device: &Device) -> Result<Self, Error> {
        Self::find(wanted, device, Use::Mounted)
    }

    fn find(wanted: &RunDevice, device: &Device, used: Use) -> Result<Self, Error> {
        let name = &wanted.name;
        let refuse = |text: String| Error::Refused(format!("device `{name}`: {text}"));
        let single = |node: PathBuf, heads, control| {
            let (queue, size_bytes) = queue(name, &node, heads, used).map_err(refuse)?;
            let queues = vec![queue];
            let members = Vec::new();
            Ok::<_, Error>(BlockDevice {
                name: name.clone(),
                node,
                queues,
                members,
                size_bytes,
                control,
                has_policies: false,
            })
        };
        match device {
            Device::Modelled { state } => {
                let state = State::load(state).map_err(|error| refuse(error.to_string()))?;
                let control = Control::connect(&state).map_err(|error| refuse(error.to_string()))?;
                let device =
                    state.device.ok_or_else(|| refuse("its server has not made a device yet".to_owned()))?;
                let has_policies = state.spec.live.is_some();
                Ok(BlockDevice { has_policies, ..single(device.path, wanted.heads, Some(control))? })
            }
            Device::Disk(disk) => {
                let found = single(stable_node(&disk.path).map_err(refuse)?, wanted.heads, None)?;
                if used == Use::Own {
                    may_be_lost(disk).map_err(refuse)?;
                }
                Ok(found)
            }
            Device::Array { members } => {
                array::check(members.len(), wanted.heads, wanted.stripe_unit_kib).map_err(refuse)?;
                let (mut queues, mut smallest) = (Vec::new(), u64::MAX);
                for disk in members {
                    let node = stable_node(&disk.path).map_err(refuse)?;
                    let (found, size_bytes) = queue(name, &node, 1, used).map_err(refuse)?;
                    may_be_lost(disk).map_err(refuse)?;
                    smallest = smallest.min(size_bytes);
                    queues.push(found);
                }
                Ok(BlockDevice {
                    name: name.clone(),
                    node: array::node(name),
                    size_bytes: smallest * queues.len() as u64,
                    queues,
                    members: members.iter().map(|disk| disk.path.clone()).collect(),
                    control: None,
                    has_policies: false,
                })
            }
        }
    }

    /// The kernel's names of the disks that answer.
    pub(crate) fn kernel_names(&self) -> impl Iterator<Item = &str> {
        self.queues.iter().map(|queue| queue.kernel_name.as_str())
    }

    /// Writes out and forgets what the page cache holds of the device itself.
    pub(crate) fn drop_cache(&self) -> std::io::Result<()> {
        /// `BLKFLSBUF` of `include/uapi/linux/fs.h`.
        const BLKFLSBUF: libc::Ioctl = 0x1261;
        let file = fs::File::open(&self.node)?;
        // SAFETY: the descriptor is open for the duration of the call, which takes no argument.
        match unsafe { libc::ioctl(file.as_raw_fd(), BLKFLSBUF, 0) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    }

    /// Whether a modelled device takes as long as its model says; others always take their time.
    ///
    /// # Errors
    /// Its server does not answer.
    pub(crate) fn set_timing(&mut self, on: bool) -> Result<(), Error> {
        let Some(control) = &mut self.control else { return Ok(()) };
        control.timing(on).map(|_| ()).map_err(|error| Error::Failed(error.to_string()))
    }

    /// Bytes read from the disks since boot.
    pub(crate) fn read_bytes(&self) -> u64 {
        // Documentation/block/stat.rst: read sectors, of 512 bytes, are the third field.
        let of_disk = |name: &str| {
            let stat = read_sys(name, "stat").unwrap_or_default();
            stat.split_ascii_whitespace().nth(2).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0)
                * 512
        };
        self.kernel_names().map(of_disk).sum()
    }
}

/// A disk that is not in use, and its size in bytes.
fn queue(device: &str, node: &Path, heads: u32, used: Use) -> Result<(Queue, u64), String> {
    let kernel_name = kernel_name(node)?;
    if used == Use::Own {
        unused(&kernel_name)?;
    }
    let sectors = read_sys(&kernel_name, "size").and_then(|text| text.parse::<u64>().ok());
    let size_bytes = sectors.ok_or_else(|| format!("{} has no size", node.display()))? * 512;
    Ok((Queue { device: device.to_owned(), kernel_name, heads }, size_bytes))
}

/// Nothing is on a disk, or the inventory says that it may be lost.
fn may_be_lost(disk: &Disk) -> Result<(), String> {
    if disk.overwrite_signature { Ok(()) } else { blank(&disk.path) }
}

fn read_sys(kernel_name: &str, file: &str) -> Option<String> {
    fs::read_to_string(format!("/sys/block/{kernel_name}/{file}")).ok().map(|text| text.trim().to_owned())
}

/// The node behind a name that survives a reboot.
fn stable_node(path: &Path) -> Result<PathBuf, String> {
    if !path.starts_with("/dev/disk") {
        return Err(format!(
            "{} may name another disk after a reboot: list it by a name below /dev/disk/by-id",
            path.display()
        ));
    }
    path.canonicalize().map_err(|error| format!("{}: {error}", path.display()))
}

/// The name of a whole disk in /sys/block.
fn kernel_name(node: &Path) -> Result<String, String> {
    let metadata = fs::metadata(node).map_err(|error| format!("{}: {error}", node.display()))?;
    if !metadata.file_type().is_block_device() {
        return Err(format!("{} is not a block device", node.display()));
    }
    let number = metadata.rdev();
    let link = format!("/sys/dev/block/{}:{}", libc::major(number), libc::minor(number));
    let target = fs::read_link(&link).map_err(|error| format!("{link}: {error}"))?;
    let name = target.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
    if Path::new("/sys/block").join(&name).is_dir() {
        Ok(name)
    } else {
        Err(format!("{} is a partition: list the whole disk, whose queue a study sets", node.display()))
    }
}

/// Nothing is mounted from it or from a partition of it, nothing is stacked on it, it is no swap.
fn unused(kernel_name: &str) -> Result<(), String> {
    let partitions = fs::read_dir(format!("/sys/block/{kernel_name}")).into_iter().flatten().flatten();
    let mut names: Vec<String> = partitions
        .filter(|entry| entry.path().join("partition").exists())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.push(kernel_name.to_owned());
    let swaps = fs::read_to_string("/proc/swaps").unwrap_or_default();
    for name in &names {
        let node = Path::new("/dev").join(name);
        if let Some(mount) = mounts().into_iter().find(|mount| mount.source == node) {
            return Err(format!("{} is mounted at {}", node.display(), mount.point.display()));
        }
        if swaps.lines().any(|line| line.split(' ').next().is_some_and(|swap| Path::new(swap) == node)) {
            return Err(format!("{} is in use as swap", node.display()));
        }
        let holders = fs::read_dir(format!("/sys/class/block/{name}/holders")).into_iter().flatten().count();
        if holders > 0 {
            return Err(format!("{} is held by another device (RAID, LVM or encryption)", node.display()));
        }
    }
    Ok(())
}

/// It carries no file system and no partition table.
fn blank(path: &Path) -> Result<(), String> {
    let output = Command::new("blkid").args(["--probe", "--output", "export"]).arg(path).output();
    match output {
        // blkid(8): 2 is "nothing was found", 0 is a signature, 8 is several.
        Ok(output) if output.status.code() == Some(2) => Ok(()),
        Ok(output) => {
            let found = String::from_utf8_lossy(&output.stdout);
            let kind = found.lines().find(|line| line.starts_with("TYPE=") || line.starts_with("PTTYPE="));
            Err(format!(
                "{} carries data ({}); if they may be lost, say overwrite_signature: true for it in the inventory",
                path.display(),
                kind.unwrap_or("an unknown signature"),
            ))
        }
        Err(error) => Err(format!("blkid: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_may_move_is_refused() {
        assert!(stable_node(Path::new("/dev/sda")).unwrap_err().contains("by-id"));
    }

    #[test]
    fn what_is_no_block_device_is_refused() {
        assert!(kernel_name(Path::new("/dev/null")).unwrap_err().contains("not a block device"));
        assert!(kernel_name(Path::new("/dev/nonesuch")).is_err());
    }
}
