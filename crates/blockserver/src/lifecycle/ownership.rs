//! Ownership of kernel devices: recognised by the server's token or mark, never by name alone.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use weir_host::device::LoopInfo;

use crate::exports::queue::QueueSettings;
use crate::exports::{loop_device, ublk};
use crate::state::{BlockDevice, State};

impl State {
    /// Whether a recorded device is still the one that this server made.
    pub(crate) fn is_ours(&self, device: &BlockDevice) -> bool {
        match self.mark() {
            Some(mark) if ublk::is_of_driver(device) => ublk::is_ours(device, mark),
            _ => loop_device::is_ours(device, &self.token),
        }
    }

    /// Loop device that was made with the token, recorded or not.
    pub(crate) fn unrecorded_loop(&self) -> Option<BlockDevice> {
        let names = fs::read_dir("/sys/block").into_iter().flatten().flatten().map(|entry| entry.file_name());
        let names = names.filter_map(|name| name.into_string().ok()).filter(|name| name.starts_with("loop"));
        let device = |name: String| {
            let numbers = fs::read_to_string(format!("/sys/block/{name}/dev")).ok()?;
            let (major, minor) = numbers.trim().split_once(':')?;
            let (major, minor) = (major.parse().ok()?, minor.parse().ok()?);
            Some(BlockDevice { path: Path::new("/dev").join(name), major, minor })
        };
        names.filter_map(device).find(|device| {
            !self.block_devices().any(|known| known == device) && loop_device::is_ours(device, &self.token)
        })
    }

    /// Checks that a block device is still the one that this server made, over its own file.
    ///
    /// # Errors
    /// Another file, or none, is attached to the loop device, or the server's file is missing.
    pub fn check_device(&self, device: &BlockDevice) -> Result<(), String> {
        let node = device.path.display();
        if !self.is_ours(device) {
            return Err(format!(
                "{node} is not the device of its server any more (another file is attached, or none). Remove it (weir serve --down), and serve it again"
            ));
        }
        if ublk::is_of_driver(device) {
            return Ok(());
        }
        let file = fs::metadata(&self.file).map_err(|error| format!("{}: {error}", self.file.display()))?;
        let info = File::open(&device.path).and_then(|open| LoopInfo::of(&open));
        let info = info.map_err(|error| format!("{node}: {error}"))?;
        if (info.device, info.inode, info.offset) == (file.dev(), file.ino(), 0) {
            return Ok(());
        }
        Err(format!("{node} is over another file (expected {})", self.file.display()))
    }

    /// Removes the detached loop device, if this server added it, or restores its queue settings.
    ///
    /// # Errors
    /// The kernel refuses a value.
    pub(crate) fn give_back_loop(&self) -> io::Result<GivenBack> {
        if self.added_loop.as_ref().is_some_and(loop_device::remove) {
            return Ok(GivenBack::Removed);
        }
        match self.queue.as_ref().map_or(Ok(false), QueueSettings::restore_detached)? {
            true => Ok(GivenBack::Restored),
            false => Ok(GivenBack::Nothing),
        }
    }
}

/// What was left to do for a detached loop device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GivenBack {
    /// It is gone.
    Removed,
    /// It has its former settings.
    Restored,
    /// There was nothing to do.
    Nothing,
}
