//! Kernel request queue of a disk: scheduler, queue depth, read-ahead, writeback throttling and merging are set and read back.
//!
//! Former values are recorded and restored by `queue_record.rs`.

use std::fs;
use std::path::Path;

use weir_host::sysfs::selected;
use weir_study::{Run, Settings};

use crate::Error;
use crate::device::block_device::{BlockDevice, Queue};
use crate::device::queue_record;

/// Requests that the scheduler may hold: the kernel's default for a single queue.
const SCHEDULER_REQUESTS: u32 = 256;

/// No merging (`nomerges`, Documentation/ABI/stable/sysfs-block) where one of weir's schedulers is behind the queue: it must
/// get requests as they were sent. The kernel's schedulers keep the kernel's merging.
const NO_MERGES: &str = "2";

/// Maximum tags of a loop device.
const MOST_TAGS: u32 = 128;

/// Tags of a queue: `queue_depth` for each head, so that each striped disk has as many as a single one.
fn tags(queue: &Queue, settings: &Settings) -> u32 {
    settings.queue_depth.saturating_mul(queue.heads).min(MOST_TAGS)
}

/// Checks a queue before anything is touched.
///
/// # Errors
/// The scheduler is not in this kernel.
pub(crate) fn check(queue: &Queue, settings: &Settings) -> Result<(), Error> {
    let path = queue.sys("queue/scheduler");
    let text = fs::read_to_string(&path).map_err(|_| {
        Error::Refused(format!("device `{}`: {} has no I/O scheduler", queue.device, queue.kernel_name))
    })?;
    let available: Vec<&str> =
        text.split_ascii_whitespace().map(|word| word.trim_matches(['[', ']'])).collect();
    let wanted = settings.scheduler.name.as_str();
    if available.contains(&wanted) {
        return Ok(());
    }
    Err(Error::Refused(format!(
        "device `{}`: scheduler {wanted} is not in this kernel (found {}). Load its module, or leave it out of the study",
        queue.device,
        available.join(", ")
    )))
}

/// Applies the run's settings to all queues of a device. Former values are recorded in `state` first.
///
/// # Errors
/// The kernel does not accept a value.
pub(crate) fn apply_all(run: &Run, device: &BlockDevice, state: &Path) -> Result<(), Error> {
    let settings = run.kernel_settings(&device.name);
    let is_of_kernel = run.scheduler_of(&device.name).is_of_kernel();
    device.queues.iter().try_for_each(|queue| apply(queue, &settings, is_of_kernel, state))
}

/// Differences between the queues of a device and the run's settings: checked before and after the measurement.
pub(crate) fn problems<'a>(run: &Run, device: &'a BlockDevice) -> impl Iterator<Item = String> + use<'a> {
    let settings = run.kernel_settings(&device.name);
    let is_of_kernel = run.scheduler_of(&device.name).is_of_kernel();
    device.queues.iter().filter_map(move |queue| verify(queue, &settings, is_of_kernel).err())
}

/// Applies scheduler, tunables, queue depth, writeback throttling and read-ahead. Former values are recorded in `state` first.
///
/// # Errors
/// The kernel does not accept a value.
fn apply(queue: &Queue, settings: &Settings, is_of_kernel: bool, state: &Path) -> Result<(), Error> {
    let wanted = settings.scheduler.name.as_str();
    let mut ours = vec![
        ("scheduler", "none".to_owned()),
        ("scheduler", wanted.to_owned()),
        ("read_ahead_kb", settings.read_ahead_kib.to_string()),
    ];
    if !is_of_kernel {
        ours.push(("nomerges", NO_MERGES.to_owned()));
    }
    queue_record::note(state, &queue.kernel_name, &ours)?;
    // The driver's tags can be set only without a scheduler. Writing the value that is shown has no effect, even if the tags
    // differ: hence another value first.
    set(queue, "scheduler", "none")?;
    let depth = tags(queue, settings);
    let detour = if depth > 4 { depth - 1 } else { depth + 1 };
    set(queue, "nr_requests", &detour.to_string())?;
    set(queue, "nr_requests", &depth.to_string())?;
    if wanted != "none" {
        set(queue, "scheduler", wanted)?;
        set(queue, "nr_requests", &SCHEDULER_REQUESTS.to_string())?;
    }
    for (tunable, value) in &settings.scheduler.tunables {
        let path = queue.sys("queue/iosched").join(tunable);
        if !path.exists() {
            let known: Vec<String> = fs::read_dir(queue.sys("queue/iosched"))
                .into_iter()
                .flatten()
                .flatten()
                .map(|entry| entry.file_name().to_string_lossy().into_owned())
                .collect();
            let list = known.join(", ");
            return Err(Error::Failed(format!(
                "scheduler {} has no tunable {tunable} (found {list})",
                settings.scheduler.name
            )));
        }
        // Not recorded: the tunable disappears with its scheduler.
        weir_host::sysfs::write(&path, value)
            .map_err(Error::io(&format!("cannot write {value:?} to"), &path))?;
    }
    // Loop devices of some kernels have no writeback throttling.
    let throttling = queue.sys("queue/wbt_lat_usec");
    if throttling.exists() && fs::read_to_string(&throttling).is_ok() {
        set(queue, "wbt_lat_usec", &settings.wbt_lat_usec.to_string())?;
    } else if settings.wbt_lat_usec != 0 {
        return Err(Error::Failed(format!("{} has no writeback throttling", queue.kernel_name)));
    }
    set(queue, "read_ahead_kb", &settings.read_ahead_kib.to_string())?;
    if !is_of_kernel {
        set(queue, "nomerges", NO_MERGES)?;
    }
    verify(queue, settings, is_of_kernel).map_err(Error::Failed)
}

/// Writes a file of the queue, unless it has the value already.
fn set(queue: &Queue, file: &str, value: &str) -> Result<(), Error> {
    let path = queue.sys("queue").join(file);
    if says(&path, value).is_ok() {
        return Ok(());
    }
    weir_host::sysfs::write(&path, value).map_err(Error::io(&format!("cannot write {value:?} to"), &path))
}

/// Checks that the queue has the run's settings.
fn verify(queue: &Queue, settings: &Settings, is_of_kernel: bool) -> Result<(), String> {
    let requests = if settings.scheduler.name == "none" { tags(queue, settings) } else { SCHEDULER_REQUESTS };
    let mut wanted = vec![
        (queue.sys("queue/scheduler"), settings.scheduler.name.clone()),
        (queue.sys("queue/nr_requests"), requests.to_string()),
        (queue.sys("queue/read_ahead_kb"), settings.read_ahead_kib.to_string()),
    ];
    if !is_of_kernel {
        wanted.push((queue.sys("queue/nomerges"), NO_MERGES.to_owned()));
    }
    for (tunable, value) in &settings.scheduler.tunables {
        wanted.push((queue.sys("queue/iosched").join(tunable), value.clone()));
    }
    wanted.iter().try_for_each(|(path, value)| says(path, value))
}

fn says(path: &Path, wanted: &str) -> Result<(), String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let found = selected(&text);
    if found == wanted {
        Ok(())
    } else {
        Err(format!("{}: wrong value (found {found}, expected {wanted})", path.display()))
    }
}
