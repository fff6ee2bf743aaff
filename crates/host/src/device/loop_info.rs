//! Status of a loop device (`LOOP_GET_STATUS64`).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;

/// From `include/uapi/linux/loop.h`.
const LOOP_GET_STATUS64: libc::Ioctl = 0x4C05;

/// `struct loop_info64`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LoopInfo {
    /// `st_dev` of the backing file, as the kernel encodes it.
    pub device: u64,
    /// Inode of the backing file.
    pub inode: u64,
    /// Number of the backing file if it is a block device itself.
    pub rdevice: u64,
    /// Where in the backing file the device begins, in bytes.
    pub offset: u64,
    /// Its size in bytes; 0: to the end of the backing file.
    pub size_limit: u64,
    /// Its number.
    pub number: u32,
    /// Not used any more.
    pub encrypt_type: u32,
    /// Not used any more.
    pub encrypt_key_size: u32,
    /// `LO_FLAGS_*`.
    pub flags: u32,
    /// Name of the backing file, as its creator gave it; NUL-terminated.
    pub file_name: [u8; 64],
    /// Not used any more.
    pub crypt_name: [u8; 64],
    /// Not used any more.
    pub encrypt_key: [u8; 32],
    /// Not used any more.
    pub init: [u64; 2],
}

impl LoopInfo {
    /// All zero.
    pub const EMPTY: LoopInfo = LoopInfo {
        device: 0,
        inode: 0,
        rdevice: 0,
        offset: 0,
        size_limit: 0,
        number: 0,
        encrypt_type: 0,
        encrypt_key_size: 0,
        flags: 0,
        file_name: [0; 64],
        crypt_name: [0; 64],
        encrypt_key: [0; 32],
        init: [0; 2],
    };

    /// Status of an open loop device.
    ///
    /// # Errors
    /// `ENXIO` if it has no backing file; `ENOTTY` if it is no loop device.
    pub fn of(device: &File) -> io::Result<Self> {
        let mut info = LoopInfo::EMPTY;
        // SAFETY: `info` is the structure that LOOP_GET_STATUS64 fills, and the descriptor is open.
        if unsafe { libc::ioctl(device.as_raw_fd(), LOOP_GET_STATUS64, &mut info) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(info)
    }

    /// Name of the backing file, as its creator gave it; at most 63 bytes are kept.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        let end = self.file_name.iter().position(|byte| *byte == 0).unwrap_or(self.file_name.len());
        &self.file_name[..end]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structure_has_the_kernels_size() {
        assert_eq!(size_of::<LoopInfo>(), 232);
    }

    #[test]
    fn what_is_no_loop_device_says_so() {
        let file = File::open("/dev/null").unwrap();
        assert!(LoopInfo::of(&file).is_err());
    }
}
