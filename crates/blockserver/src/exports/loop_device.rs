//! Loop device over the server's file.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use weir_host::device::LoopInfo;

use crate::error::Error;
use crate::state::block_device::BlockDevice;
use crate::wait::wait_until;

// From <linux/loop.h>.
const LOOP_CLR_FD: libc::c_ulong = 0x4C01;
const LOOP_CONFIGURE: libc::c_ulong = 0x4C0A;
const LOOP_CTL_ADD: libc::c_ulong = 0x4C80;
const LOOP_CTL_REMOVE: libc::c_ulong = 0x4C81;
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
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(2);

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

/// A loop device that was attached.
#[derive(Debug)]
pub(crate) struct Attached {
    pub device: BlockDevice,
    /// Whether the host had no such device before: [`remove`] takes it away.
    pub added: bool,
}

/// Makes a loop device with direct I/O and 512-byte sectors over `file`. `token` (at most 63 bytes) is kept by the kernel
/// as its file name; [`is_ours`] identifies the device by it.
///
/// It is added to the host's, where the kernel allows that, and otherwise a free one of those. A loop device's idle workers keep
/// the control groups of their last requests for up to two minutes, unless the device goes.
pub(crate) fn attach(file: &File, token: &str) -> Result<Attached, Error> {
    let control = open_control().map_err(Error::system(format!("open {CONTROL}")))?;
    if let Ok(number) = loop_control(&control, LOOP_CTL_ADD, -1) {
        let path = node(number);
        // Without devtmpfs it has no node; another program may also have found it.
        let device =
            OpenOptions::new().read(true).write(true).open(&path).map_err(Error::path("open", &path));
        match device.and_then(|device| configure(&path, &device, file, token)) {
            Ok(Some(device)) => return Ok(Attached { device, added: true }),
            other => {
                let _ = loop_control(&control, LOOP_CTL_REMOVE, number);
                if let Err(error @ Error::Unable(_)) = other {
                    return Err(error);
                }
            }
        }
    }
    for _ in 0..ATTEMPTS {
        let number = loop_control(&control, LOOP_CTL_GET_FREE, 0).map_err(|error| {
            Error::Unable(format!(
                "no free loop device ({error}). Detach an unused one (`losetup -l` lists them)"
            ))
        })?;
        let path = node(number);
        let device = match OpenOptions::new().read(true).write(true).open(&path) {
            Ok(device) => device,
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => continue,
            Err(error) => return Err(Error::path("open", &path)(error)),
        };
        if let Some(device) = configure(&path, &device, file, token)? {
            return Ok(Attached { device, added: false });
        }
    }
    Err(Error::Unable(format!(
        "other programs took every free loop device in {ATTEMPTS} attempts. Try again"
    )))
}

/// Takes away a detached device that [`attach`] added. False if it stays, because another program uses it now.
pub(crate) fn remove(device: &BlockDevice) -> bool {
    let number = device.path.to_str().and_then(|path| path.strip_prefix("/dev/loop")?.parse().ok());
    let (Some(number), Ok(control)) = (number, open_control()) else { return false };
    // A program that looks at new devices may have it open for a moment.
    wait_until(REMOVAL_TIMEOUT, || match loop_control(&control, LOOP_CTL_REMOVE, number) {
        Err(error) => error.raw_os_error() != Some(libc::EBUSY),
        Ok(_) => true,
    }) && !Path::new("/sys/block").join(format!("loop{number}")).exists()
}

fn open_control() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(CONTROL)
}

/// Sends a request to `/dev/loop-control`; returns the number of the device.
fn loop_control(control: &File, request: libc::c_ulong, number: libc::c_int) -> io::Result<libc::c_int> {
    // SAFETY: these requests take a number, no pointer.
    match unsafe { libc::ioctl(control.as_raw_fd(), request, libc::c_long::from(number)) } {
        -1 => Err(io::Error::last_os_error()),
        number => Ok(number),
    }
}

fn node(number: libc::c_int) -> PathBuf {
    PathBuf::from(format!("/dev/loop{number}"))
}

/// Attaches `file`. `None` if the device has another file already.
fn configure(path: &Path, device: &File, file: &File, token: &str) -> Result<Option<BlockDevice>, Error> {
    let mut info = LoopInfo { flags: LO_FLAGS_DIRECT_IO, ..LoopInfo::EMPTY };
    let length = token.len().min(info.file_name.len() - 1);
    info.file_name[..length].copy_from_slice(&token.as_bytes()[..length]);
    let config = LoopConfig { fd: file.as_raw_fd() as u32, block_size: 512, info, reserved: [0; 8] };
    // SAFETY: `config` is the structure that LOOP_CONFIGURE reads, and its descriptor is open.
    if unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE, &config) } != 0 {
        let error = io::Error::last_os_error();
        if error.raw_os_error() == Some(libc::EBUSY) {
            return Ok(None);
        }
        return Err(Error::system(format!("set up {} (LOOP_CONFIGURE)", path.display()))(error));
    }
    let made = describe(path, device)?;
    let direct = LoopInfo::of(device).is_ok_and(|info| info.flags & LO_FLAGS_DIRECT_IO != 0);
    if !direct {
        clear(device);
        return Err(Error::Unable(format!(
            "{} refuses direct I/O over FUSE on this kernel: data would be cached twice, and service times would be wrong",
            path.display()
        )));
    }
    Ok(Some(made))
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
