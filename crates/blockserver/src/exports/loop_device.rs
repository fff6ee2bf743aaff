//! Loop device over the server's file.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use weir_host::device::LoopInfo;

use crate::error::Error;
use crate::state::block_device::BlockDevice;

// From <linux/loop.h>.
const LOOP_CLR_FD: libc::c_ulong = 0x4C01;
const LOOP_CONFIGURE: libc::c_ulong = 0x4C0A;
const LOOP_CTL_GET_FREE: libc::c_ulong = 0x4C82;
const LO_FLAGS_DIRECT_IO: u32 = 16;

/// `struct loop_config`.
#[repr(C)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    info: LoopInfo,
    reserved: [u64; 8],
}

/// Attempts to get a free loop device: another program may take it first.
const ATTEMPTS: u32 = 64;
const CONTROL: &str = "/dev/loop-control";

/// Why this process cannot serve block devices on this host, or `None` if it can.
pub fn missing_capability() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("only root can make block devices. Run the command as root".to_owned());
    }
    for (path, remedy) in
        [("/dev/fuse", "load it with `modprobe fuse`"), (CONTROL, "load it with `modprobe loop`")]
    {
        if let Err(error) = OpenOptions::new().read(true).write(true).open(path) {
            return Some(format!("{path} cannot be opened ({error}). To serve block devices, {remedy}"));
        }
    }
    None
}

/// Makes a loop device with direct I/O and 512-byte sectors over `file`. `token` (at most 63 bytes) is kept by the kernel
/// as its file name; [`is_ours`] identifies the device by it.
pub(crate) fn attach(file: &File, token: &str) -> Result<BlockDevice, Error> {
    let control = OpenOptions::new()
        .read(true)
        .write(true)
        .open(CONTROL)
        .map_err(Error::system(format!("open {CONTROL}")))?;
    let mut info = LoopInfo { flags: LO_FLAGS_DIRECT_IO, ..LoopInfo::EMPTY };
    let length = token.len().min(info.file_name.len() - 1);
    info.file_name[..length].copy_from_slice(&token.as_bytes()[..length]);
    let config = LoopConfig { fd: file.as_raw_fd() as u32, block_size: 512, info, reserved: [0; 8] };
    for _ in 0..ATTEMPTS {
        // SAFETY: takes no argument; returns a number or -1.
        let number = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE) };
        if number < 0 {
            let error = io::Error::last_os_error();
            return Err(Error::Unable(format!(
                "no free loop device ({error}). Detach an unused one (`losetup -l` lists them)"
            )));
        }
        let path = PathBuf::from(format!("/dev/loop{number}"));
        let device = match OpenOptions::new().read(true).write(true).open(&path) {
            Ok(device) => device,
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => continue,
            Err(error) => return Err(Error::path("open", &path)(error)),
        };
        // SAFETY: `config` is the structure that LOOP_CONFIGURE reads, and its descriptor is open.
        if unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE, &config) } != 0 {
            let error = io::Error::last_os_error();
            if error.raw_os_error() == Some(libc::EBUSY) {
                continue;
            }
            return Err(Error::system(format!("set up {} (LOOP_CONFIGURE)", path.display()))(error));
        }
        let made = describe(&path, &device)?;
        let direct = LoopInfo::of(&device).is_ok_and(|info| info.flags & LO_FLAGS_DIRECT_IO != 0);
        if !direct {
            clear(&device);
            return Err(Error::Unable(format!(
                "{} refuses direct I/O over FUSE on this kernel: data would be cached twice, and service times would be wrong",
                path.display()
            )));
        }
        return Ok(made);
    }
    Err(Error::Unable(format!(
        "other programs took every free loop device in {ATTEMPTS} attempts. Try again"
    )))
}

/// Whether `device` is the loop device that was made with `token`, and attached.
pub(crate) fn is_ours(device: &BlockDevice, token: &str) -> bool {
    let Ok(file) = File::open(&device.path) else { return false };
    let same_node = describe(&device.path, &file).is_ok_and(|found| found == *device);
    same_node && LoopInfo::of(&file).is_ok_and(|info| info.name() == token.as_bytes())
}

/// Detaches the loop device that was made with `token`. False if the device is another one. The kernel detaches a device in use
/// when its last user closes it.
pub(crate) fn detach(device: &BlockDevice, token: &str) -> bool {
    let Ok(file) = File::open(&device.path) else { return false };
    let ours = describe(&device.path, &file).is_ok_and(|found| found == *device)
        && LoopInfo::of(&file).is_ok_and(|info| info.name() == token.as_bytes());
    ours && clear(&file)
}

fn clear(device: &File) -> bool {
    // SAFETY: takes no argument.
    unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CLR_FD, 0) == 0 }
}

fn describe(path: &Path, device: &File) -> Result<BlockDevice, Error> {
    let rdev = device.metadata().map_err(Error::path("stat", path))?.rdev();
    Ok(BlockDevice { path: path.to_path_buf(), major: libc::major(rdev), minor: libc::minor(rdev) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structure_has_the_kernels_size() {
        assert_eq!(size_of::<LoopConfig>(), 304);
    }
}
