//! Limits of specifications, and costs of the parts of a run.
//!
//! Every limit of weir's input is here or in `crates/study/src/limits.rs`, which adds those of a whole plan. A limit is
//! far above what the shipped studies need (the largest run has 4.2 million requests) and below what a machine of 32 GiB
//! can carry out.
//!
//! The costs were measured by the maximum resident size of `weir generate` and `weir simulate` (GNU time, x86-64): the
//! difference of two runs that differ only in the count. They are rounded up.

/// Requests of one run. Their table has 18 GB, and virtual time needs an hour for them.
pub const MOST_REQUESTS: f64 = 1e9;
/// Memory of one run: half of a machine of 32 GiB.
pub const MOST_MEMORY_BYTES: f64 = (16_u64 << 30) as f64;
/// Offsets and sizes are multiples of this: direct I/O needs it on every file system in use.
pub const ALIGNMENT_BYTES: u64 = 4096;
/// Largest single request: the limit of a loop device and io_uring.
pub const LARGEST_REQUEST_BYTES: u64 = 16 << 20;
/// Files of one class: each is an open file on devices.
pub const MOST_FILES: u32 = 10_000_000;
/// Size of one file: 1 PiB. Sums of offsets stay far below 2^64.
pub const LARGEST_FILE_BYTES: u64 = 1 << 50;
/// Size of all files of one class: 4 PiB.
pub const MOST_FILE_BYTES: f64 = (1_u64 << 52) as f64;
/// Blocks that one request may be cut into: each is a row that is ready before the first is sent.
pub const MOST_BLOCKS_PER_REQUEST: u64 = 1 << 18;
/// Request sizes of a closed loop: those of fio's `bssplit` (`BSSPLIT_MAX`).
pub const MOST_CLOSED_SIZES: usize = 64;
/// Maximum frames of a client in one round.
pub const MOST_FRAMES_PER_ROUND: f64 = 1e5;
/// Windows that a target of a workload may divide its stream into: 16 bytes each.
pub const MOST_WINDOWS: f64 = 1e7;

/// A client of a class: generator of random numbers, clock, place in the queue. Measured: 482 bytes (poisson, on-off, frames),
/// 404 bytes (sessions), 521 bytes (of a run in virtual time).
pub const CLIENT_BYTES: f64 = 600.0;
/// A disk of a client of kind `server`: its plan of the day. Measured: 69 kB.
pub const SERVER_DISK_BYTES: f64 = 72_000.0;
/// A file of a class: size, rank, table of popularity, place on the disks. Measured: 53 bytes.
pub const FILE_BYTES: f64 = 64.0;
/// A frame of a movie that is kept.
pub const FRAME_BYTES: f64 = 8.0;

/// Estimated demand of a class during one run, for limits and display.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Demand {
    /// Requests, blocks counted one by one.
    pub requests: f64,
    /// Memory for clients, files and movies, in bytes.
    pub memory_bytes: f64,
    /// Size of all files, in bytes.
    pub file_bytes: f64,
}

impl Demand {
    /// Two classes together.
    #[must_use]
    pub fn with(self, other: Demand) -> Demand {
        Demand {
            requests: self.requests + other.requests,
            memory_bytes: self.memory_bytes + other.memory_bytes,
            file_bytes: self.file_bytes + other.file_bytes,
        }
    }

    /// First quantity beyond a limit, as a message.
    pub fn beyond(&self) -> Option<String> {
        let bytes = |bytes: f64| format!("{:.1} GiB", bytes / f64::from(1 << 30));
        if self.requests > MOST_REQUESTS {
            return Some(format!(
                "about {:.3e} requests in one run; at most {MOST_REQUESTS:.0e} are carried out",
                self.requests
            ));
        }
        (self.memory_bytes > MOST_MEMORY_BYTES).then(|| {
            format!(
                "about {} of memory in one run; at most {} are used",
                bytes(self.memory_bytes),
                bytes(MOST_MEMORY_BYTES)
            )
        })
    }
}
