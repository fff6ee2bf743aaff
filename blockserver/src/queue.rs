//! The block layer's queue of a new device: always the same one.

use std::fs;
use std::io;

use crate::state::BlockDevice;

/// What the loop driver makes unless told otherwise.
const DEFAULT_DEPTH: u32 = 128;
const DEPTH_PARAMETER: &str = "/sys/module/loop/parameters/hw_queue_depth";

/// Requests that a new loop device has under way at most.
pub(crate) fn loop_depth() -> u32 {
    let depth = fs::read_to_string(DEPTH_PARAMETER).ok().and_then(|text| text.trim().parse().ok());
    depth.unwrap_or(DEFAULT_DEPTH)
}

/// Gives the queue of a new device the settings of a fresh one, and says whether the device has moving parts.
///
/// A loop device that was used before keeps its scheduler, its depth and whether requests are merged, so a device would
/// depend on what ran before it.
/// Whether it rotates decides how schedulers and file systems treat it, and for a file in FUSE the kernel assumes that it does not.
pub(crate) fn prepare(device: &BlockDevice, depth: u32, rotational: bool) -> io::Result<()> {
    let set = |name: &str, value: &str| {
        let file = format!("/sys/dev/block/{}:{}/queue/{name}", device.major, device.minor);
        fs::write(&file, value).map_err(|error| io::Error::new(error.kind(), format!("{file}: {error}")))
    };
    set("scheduler", "none")?;
    // The kernel ignores a value that it believes to have: after a lower depth the way back to the full one leads over another.
    set("nr_requests", &(depth - 1).max(4).to_string())?;
    set("nr_requests", &depth.to_string())?;
    set("nomerges", "0")?;
    set("rotational", if rotational { "1" } else { "0" })
}
