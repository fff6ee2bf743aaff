//! I/O cost model of a run's disks (iocost), set in the kernel and read back.

use std::fs;
use std::path::PathBuf;

use serde::Serialize;
use weir_daemons::{Disk, cost_file};
use weir_study::{CostBounds, CostModel};

use crate::Error;
use crate::cgroup::cost_probe;
use crate::context::journal::{Change, Journal};
use crate::context::run_context::RunContext;
use crate::device::block_device::BlockDevice;
use crate::device::kernel_queue;
use crate::device::server_scheduler;

const MODEL: &str = "io.cost.model";
const BOUNDS: &str = "io.cost.qos";

/// The cost model of one disk.
pub(crate) struct Cost {
    kernel_name: String,
    disk: Disk,
    model: CostModel,
    bounds: CostBounds,
    /// The part of a measured model that is set, in %.
    scale_percent: Option<f64>,
}

/// `cost` of a disk in `observed.json`.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    model: CostModel,
    bounds: String,
    /// Whether the model was measured before the run; otherwise the study gives it.
    calibrated: bool,
    /// The part of the measured model that is set, in %.
    #[serde(skip_serializing_if = "Option::is_none")]
    scale_percent: Option<f64>,
}

/// Checks that this kernel has a cost model.
///
/// # Errors
/// Missing feature of the kernel.
pub(crate) fn check() -> Result<(), String> {
    match [MODEL, BOUNDS].into_iter().find(|name| cost_file(name).is_none()) {
        Some(name) => Err(format!("this kernel has no {name} (CONFIG_BLK_CGROUP_IOCOST)")),
        None => Ok(()),
    }
}

/// Cost model of each disk of a run: the study's, or one measured now, under the run's scheduler and queue depth.
///
/// # Errors
/// A disk cannot be measured.
pub(crate) fn of(context: &RunContext<'_>, devices: &mut [BlockDevice]) -> Result<Vec<Cost>, Error> {
    let RunContext { run, options, .. } = *context;
    let wanted = run.settings.io_cost.unwrap_or_default();
    let mut costs = Vec::new();
    for device in devices {
        let mut measured = None;
        let settings = run.kernel_settings(&device.name);
        if wanted.model.is_none() {
            kernel_queue::apply_all(run, device, &options.state)?;
            server_scheduler::pass_through(run, device)?;
            device.set_timing(true)?;
        }
        for queue in &device.queues {
            let node = PathBuf::from("/dev").join(&queue.kernel_name);
            if wanted.model.is_none() {
                let size_bytes = device.size_bytes / device.queues.len().max(1) as u64;
                // Twice the queue depth: the disk never waits for the next request.
                let at_once = settings.queue_depth.saturating_mul(queue.heads).saturating_mul(2);
                measured = Some(cost_probe::measure(&node, size_bytes, at_once, &options.stop)?);
            }
            let scaled = measured.map(|measured: CostModel| measured.scaled(wanted.scale_percent));
            let Some(model) = wanted.model.or(scaled) else { continue };
            let disk = Disk::of(&node).map_err(Error::failed)?;
            let kernel_name = queue.kernel_name.clone();
            costs.push(Cost {
                kernel_name,
                disk,
                model,
                bounds: wanted.bounds,
                scale_percent: measured.map(|_| wanted.scale_percent),
            });
        }
        if measured.is_some() {
            device.set_timing(false)?;
        }
    }
    Ok(costs)
}

impl Cost {
    pub(crate) fn kernel_name(&self) -> &str {
        &self.kernel_name
    }

    /// The lines written to the kernel, by file.
    fn lines(&self) -> [(&'static str, String); 2] {
        [
            (MODEL, format!("ctrl=user model=linear {}", self.model.words())),
            (BOUNDS, format!("enable=1 ctrl=user {}", self.bounds.words())),
        ]
    }

    /// Sets the model in the kernel, and reads it back.
    ///
    /// # Errors
    /// The kernel refuses, or reads back another value.
    pub(crate) fn set(&self, journal: &mut Journal) -> Result<(), Error> {
        for (name, line) in self.lines() {
            let path = cost_file(name).ok_or_else(|| {
                Error::Failed(format!("{name} is missing: the disk or its control group was removed"))
            })?;
            let before = way_back(name, line_of(name, self.disk).as_deref());
            let text = format!("{} {line}", self.disk.key());
            journal.note(Change::Setting {
                path: path.clone(),
                before: format!("{} {before}", self.disk.key()),
                set: Some(text.clone()),
            })?;
            fs::write(&path, &text).map_err(Error::io(&format!("cannot write {text:?} to"), &path))?;
            if let Some(says) = line_of(name, self.disk) {
                journal.note_read_back(&path, format!("{} {says}", self.disk.key()))?;
            }
        }
        self.problem().map_or(Ok(()), |problem| Err(Error::Failed(problem)))
    }

    /// Differences from the values that were set.
    pub(crate) fn problem(&self) -> Option<String> {
        self.lines().into_iter().find_map(|(name, wanted)| {
            let found = line_of(name, self.disk).unwrap_or_default();
            (found != wanted).then(|| {
                format!("wrong {name} of {} (found `{found}`, expected `{wanted}`)", self.kernel_name)
            })
        })
    }

    pub(crate) fn report(&self) -> Report {
        Report {
            model: self.model,
            bounds: self.bounds.words(),
            calibrated: self.scale_percent.is_some(),
            scale_percent: self.scale_percent,
        }
    }
}

/// The kernel's line for a disk, after its device number.
fn line_of(name: &str, disk: Disk) -> Option<String> {
    let text = fs::read_to_string(cost_file(name)?).ok()?;
    let key = disk.key();
    text.lines().find_map(|line| Some(line.strip_prefix(&key)?.strip_prefix(' ')?.trim().to_owned()))
}

/// Line that restores the kernel's former values for a disk. The kernel chooses its own values again.
fn way_back(name: &str, before: Option<&str>) -> String {
    let none = if name == BOUNDS { "enable=0 ctrl=auto" } else { "ctrl=auto" };
    match before {
        Some(line) if line.contains("ctrl=user") => line.to_owned(),
        Some(line) if line.contains("enable=1") => "enable=1 ctrl=auto".to_owned(),
        _ => none.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_before_is_what_is_set_again() {
        assert_eq!(way_back(BOUNDS, None), "enable=0 ctrl=auto");
        assert_eq!(way_back(MODEL, None), "ctrl=auto");
        assert_eq!(way_back(BOUNDS, Some("enable=1 ctrl=auto rpct=0.00")), "enable=1 ctrl=auto");
        assert_eq!(way_back(BOUNDS, Some("enable=0 ctrl=auto rpct=0.00")), "enable=0 ctrl=auto");
        let line = "ctrl=user model=linear rbps=1 rseqiops=2 rrandiops=3 wbps=4 wseqiops=5 wrandiops=6";
        assert_eq!(way_back(MODEL, Some(line)), line);
    }
}
