//! Control commands to the ublk driver, one at a time.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;

use io_uring::types::Fd;
use io_uring::{IoUring, cqueue, opcode, squeue};

use super::abi::{self, ControlCommand, DeviceInfo, Parameters};

/// The driver's control file.
pub(super) struct Control {
    file: File,
    uring: IoUring<squeue::Entry128, cqueue::Entry>,
}

impl Control {
    pub fn open() -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(abi::CONTROL)?;
        Ok(Control { file, uring: IoUring::builder().build(4)? })
    }

    /// Features of the driver, as bits.
    pub fn features(&mut self) -> io::Result<u64> {
        let mut features = 0;
        self.carry_out(abi::GET_FEATURES, abi::ANY_DEVICE, Some(&mut features), 0)?;
        Ok(features)
    }

    /// Adds a device, and updates `info`.
    pub fn add(&mut self, info: &mut DeviceInfo) -> io::Result<()> {
        self.carry_out(abi::ADD_DEVICE, info.device, Some(info), 0)
    }

    /// Reads the information of a device.
    pub fn info(&mut self, device: u32) -> io::Result<DeviceInfo> {
        let mut info = DeviceInfo::default();
        self.carry_out(abi::GET_DEVICE, device, Some(&mut info), 0)?;
        Ok(info)
    }

    pub fn set_parameters(&mut self, device: u32, mut parameters: Parameters) -> io::Result<()> {
        self.carry_out(abi::SET_PARAMETERS, device, Some(&mut parameters), 0)
    }

    /// Makes the block device. Returns when this process, which must have fetched on every tag, has answered the kernel's
    /// first reads.
    pub fn start(&mut self, device: u32) -> io::Result<()> {
        self.carry_out::<()>(abi::START_DEVICE, device, None, u64::from(std::process::id()))
    }

    /// Stops the block device, once all requests are complete, and ends its server's fetching.
    pub fn stop(&mut self, device: u32) -> io::Result<()> {
        self.carry_out::<()>(abi::STOP_DEVICE, device, None, 0)
    }

    /// Deletes a device once it is no longer open.
    pub fn delete(&mut self, device: u32) -> io::Result<()> {
        match self.carry_out::<()>(abi::DELETE_DEVICE_ASYNC, device, None, 0) {
            Err(error) if error.raw_os_error() != Some(libc::ENODEV) => {
                // Kernels before 6.7 wait.
                self.carry_out::<()>(abi::DELETE_DEVICE, device, None, 0)
            }
            done => done,
        }
    }

    /// Numbers of devices with a mark.
    pub fn marked(&mut self, mark: u64) -> io::Result<Vec<u32>> {
        let mut found: Vec<u32> = devices()?;
        found.retain(|device| self.info(*device).is_ok_and(|info| info.mark == mark));
        Ok(found)
    }

    fn carry_out<T>(
        &mut self,
        number: u32,
        device: u32,
        payload: Option<&mut T>,
        data: u64,
    ) -> io::Result<()> {
        let length = if payload.is_some() { size_of::<T>() as u16 } else { 0 };
        let address = payload.map_or(0, |payload| std::ptr::from_mut(payload) as u64);
        let command =
            ControlCommand { device, queue: u16::MAX, length, address, data, ..ControlCommand::default() };
        let mut bytes = [0; 80];
        // SAFETY: a structure of integers without padding, shorter than the array.
        unsafe {
            std::ptr::copy_nonoverlapping(
                std::ptr::from_ref(&command).cast::<u8>(),
                bytes.as_mut_ptr(),
                size_of::<ControlCommand>(),
            );
        }
        let entry = opcode::UringCmd80::new(Fd(self.file.as_raw_fd()), number).cmd(bytes).build();
        // SAFETY: the payload is borrowed until the completion was seen, which is waited for.
        unsafe { self.uring.submission().push(&entry) }.map_err(|_| io::ErrorKind::ResourceBusy)?;
        loop {
            match self.uring.submit_and_wait(1) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The command may be running: its payload must stay valid.
                Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => {}
                Err(error) => return Err(error),
                Ok(_) => {}
            }
            if let Some(completion) = self.uring.completion().next() {
                return match completion.result() {
                    error @ ..0 => Err(io::Error::from_raw_os_error(-error)),
                    _ => Ok(()),
                };
            }
        }
    }
}

/// The numbers of all devices of the driver.
fn devices() -> io::Result<Vec<u32>> {
    let entries = match fs::read_dir("/sys/class/ublk-char") {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let number = |name: &str| name.strip_prefix("ublkc")?.parse().ok();
    Ok(entries.flatten().filter_map(|entry| number(entry.file_name().to_str()?)).collect())
}
