//! Block device of a run: its identity, and the checks before it is used.

use std::fs;
use std::path::{Path, PathBuf};

use weir_blockserver::{Control, State};
use weir_host::device::Identity;
use weir_host::device::contents::LABEL_BYTES;
use weir_study::RunDevice;

use crate::Error;
use crate::context::testbed::Device;
use crate::device::array;
use crate::device::held_disk::{Held, Use, hold, hold_disk};

/// A disk with a request queue.
pub(crate) struct Queue {
    /// Its name in the study's device, for errors.
    pub(crate) device: String,
    /// Its kernel name, such as `loop3`.
    pub(crate) kernel_name: String,
    /// Modelled disks in it.
    pub(crate) heads: u32,
}

impl Queue {
    /// Path of a file below `/sys/block/NAME/`.
    pub(crate) fn sys(&self, file: &str) -> PathBuf {
        Path::new("/sys/block").join(&self.kernel_name).join(file)
    }
}

/// A device that passed all checks.
pub(crate) struct BlockDevice {
    /// Its name in the study.
    pub(crate) name: String,
    /// Its node, such as `/dev/loop3`; that of an array exists once it is assembled.
    pub(crate) node: PathBuf,
    /// Request queues of the device, or of the members of an array.
    pub(crate) queues: Vec<Queue>,
    /// Claims on the same disks, in the same order.
    pub(crate) held: Vec<Held>,
    /// Whether these disks are members of an array.
    pub(crate) is_array: bool,
    /// Size in bytes; of an array an upper bound.
    pub(crate) size_bytes: u64,
    /// State of the server of a modelled device.
    pub(crate) server: Option<State>,
    /// Connection to that server.
    pub(crate) control: Option<Control>,
    /// Whether that server has one of weir's schedulers in front of its disks.
    pub(crate) has_policies: bool,
}

impl BlockDevice {
    /// Finds a device, claims it, and checks that it may be used.
    ///
    /// # Errors
    /// The device is absent, differs from the testbed, is in use, or is neither blank nor permitted to be overwritten.
    pub(crate) fn open(wanted: &RunDevice, device: &Device) -> Result<Self, Error> {
        Self::find(wanted, device, Use::Own)
    }

    /// Finds a device that a server of a network file system has mounted, without touching it.
    ///
    /// # Errors
    /// The device is absent, or differs from the testbed.
    pub(crate) fn open_mounted(wanted: &RunDevice, device: &Device) -> Result<Self, Error> {
        Self::find(wanted, device, Use::Mounted)
    }

    fn find(wanted: &RunDevice, device: &Device, used: Use) -> Result<Self, Error> {
        let name = &wanted.name;
        let refuse = |text: String| Error::Refused(format!("device `{name}`: {text}"));
        match device {
            Device::Modelled { state } => {
                let state = State::load(state).map_err(|error| refuse(error.to_string()))?;
                let control = Control::connect(&state).map_err(|error| refuse(error.to_string()))?;
                let node = state.device.as_ref().ok_or_else(|| {
                    refuse("its block server has not made a device yet. Wait for weir serve".to_owned())
                })?;
                let held = hold(&node.path, used).map_err(refuse)?;
                state.check_device(node).map_err(refuse)?;
                let has_policies = state.spec.live.is_some();
                let node = node.path.clone();
                let found = Self::single(wanted, node, held);
                Ok(BlockDevice { has_policies, server: Some(state), control: Some(control), ..found })
            }
            Device::Disk(disk) => {
                let held = hold_disk(disk, used).map_err(refuse)?;
                let node = Path::new("/dev").join(&held.claim.identity().kernel_name);
                Ok(Self::single(wanted, node, held))
            }
            Device::Array { members } => {
                array::check(members.len(), wanted.heads, wanted.stripe_unit_kib).map_err(refuse)?;
                let held: Vec<Held> = members
                    .iter()
                    .map(|disk| hold_disk(disk, used).map_err(refuse))
                    .collect::<Result<_, Error>>()?;
                let sizes = held.iter().map(|held| held.claim.identity().size_bytes);
                Ok(BlockDevice {
                    name: name.clone(),
                    node: array::node(name),
                    size_bytes: sizes.min().unwrap_or(0) * held.len() as u64,
                    queues: held.iter().map(|held| queue(name, held, 1)).collect(),
                    held,
                    is_array: true,
                    server: None,
                    control: None,
                    has_policies: false,
                })
            }
        }
    }

    fn single(wanted: &RunDevice, node: PathBuf, held: Held) -> Self {
        BlockDevice {
            name: wanted.name.clone(),
            node,
            queues: vec![queue(&wanted.name, &held, wanted.heads)],
            size_bytes: held.claim.identity().size_bytes,
            held: vec![held],
            is_array: false,
            server: None,
            control: None,
            has_policies: false,
        }
    }

    /// Whether the device is a real disk, which undo must make blank; a modelled device discards its data itself.
    pub(crate) fn is_real(&self) -> bool {
        self.server.is_none()
    }

    /// Bytes that a run without a file system may use: a real disk has weir's label at its end.
    pub(crate) fn raw_bytes(&self) -> u64 {
        if self.is_real() { self.size_bytes.saturating_sub(LABEL_BYTES) } else { self.size_bytes }
    }

    /// Differences from when the device was opened: another backing file, another server, another disk.
    pub(crate) fn problems(&self) -> Vec<String> {
        let changed =
            self.held.iter().filter_map(|held| held.claim.verify().err()).map(|error| error.to_string());
        let served = self.server.as_ref().and_then(|state| {
            let device = state.device.as_ref()?;
            state.check_device(device).err()
        });
        changed.chain(served).map(|text| format!("device `{}`: {text}", self.name)).collect()
    }

    /// Kernel names of the device's disks.
    pub(crate) fn kernel_names(&self) -> impl Iterator<Item = &str> {
        self.queues.iter().map(|queue| queue.kernel_name.as_str())
    }

    /// Writes back and drops the page cache of the device itself.
    pub(crate) fn drop_cache(&self) -> std::io::Result<()> {
        weir_host::page_cache::drop_device(&self.node)
    }

    /// Turns the service times of a modelled device on or off; no effect on real disks.
    ///
    /// # Errors
    /// Its server does not answer.
    pub(crate) fn set_timing(&mut self, on: bool) -> Result<(), Error> {
        let Some(control) = &mut self.control else { return Ok(()) };
        control.timing(on).map(|_| ()).map_err(Error::failed)
    }

    /// Turns on the service times of a modelled device, and resets its statistics.
    ///
    /// # Errors
    /// Its server does not answer.
    pub(crate) fn start_timing(&mut self) -> Result<(), Error> {
        self.set_timing(true)?;
        let Some(control) = &mut self.control else { return Ok(()) };
        control.stats(true).map(|_| ()).map_err(Error::failed)
    }

    /// Bytes read from the disks since boot.
    pub(crate) fn read_bytes(&self) -> u64 {
        // Documentation/block/stat.rst: read sectors, of 512 bytes, are the third field.
        let of_disk = |name: &str| {
            let stat = fs::read_to_string(format!("/sys/block/{name}/stat")).unwrap_or_default();
            stat.split_ascii_whitespace().nth(2).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0)
                * 512
        };
        self.kernel_names().map(of_disk).sum()
    }
}

/// Refuses two devices of a run that are one disk. Identities are compared before any disk is claimed, since a claimed disk
/// would only be reported as in use.
///
/// # Errors
/// Two devices are one disk, or a device is absent.
pub(crate) fn check_distinct<'a>(
    devices: impl Iterator<Item = (&'a String, &'a Device)>,
) -> Result<(), Error> {
    let mut seen: Vec<(&String, Identity)> = Vec::new();
    for (name, device) in devices {
        for path in paths(device).map_err(|text| Error::Refused(format!("device `{name}`: {text}")))? {
            let identity =
                Identity::at(&path).map_err(|error| Error::Refused(format!("device `{name}`: {error}")))?;
            for (other, known) in &seen {
                if let Some(why) = known.same_disk(&identity) {
                    return Err(Error::Refused(format!(
                        "devices `{other}` ({}) and `{name}` ({}) are one disk: {why}. Give each its own disk",
                        known.describe(),
                        identity.describe()
                    )));
                }
            }
            seen.push((name, identity));
        }
    }
    Ok(())
}

fn paths(device: &Device) -> Result<Vec<PathBuf>, String> {
    match device {
        Device::Modelled { state } => {
            let state = State::load(state).map_err(|error| error.to_string())?;
            Ok(state.device.map(|device| device.path).into_iter().collect())
        }
        Device::Disk(disk) => Ok(vec![disk.path.clone()]),
        Device::Array { members } => Ok(members.iter().map(|disk| disk.path.clone()).collect()),
    }
}

fn queue(device: &str, held: &Held, heads: u32) -> Queue {
    Queue { device: device.to_owned(), kernel_name: held.claim.identity().kernel_name.clone(), heads }
}
