//! Structures and constants of the kernel's ublk driver (<linux/ublk_cmd.h>).

use std::mem::size_of;

/// Where devices are added and removed.
pub(super) const CONTROL: &str = "/dev/ublk-control";
/// Bytes of a sector, in which the driver counts.
pub(super) const SECTOR_BYTES: u64 = 512;
/// Device number for adding: any free one.
pub(super) const ANY_DEVICE: u32 = u32::MAX;

/// Commands have ioctl numbers.
pub(super) const IOCTL_ENCODED: u64 = 1 << 6;
/// Data are copied by `pread` and `pwrite` on the device's own file, at an offset that identifies the request (Linux
/// 6.5).
pub(super) const USER_COPY: u64 = 1 << 7;

/// Of the device's queue: it has a cache that flushes empty.
pub(super) const VOLATILE_CACHE: u32 = 1 << 2;
/// The device supports FUA writes.
pub(super) const FUA: u32 = 1 << 3;
/// The device is rotational.
pub(super) const ROTATIONAL: u32 = 1 << 1;

/// Parameters that are set: the basic ones and those of discards.
pub(super) const BASIC_AND_DISCARD: u32 = 0b11;

pub(super) const OP_READ: u32 = 0;
pub(super) const OP_WRITE: u32 = 1;
pub(super) const OP_FLUSH: u32 = 2;
pub(super) const OP_DISCARD: u32 = 3;
pub(super) const OP_WRITE_ZEROES: u32 = 5;
/// FUA flag of a request: it completes once its data are on the medium.
pub(super) const IO_FUA: u32 = 1 << 13;

pub(super) const GET_DEVICE: u32 = command(READ, 0x02, size_of::<ControlCommand>());
pub(super) const ADD_DEVICE: u32 = command(READ | WRITE, 0x04, size_of::<ControlCommand>());
pub(super) const DELETE_DEVICE: u32 = command(READ | WRITE, 0x05, size_of::<ControlCommand>());
pub(super) const START_DEVICE: u32 = command(READ | WRITE, 0x06, size_of::<ControlCommand>());
pub(super) const STOP_DEVICE: u32 = command(READ | WRITE, 0x07, size_of::<ControlCommand>());
pub(super) const SET_PARAMETERS: u32 = command(READ | WRITE, 0x08, size_of::<ControlCommand>());
pub(super) const GET_FEATURES: u32 = command(READ, 0x13, size_of::<ControlCommand>());
/// Deletes without waiting for open files (Linux 6.7).
pub(super) const DELETE_DEVICE_ASYNC: u32 = command(READ, 0x14, size_of::<ControlCommand>());

pub(super) const FETCH: u32 = command(READ | WRITE, 0x20, size_of::<QueueCommand>());
pub(super) const COMMIT_AND_FETCH: u32 = command(READ | WRITE, 0x21, size_of::<QueueCommand>());

const WRITE: u32 = 1;
const READ: u32 = 2;

/// `_IOC` of <linux/ioctl.h>.
const fn command(direction: u32, number: u32, size: usize) -> u32 {
    direction << 30 | (size as u32) << 16 | (b'u' as u32) << 8 | number
}

/// `struct ublksrv_ctrl_cmd`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct ControlCommand {
    pub device: u32,
    /// All ones where the command is of no queue.
    pub queue: u16,
    /// Bytes at `address`.
    pub length: u16,
    pub address: u64,
    pub data: u64,
    /// Only of devices of unprivileged users.
    pub path_length: u16,
    pub unused: u16,
    pub reserved: u32,
}

/// `struct ublksrv_ctrl_dev_info`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DeviceInfo {
    pub queues: u16,
    pub queue_depth: u16,
    pub state: u16,
    pub unused: u16,
    pub most_request_bytes: u32,
    pub device: u32,
    pub server_pid: i32,
    pub unused_too: u32,
    pub flags: u64,
    /// The server's to use; the driver only keeps it.
    pub mark: u64,
    pub owner: [u32; 2],
    pub reserved: [u64; 2],
}

/// The used part of `struct ublk_params`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct Parameters {
    /// Bytes of all.
    pub length: u32,
    pub types: u32,
    pub attributes: u32,
    pub logical_block_shift: u8,
    pub physical_block_shift: u8,
    pub optimal_io_shift: u8,
    pub least_io_shift: u8,
    pub most_sectors: u32,
    pub chunk_sectors: u32,
    pub sectors: u64,
    pub boundary_mask: u64,
    pub discard_alignment: u32,
    pub discard_granularity: u32,
    pub most_discard_sectors: u32,
    pub most_zeroes_sectors: u32,
    pub most_discard_segments: u16,
    pub reserved: u16,
    pub padding: u32,
}

/// `struct ublksrv_io_desc`: a request.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Descriptor {
    /// The operation in the lowest byte, flags above it.
    pub op_flags: u32,
    pub sectors: u32,
    pub first_sector: u64,
    pub address: u64,
}

/// `struct ublksrv_io_cmd`: a command on a request.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct QueueCommand {
    pub queue: u16,
    pub tag: u16,
    /// Bytes done, or an errno below zero.
    pub result: i32,
    pub address: u64,
}

impl QueueCommand {
    /// As encoded in a submission.
    pub fn to_bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..2].copy_from_slice(&self.queue.to_ne_bytes());
        bytes[2..4].copy_from_slice(&self.tag.to_ne_bytes());
        bytes[4..8].copy_from_slice(&self.result.to_ne_bytes());
        bytes[8..].copy_from_slice(&self.address.to_ne_bytes());
        bytes
    }
}

/// Where in the device's own file the data of a request of queue 0 are.
pub(super) fn data_offset(tag: u16) -> u64 {
    0x8000_0000 + (u64::from(tag) << 25)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_and_numbers_are_the_kernels() {
        assert_eq!(size_of::<ControlCommand>(), 32);
        assert_eq!(size_of::<DeviceInfo>(), 64);
        assert_eq!(size_of::<Descriptor>(), 24);
        assert_eq!(size_of::<QueueCommand>(), 16);
        // The basic parameters end at 40, those of discards at 60; a structure of 64-bit words has 64.
        assert_eq!(size_of::<Parameters>(), 64);
        assert_eq!(std::mem::offset_of!(Parameters, discard_alignment), 40);
        // Computed by the header's own macros.
        assert_eq!(ADD_DEVICE, 0xc020_7504);
        assert_eq!(GET_FEATURES, 0x8020_7513);
        assert_eq!(FETCH, 0xc010_7520);
        assert_eq!(data_offset(3), 0x8000_0000 + 3 * (32 << 20));
    }

    #[test]
    fn an_answer_is_laid_out_as_the_structure() {
        let answer = QueueCommand { queue: 0, tag: 7, result: -5, address: 0 };
        // SAFETY: both are 16 bytes without padding.
        let laid_out: [u8; 16] = unsafe { std::mem::transmute(answer) };
        assert_eq!(answer.to_bytes(), laid_out);
    }
}
