//! Users of a disk or a part of it: mounts in any namespace, swap, devices on top, loop devices over it, open files.

use std::fs::{self, File};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use super::LoopInfo;
use crate::mounts;

/// The device numbers of a disk and its partitions, by kernel name.
fn parts(kernel_name: &str) -> Vec<(String, (u32, u32))> {
    let block = Path::new("/sys/block").join(kernel_name);
    let number = |folder: &Path| {
        let text = fs::read_to_string(folder.join("dev")).ok()?;
        let (major, minor) = text.trim().split_once(':')?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    };
    let partitions = fs::read_dir(&block).into_iter().flatten().flatten().map(|entry| entry.path());
    std::iter::once(block.clone())
        .chain(partitions.filter(|folder| folder.join("partition").exists()))
        .filter_map(|folder| Some((folder.file_name()?.to_string_lossy().into_owned(), number(&folder)?)))
        .collect()
}

/// The first use that is found of a disk or a part of it by anybody but this process; `None` if there is none.
#[must_use]
pub fn find(kernel_name: &str) -> Option<String> {
    let parts = parts(kernel_name);
    mounted(&parts)
        .or_else(|| swapped(&parts))
        .or_else(|| stacked(&parts))
        .or_else(|| looped(&parts))
        .or_else(|| opened(&parts))
}

fn mounted(parts: &[(String, (u32, u32))]) -> Option<String> {
    let own = mounts::own().unwrap_or_default();
    mounts::of_all_namespaces().into_iter().find_map(|(pid, mount)| {
        let (name, _) = parts.iter().find(|(_, number)| mount.is_on(*number))?;
        let elsewhere = if own.contains(&mount) {
            String::new()
        } else {
            format!(" in the mount namespace of process {pid}")
        };
        Some(format!("/dev/{name} is mounted at {}{elsewhere}", mount.point.display()))
    })
}

fn swapped(parts: &[(String, (u32, u32))]) -> Option<String> {
    let swaps = fs::read_to_string("/proc/swaps").unwrap_or_default();
    swaps.lines().skip(1).find_map(|line| {
        let found = fs::metadata(mounts::unescape(line.split_ascii_whitespace().next()?.as_bytes())).ok()?;
        let number = (libc::major(found.rdev()), libc::minor(found.rdev()));
        let (name, _) =
            parts.iter().find(|(_, known)| found.file_type().is_block_device() && *known == number)?;
        Some(format!("/dev/{name} is in use as swap"))
    })
}

/// RAID, LVM, encryption, bcache, multipath: whatever the kernel lists as a holder.
fn stacked(parts: &[(String, (u32, u32))]) -> Option<String> {
    parts.iter().find_map(|(name, _)| {
        let holder = fs::read_dir(format!("/sys/class/block/{name}/holders")).ok()?.flatten().next()?;
        Some(format!(
            "/dev/{name} is part of /dev/{} (RAID, LVM, encryption or cache)",
            holder.file_name().to_string_lossy()
        ))
    })
}

/// A loop device over the disk itself claims nothing: the kernel does not list it as a holder.
fn looped(parts: &[(String, (u32, u32))]) -> Option<String> {
    fs::read_dir("/sys/block").ok()?.flatten().find_map(|entry| {
        if !entry.path().join("loop/backing_file").exists() {
            return None;
        }
        let node = Path::new("/dev").join(entry.file_name());
        let rdevice = LoopInfo::of(&File::open(&node).ok()?).ok()?.rdevice;
        // `huge_encode_dev`: the layout of glibc's dev_t for numbers below 2^12 and 2^20.
        let number = (libc::major(rdevice), libc::minor(rdevice));
        let (name, _) = parts.iter().find(|(_, known)| rdevice != 0 && *known == number)?;
        Some(format!("{} is a loop device over /dev/{name}", node.display()))
    })
}

fn opened(parts: &[(String, (u32, u32))]) -> Option<String> {
    let own = std::process::id().to_string();
    fs::read_dir("/proc").ok()?.flatten().find_map(|process| {
        let pid = process.file_name();
        let pid =
            pid.to_str().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()) && *name != own)?;
        fs::read_dir(process.path().join("fd")).ok()?.flatten().find_map(|descriptor| {
            // Follows the descriptor itself, wherever its node lies and in whichever namespace; opens nothing.
            let found =
                fs::metadata(descriptor.path()).ok().filter(|found| found.file_type().is_block_device())?;
            let number = (libc::major(found.rdev()), libc::minor(found.rdev()));
            let (name, _) = parts.iter().find(|(_, known)| *known == number)?;
            let command =
                fs::read_to_string(PathBuf::from("/proc").join(pid).join("comm")).unwrap_or_default();
            Some(format!("/dev/{name} is open in process {pid} ({})", command.trim()))
        })
    })
}
