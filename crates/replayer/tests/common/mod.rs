//! What the tests of the replayer share: streams, files with known data, loop devices.

#![allow(dead_code, reason = "each test file uses its own part")]

pub mod block_trace;

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp};
use weir_content::pattern::Key;
use weir_records::{Op, Request};
use weir_replayer::{Fidelity, Layout, Options, Route, Targets, replay};

pub const CLASS: &str = "text";

/// A read of `size_bytes` at `offset`, intended at `intended_ns`.
pub fn read(request: u64, intended_ns: i64, offset: u64, size_bytes: u64) -> Request {
    Request {
        request,
        class: Arc::from(CLASS),
        client: 0,
        device: None,
        file: None,
        op: Op::Read,
        offset,
        size_bytes,
        intended_ns,
        submitted_ns: None,
        completed_ns: None,
        deadline_ns: None,
        served_ns: None,
        status: 0,
        warmup: false,
    }
}

/// Poisson arrivals at `rate` per second for `seconds`, 4 KiB reads at random blocks of `length_bytes`.
pub fn poisson(rate: f64, seconds: f64, length_bytes: u64, seed: u64) -> Vec<Request> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let gaps = Exp::new(rate).unwrap();
    let mut at = 0.0;
    let mut stream = Vec::new();
    loop {
        at += gaps.sample(&mut rng);
        if at >= seconds {
            return stream;
        }
        let offset = rng.random_range(0..length_bytes / 4096) * 4096;
        stream.push(read(stream.len() as u64, (at * 1e9) as i64, offset, 4096));
    }
}

/// Any length and place within `length_bytes`, in 512-byte units.
pub fn random_place(rng: &mut impl Rng, length_bytes: u64) -> (u64, u64) {
    let size = rng.random_range(1..=64) * 512;
    (rng.random_range(0..=(length_bytes - size) / 512) * 512, size)
}

/// Creates a file that holds what the pattern says.
pub fn patterned(path: &Path, length_bytes: u64, file: Option<u32>, seed: u64) {
    let mut data = vec![0; length_bytes as usize];
    Key::new(CLASS, file, seed).fill(0, &mut data);
    std::fs::write(path, data).unwrap();
}

/// Sends a stream to one target and returns every row with the report.
pub fn send(stream: Vec<Request>, path: &Path, writes: bool, options: &Options) -> (Vec<Request>, Fidelity) {
    let layout = Layout { default: Some(Route::to(path)), allow_writes: writes, ..Layout::default() };
    let targets = Targets::open(&layout).unwrap();
    let mut rows = Vec::new();
    let fidelity = replay(stream.into_iter(), &targets, options, |row| rows.push(row)).unwrap();
    rows.sort_by_key(|row| row.request);
    (rows, fidelity)
}

/// A loop device over a file; detached when it goes out of scope.
pub struct LoopDevice {
    pub path: PathBuf,
    device: File,
}

const LOOP_SET_FD: libc::c_ulong = 0x4C00;
const LOOP_CLR_FD: libc::c_ulong = 0x4C01;
const LOOP_SET_DIRECT_IO: libc::c_ulong = 0x4C08;
const LOOP_CTL_GET_FREE: libc::c_ulong = 0x4C82;

impl LoopDevice {
    /// Attaches a free device to `backing`; `None`, with the reason on stderr, where that cannot be done.
    pub fn attach(backing: &Path, direct: bool) -> Option<Self> {
        match Self::try_attach(backing, direct) {
            Ok(device) => Some(device),
            Err(error) => {
                eprintln!("skipped: needs a loop device (root, /dev/loop-control): {error}");
                None
            }
        }
    }

    fn try_attach(backing: &Path, direct: bool) -> std::io::Result<Self> {
        let backing = OpenOptions::new().read(true).write(true).open(backing)?;
        let control = OpenOptions::new().read(true).write(true).open("/dev/loop-control")?;
        let mut attempt = 0;
        loop {
            attempt += 1;
            // SAFETY: the request takes no argument and returns a number.
            let number = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE as _) };
            if number < 0 {
                return Err(std::io::Error::last_os_error());
            }
            let path = PathBuf::from(format!("/dev/loop{number}"));
            let device = OpenOptions::new().read(true).write(true).open(&path)?;
            // SAFETY: takes a descriptor that is open during the call.
            if unsafe { libc::ioctl(device.as_raw_fd(), LOOP_SET_FD as _, backing.as_raw_fd()) } == 0 {
                if direct {
                    // SAFETY: takes an integer. Without it the device works through the page cache.
                    unsafe { libc::ioctl(device.as_raw_fd(), LOOP_SET_DIRECT_IO as _, 1) };
                }
                return Ok(LoopDevice { path, device });
            }
            let error = std::io::Error::last_os_error();
            // Someone else took it in between.
            if error.raw_os_error() != Some(libc::EBUSY) || attempt == 50 {
                return Err(error);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The device's folder in sysfs.
    pub fn sysfs(&self) -> PathBuf {
        Path::new("/sys/block").join(self.path.file_name().unwrap())
    }

    /// `major:minor`.
    pub fn numbers(&self) -> String {
        std::fs::read_to_string(self.sysfs().join("dev")).unwrap().trim().to_owned()
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        // SAFETY: takes no argument.
        if unsafe { libc::ioctl(self.device.as_raw_fd(), LOOP_CLR_FD as _) } != 0 {
            eprintln!("{}: not detached: {}", self.path.display(), std::io::Error::last_os_error());
        }
    }
}

/// Reads back what is at `offset`.
pub fn contents(path: &Path, offset: u64, size_bytes: u64) -> Vec<u8> {
    let mut data = vec![0; size_bytes as usize];
    File::open(path).unwrap().read_exact_at(&mut data, offset).unwrap();
    data
}
