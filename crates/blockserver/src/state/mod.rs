//! State files of servers: a record of everything that a server has made, by which another process can remove it.

pub(crate) mod block_device;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write};
use std::num::NonZeroU64;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weir_host::process::{Handle, Identity};

pub use self::block_device::{AddedLoop, BlockDevice, ClassDevice};
use crate::error::Error;
use crate::exports::queue::QueueSettings;
use crate::spec::ServeSpec;

/// Record of a server. It is written before or directly after each object is made: no object is left without a record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Specification of the device.
    pub spec: ServeSpec,
    /// The server's process.
    pub pid: u32,
    /// Start time of that process in clock ticks since boot: distinguishes it from a later one with the same PID.
    pub pid_started_ticks: u64,
    /// Random token of this server: source of its FUSE mount, file name of its loop device, and mark of its ublk devices.
    pub token: String,
    /// Mount point of the FUSE file system.
    pub mountpoint: PathBuf,
    /// File with the data in that file system.
    pub file: PathBuf,
    /// Control socket.
    pub socket: PathBuf,
    /// Log, if the server runs in the background.
    pub log: Option<PathBuf>,
    /// The block device; `None` until it is ready, or if the server has none.
    pub device: Option<BlockDevice>,
    /// The block devices of a partitioned server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub class_devices: Vec<ClassDevice>,
    /// Whether all exports are ready.
    #[serde(default)]
    pub ready: bool,
    /// The loop device that was added to the host's for this server, and goes with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added_loop: Option<AddedLoop>,
    /// Former queue settings of the loop device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueSettings>,
    /// Address of the server for NBD clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nbd: Option<String>,
}

/// State file of the device `name` in `state_dir`.
pub fn state_path(state_dir: &Path, name: &str) -> PathBuf {
    state_dir.join(format!("{name}.json"))
}

/// The state files in `state_dir`, in order of name. An absent folder has none.
///
/// # Errors
/// [`Error::System`] if the folder cannot be read.
pub fn states(state_dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = match fs::read_dir(state_dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(Error::path("read the folder", state_dir))?,
    };
    let mut files: Vec<PathBuf> = (entries.flatten().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    files.sort();
    Ok(files)
}

/// Maximum size of a state file, in bytes.
const MOST_BYTES: u64 = 1 << 24;

impl State {
    /// Reads a state file.
    ///
    /// # Errors
    /// [`Error::System`] if the file cannot be read, [`Error::State`] if it is not a state file.
    pub fn load(path: &Path) -> Result<Self, Error> {
        let mut text = String::new();
        let file = File::open(path).map_err(Error::path("read the state file", path))?;
        file.take(MOST_BYTES).read_to_string(&mut text).map_err(Error::path("read the state file", path))?;
        serde_json::from_str(&text)
            .map_err(|error| Error::State { path: path.to_path_buf(), message: error.to_string() })
    }

    /// Claims the state file for a new server. Fails with [`io::ErrorKind::AlreadyExists`] if there is one.
    pub(crate) fn claim(&self, path: &Path) -> io::Result<()> {
        // Written under another name and linked: the name appears with its complete content, and only if it is free.
        let aside = self.write_aside(path)?;
        let linked = fs::hard_link(&aside, path);
        fs::remove_file(&aside)?;
        linked
    }

    /// Replaces the state file.
    pub(crate) fn save(&self, path: &Path) -> io::Result<()> {
        fs::rename(self.write_aside(path)?, path)
    }

    fn write_aside(&self, path: &Path) -> io::Result<PathBuf> {
        // Named as unfinished files of `weir_host::durable`: files of a killed server are found by its PID.
        let aside = path.with_extension(format!("{}.{}.partial", self.token, std::process::id()));
        let mut file: File =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&aside)?;
        file.write_all(&serde_json::to_vec_pretty(self)?)?;
        Ok(aside)
    }

    /// All its block devices.
    pub fn block_devices(&self) -> impl Iterator<Item = &BlockDevice> {
        self.device.iter().chain(self.class_devices.iter().map(|of| &of.device))
    }

    /// The token as a number: the mark of the server's ublk devices.
    pub(crate) fn mark(&self) -> Option<NonZeroU64> {
        NonZeroU64::new(u64::from_str_radix(self.token.rsplit('-').next()?, 16).ok()?)
    }

    /// The Unix socket for NBD, if there is one.
    pub(crate) fn nbd_socket(&self) -> PathBuf {
        self.socket.with_extension("nbd")
    }

    /// The server's process, if it is still running.
    pub(crate) fn process(&self) -> Option<Handle> {
        Identity { pid: self.pid, started_ticks: self.pid_started_ticks }.open()
    }
}
