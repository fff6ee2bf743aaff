//! Loop device over the server's file.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use weir_host::device::LoopInfo;

use crate::error::Error;
use crate::state::block_device::{AddedLoop, BlockDevice};
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

/// Attempts to get a loop device: another program may take it first.
pub(crate) const ATTEMPTS: u32 = 64;
const CONTROL: &str = "/dev/loop-control";
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(2);
/// Longest lag of the clock that stamps device nodes: one tick.
const CLOCK_STEP: Duration = Duration::from_millis(10);
/// Longest time between the record and the creation of a device by a server that was killed right after.
const MADE_WITHIN: Duration = Duration::from_secs(1);

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

/// Lowest number from `from` on that no loop device of the host has.
pub(crate) fn unused_number(from: u32) -> u32 {
    (from..).find(|&number| !folder(number).exists()).unwrap_or(from)
}

/// Adds the loop device `number` to the host's, with no file.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`] if there is one; other kinds if the kernel adds none.
pub(crate) fn add(number: u32) -> io::Result<()> {
    loop_control(&open_control()?, LOOP_CTL_ADD, number).map(drop)
}

/// Makes loop device `number` one with direct I/O and 512-byte sectors over `file`. `token` (at most 63 bytes) is kept by the
/// kernel as its file name; [`is_ours`] identifies the device by it. `None` if another program uses the device.
pub(crate) fn attach(number: u32, file: &Path, token: &str) -> Result<Option<BlockDevice>, Error> {
    let path = node(number);
    let device = match OpenOptions::new().read(true).write(true).open(&path) {
        Ok(device) => device,
        Err(error) if error.raw_os_error() == Some(libc::EBUSY) => return Ok(None),
        Err(error) => return Err(Error::path("open", &path)(error)),
    };
    configure(&path, &device, file, token)
}

/// Like [`attach`], with a free loop device of the host.
pub(crate) fn attach_free(file: &Path, token: &str) -> Result<BlockDevice, Error> {
    let control = open_control().map_err(Error::system(format!("open {CONTROL}")))?;
    for _ in 0..ATTEMPTS {
        let number = loop_control(&control, LOOP_CTL_GET_FREE, 0).map_err(|error| {
            Error::Unable(format!(
                "no free loop device ({error}). Detach an unused one (`losetup -l` lists them)"
            ))
        })?;
        if let Some(device) = attach(number, file, token)? {
            return Ok(device);
        }
    }
    Err(Error::Unable(format!(
        "other programs took every free loop device in {ATTEMPTS} attempts. Try again"
    )))
}

/// Identifies a loop device among all that had or will have its number: the inode of its folder in sysfs.
pub(crate) fn inode(number: u32) -> Option<u64> {
    fs::metadata(folder(number)).ok().map(|folder| folder.ino())
}

/// Removes a detached device that a server added. False if it stays, because another program uses it, or if there is none.
pub(crate) fn remove(added: &AddedLoop) -> bool {
    let Ok(control) = open_control() else { return false };
    if !is_there(added) {
        return false;
    }
    // A program that looks at new devices may have it open for a moment.
    wait_until(REMOVAL_TIMEOUT, || match loop_control(&control, LOOP_CTL_REMOVE, added.number) {
        Err(error) => error.raw_os_error() != Some(libc::EBUSY),
        Ok(_) => true,
    }) && !is_there(added)
}

/// Whether the host still has that device, and not another one of its number.
fn is_there(added: &AddedLoop) -> bool {
    if added.inode.is_some() {
        return inode(added.number) == added.inode;
    }
    // The server was killed before it recorded the inode. Its device was made right after the first record.
    let made = fs::metadata(node(added.number)).and_then(|node| node.created());
    let made = made.ok().and_then(|made| made.duration_since(UNIX_EPOCH).ok());
    let asked = Duration::from_nanos(added.asked_unix_ns);
    made.is_some_and(|made| made + CLOCK_STEP >= asked && made < asked + MADE_WITHIN)
}

fn open_control() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(CONTROL)
}

/// Sends a request to `/dev/loop-control`; returns the number of the device.
fn loop_control(control: &File, request: libc::c_ulong, number: u32) -> io::Result<u32> {
    // SAFETY: these requests take a number, no pointer.
    let answer = unsafe { libc::ioctl(control.as_raw_fd(), request, libc::c_ulong::from(number)) };
    u32::try_from(answer).map_err(|_| io::Error::last_os_error())
}

fn node(number: u32) -> PathBuf {
    PathBuf::from(format!("/dev/loop{number}"))
}

fn folder(number: u32) -> PathBuf {
    PathBuf::from(format!("/sys/block/loop{number}"))
}

/// Attaches `file`. `None` if the device has another file already.
fn configure(path: &Path, device: &File, file: &Path, token: &str) -> Result<Option<BlockDevice>, Error> {
    let mut info = LoopInfo { flags: LO_FLAGS_DIRECT_IO, ..LoopInfo::EMPTY };
    let length = token.len().min(info.file_name.len() - 1);
    info.file_name[..length].copy_from_slice(&token.as_bytes()[..length]);
    // Open for this call only: a server that holds its own file open cannot be killed.
    let file = OpenOptions::new().read(true).write(true).open(file).map_err(Error::path("open", file))?;
    let config = LoopConfig { fd: file.as_raw_fd() as u32, block_size: 512, info, reserved: [0; 8] };
    // SAFETY: `config` is the structure that LOOP_CONFIGURE reads, and its descriptor is open.
    if unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE, &config) } != 0 {
        let error = io::Error::last_os_error();
        if error.raw_os_error() == Some(libc::EBUSY) {
            return Ok(None);
        }
        return Err(Error::system(format!("set up {} (LOOP_CONFIGURE)", path.display()))(error));
    }
    drop(file);
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
