//! Block devices of the kernel's ublk driver: requests reach this process through an io_uring, without a file system.
//!
//! A device has a mark in the driver, by which another process can remove it after this one died. When the server dies, the
//! kernel fails outstanding requests and removes the block device; its number stays in use until [`remove_marked`].
//!
//! By hand, not by the libublk crate: there each request is a task of its queue's thread, while here the scheduler's threads complete
//! requests in an order of their own. Which is faster was not measured: emulated guests have the driver, and no measured machine.

mod abi;
mod control;
mod queue;

use std::fs::{File, OpenOptions};
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use self::abi::{DeviceInfo, Parameters};
use self::control::Control;
use self::queue::{DEPTH, Queue};
use crate::engine::scheduled::Export;
use crate::error::Error;
use crate::exports::fuse::MAX_REQUEST_BYTES;
use crate::state::block_device::BlockDevice;
use crate::wait::wait_until;

/// Time limit for the device files to appear or disappear.
const FILE_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum discard: ranges at one head have 32-bit sizes.
const MOST_DISCARD_BYTES: u64 = 1 << 30;
/// Unit of discards: that of the loop device.
const DISCARD_BYTES: u32 = 4096;

/// Why this process cannot make ublk devices; `None` if it can.
pub(crate) fn missing() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("only root can make block devices. Run the command as root".to_owned());
    }
    match Control::open().and_then(|mut control| control.features()) {
        Ok(features)
            if features & (abi::USER_COPY | abi::IOCTL_ENCODED) == abi::USER_COPY | abi::IOCTL_ENCODED =>
        {
            None
        }
        Ok(_) => Some("this kernel's ublk is older than Linux 6.5. Use loop or nbd".to_owned()),
        Err(error) => Some(format!(
            "{} cannot be used ({error}). ublk needs CONFIG_BLK_DEV_UBLK (Linux 6.5 or later); load it with \
             `modprobe ublk_drv`, or use loop or nbd",
            abi::CONTROL
        )),
    }
}

/// Maximum outstanding requests of a device.
pub(crate) fn depth() -> u32 {
    u32::from(DEPTH)
}

/// A block device served by this process; dropping it removes the device.
pub(crate) struct Device {
    control: Control,
    number: u32,
    thread: Option<JoinHandle<io::Result<()>>>,
    /// The block device.
    pub device: BlockDevice,
}

impl Device {
    /// Makes a block device of an export, and serves it. `mark` distinguishes it from devices of other servers.
    ///
    /// # Errors
    /// The driver refuses; nothing is left then.
    pub fn start(export: &Export, mark: NonZeroU64) -> Result<Self, Error> {
        let mut control = Control::open().map_err(Error::path("open", Path::new(abi::CONTROL)))?;
        let mut info = DeviceInfo {
            queues: 1,
            queue_depth: DEPTH,
            most_request_bytes: MAX_REQUEST_BYTES,
            device: abi::ANY_DEVICE,
            flags: abi::USER_COPY | abi::IOCTL_ENCODED,
            mark: mark.get(),
            ..DeviceInfo::default()
        };
        control.add(&mut info).map_err(Error::system("add a ublk device"))?;
        let number = info.device;
        let path = PathBuf::from(format!("/dev/ublkb{number}"));
        // From here on a drop removes the device.
        let mut made = Device {
            control,
            number,
            thread: None,
            device: BlockDevice { path: path.clone(), major: 0, minor: 0 },
        };
        let failed = || Error::system(format!("make {}", path.display()));
        made.control.set_parameters(number, parameters(export)).map_err(failed())?;
        made.thread = Some(serve(number, export.clone()).map_err(failed())?);
        made.control.start(number).map_err(failed())?;
        let number_of = |path: &Path| path.metadata().map(|found| found.rdev());
        wait_until(FILE_TIMEOUT, || number_of(&path).is_ok());
        let rdev = number_of(&path).map_err(Error::path("find", &path))?;
        made.device = BlockDevice { path, major: libc::major(rdev), minor: libc::minor(rdev) };
        Ok(made)
    }
}

impl Device {
    /// Whether serving has ended: another process removed the device, or serving failed.
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // Ends the thread's fetching, too; a device that was never started has only that.
        if let Err(error) = self.control.stop(self.number) {
            eprintln!("{} cannot be stopped: {error}", self.device.path.display());
        }
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(Err(error))) => eprintln!("serving {} ended early: {error}", self.device.path.display()),
            Some(Err(_)) => eprintln!("the thread that served {} panicked", self.device.path.display()),
            Some(Ok(Ok(()))) | None => {}
        }
        if let Err(error) = self.control.delete(self.number) {
            eprintln!("{} cannot be removed: {error}", self.device.path.display());
        }
    }
}

/// Removes the devices with a mark, of a dead or a live server. Returns the removed devices, and those that are still open.
///
/// # Errors
/// The driver refuses.
pub(crate) fn remove_marked(mark: NonZeroU64) -> io::Result<(Vec<String>, Vec<String>)> {
    let (mut gone, mut left) = (Vec::new(), Vec::new());
    // Without the driver there are no devices.
    let Ok(mut control) = Control::open() else { return Ok((gone, left)) };
    for number in control.marked(mark.get())? {
        control.stop(number)?;
        control.delete(number)?;
        let has_gone = wait_until(FILE_TIMEOUT, || !is_there(number));
        if has_gone { &mut gone } else { &mut left }.push(format!("/dev/ublkb{number}"));
    }
    Ok((gone, left))
}

/// Whether a device is, or was, one of this driver's.
pub(crate) fn is_of_driver(device: &BlockDevice) -> bool {
    number_in(device).is_some()
}

fn number_in(device: &BlockDevice) -> Option<u32> {
    device.path.file_name()?.to_str()?.strip_prefix("ublkb")?.parse().ok()
}

/// Whether the driver has a device of that number with that mark. Its block device is gone once its server has died; a file
/// system on it may still be mounted.
pub(crate) fn is_ours(device: &BlockDevice, mark: NonZeroU64) -> bool {
    let Some(number) = number_in(device) else { return false };
    Control::open().and_then(|mut control| control.info(number)).is_ok_and(|info| info.mark == mark.get())
}

fn is_there(number: u32) -> bool {
    Path::new(&format!("/sys/class/ublk-char/ublkc{number}")).exists()
}

fn parameters(export: &Export) -> Parameters {
    let block_bytes = export.engine.block_bytes().max(abi::SECTOR_BYTES as u32);
    let shift = block_bytes.trailing_zeros() as u8;
    let rotational = if export.is_rotational { abi::ROTATIONAL } else { 0 };
    let most_discard_sectors = (MOST_DISCARD_BYTES / abi::SECTOR_BYTES) as u32;
    Parameters {
        length: size_of::<Parameters>() as u32,
        types: abi::BASIC_AND_DISCARD,
        attributes: abi::VOLATILE_CACHE | abi::FUA | rotational,
        logical_block_shift: shift,
        physical_block_shift: shift,
        optimal_io_shift: shift,
        least_io_shift: shift,
        most_sectors: (u64::from(MAX_REQUEST_BYTES) / abi::SECTOR_BYTES) as u32,
        sectors: export.size_bytes / abi::SECTOR_BYTES,
        discard_granularity: DISCARD_BYTES,
        most_discard_sectors,
        most_zeroes_sectors: most_discard_sectors,
        most_discard_segments: 1,
        ..Parameters::default()
    }
}

/// Starts the thread that serves a device; it fetches when this returns.
fn serve(number: u32, export: Export) -> io::Result<JoinHandle<io::Result<()>>> {
    let path = PathBuf::from(format!("/dev/ublkc{number}"));
    wait_until(FILE_TIMEOUT, || path.exists());
    let file: File = OpenOptions::new().read(true).write(true).open(&path)?;
    let (sender, receiver) = mpsc::channel();
    let thread = thread::Builder::new().name("ublk".to_owned()).spawn(move || {
        // The driver binds a queue to the thread that fetches, so that thread must make the queue, too.
        let queue = match Queue::new(file, export) {
            Ok(queue) => queue,
            Err(error) => {
                let _ = sender.send(Err(error));
                return Ok(());
            }
        };
        let _ = sender.send(Ok(()));
        queue.run()
    })?;
    receiver.recv().unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()))?;
    Ok(thread)
}
