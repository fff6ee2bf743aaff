//! weir's schedulers in front of modelled devices: set in their block servers, and read back.

use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde::Serialize;
use weir_blockserver::{Arrangement, ClassSpec, ContractSpec, SchedulingStats};
use weir_study::{Run, RunClass, RunDevice, SimulatedClass};
use weir_workload::{Access, Arrivals, Deadline, Popularity, Workload};

use crate::Error;
use crate::device::block_device::BlockDevice;
use crate::files::extents;
use crate::files::placement::Placement;

/// Scheduler of the server where the kernel's scheduler orders requests: it passes them through unchanged.
const PASS_THROUGH: &str = "fcfs";
const PASS_THROUGH_DEPTH: u32 = 128;
/// Interval between requests to a busy server.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Scheduler of a device's server during a run.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct InForce {
    /// Scheduler and classes of the run.
    asked: Arrangement,
    /// Scheduler and classes at the end, as the server reports; absent if it does not answer.
    found: Option<Arrangement>,
    /// Whether time 0 of models and scheduler is the run's epoch; otherwise it is somewhat earlier, since requests came before.
    pub(crate) began_with_run: bool,
    /// Statistics of each class, as the server reports; absent if it does not answer.
    pub(crate) stats: Option<SchedulingStats>,
}

/// Scheduler and classes that a server was given.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    device: String,
    arrangement: Arrangement,
}

/// Sets scheduler and classes in the server of a device, and reads them back, before service times are turned on.
///
/// # Errors
/// [`Error::Failed`] if the server refuses them, or reads back others.
pub(crate) fn arrange(
    run: &Run,
    device: &mut BlockDevice,
    places: &[Placement],
) -> Result<Option<Asked>, Error> {
    let Some(wanted) = run.devices.iter().find(|wanted| wanted.name == device.name) else { return Ok(None) };
    let name = device.name.clone();
    let Some(control) = device.control.as_mut().filter(|_| device.has_policies) else { return Ok(None) };
    let asked = arrangement(run, wanted, places)?;
    let failed = |what: &str, error: weir_blockserver::Error| {
        Error::Failed(format!("device `{name}`: {what} scheduler `{}`: {error}", asked.policy))
    };
    control.arrange(&asked).map_err(|error| failed("the block server refused", error))?;
    let found = control.arrangement().map_err(|error| failed("cannot read back", error))?;
    if found != asked.completed() {
        let policy = &found.policy;
        return Err(Error::Failed(format!(
            "device `{name}`: wrong scheduler or classes in the block server (found `{policy}`, expected `{}`)",
            asked.policy
        )));
    }
    Ok(Some(Asked { device: name, arrangement: asked }))
}

/// Makes the server of a device pass requests through to its disks, with the queue depth of the run, for calibration.
///
/// # Errors
/// [`Error::Failed`] if the server refuses.
pub(crate) fn pass_through(run: &Run, device: &mut BlockDevice) -> Result<(), Error> {
    let (_, queue_depth) = scheduler_of(run, &device.name);
    let Some(control) = device.control.as_mut().filter(|_| device.has_policies) else { return Ok(()) };
    let all =
        Arrangement { policy: PASS_THROUGH.to_owned(), queue_depth, seed: run.seed, classes: Vec::new() };
    control.arrange(&all).map_err(|error| Error::Failed(format!("device `{}`: {error}", device.name)))
}

/// Scheduler in front of a device's disks, and the queue depth of each disk.
fn scheduler_of(run: &Run, device: &str) -> (String, u32) {
    let scheduler = run.scheduler_of(device);
    match scheduler.is_of_kernel() {
        true => (PASS_THROUGH.to_owned(), PASS_THROUGH_DEPTH),
        false => (scheduler.to_string(), run.settings.queue_depth),
    }
}

/// Arrangement of a device's server for a run. Where classes share the device, the server attributes requests by the ranges of
/// each class's files.
///
/// # Errors
/// The file system does not report the extents of files.
pub(crate) fn arrangement(run: &Run, device: &RunDevice, places: &[Placement]) -> Result<Arrangement, Error> {
    let scheduler = run.scheduler_of(&device.name);
    let (policy, queue_depth) = scheduler_of(run, &device.name);
    // The seed of virtual time, for the same random numbers.
    let number = run.devices.iter().position(|other| other.name == device.name).unwrap_or(0) as u64;
    let mut askers: Vec<(&RunClass, &SimulatedClass)> = run
        .classes
        .iter()
        .filter(|class| class.device == device.name)
        .filter_map(|class| Some((class, class.simulated.as_ref()?)))
        .collect();
    let is_raw = places.iter().all(Placement::is_raw);
    if scheduler.is_of_kernel() && !is_raw {
        // None of weir's schedulers orders them, and not every file system reports extents.
        askers.drain(..askers.len().saturating_sub(1));
    }
    let last = askers.len().saturating_sub(1);
    let classes = askers.iter().zip(0..).map(|((class, told), at)| {
        let place = places.iter().find(|place| place.class.name == class.name);
        // Unattributed requests are assigned to the last class, so that schedulers know only the study's classes.
        let spec = class_spec(class, told, place, askers.len() > 1);
        let on_files = place.filter(|_| !is_raw && askers.len() > 1);
        let extents_bytes = on_files.map_or(Ok(Vec::new()), |place| extents::of_folder(&place.path))?;
        Ok(ClassSpec { rest: at == last, extents_bytes, ..spec })
    });
    let classes = classes.collect::<Result<_, Error>>()?;
    Ok(Arrangement { policy, queue_depth, seed: run.seed.wrapping_add(number << 32), classes })
}

fn class_spec(class: &RunClass, told: &SimulatedClass, place: Option<&Placement>, shares: bool) -> ClassSpec {
    let raw = place.and_then(|place| Some((place, *place.offsets_bytes.first()?)));
    let stream_bytes = raw.and_then(|(place, _)| stream_bytes(class, place));
    let range = |(place, first): (&Placement, u64)| [first, first + place.files.total_bytes()];
    ClassSpec {
        wants: told.wants,
        weight: told.weight,
        deadline_ms: class.recipe.requests().and_then(deadline_ms),
        contract: told.contract.map(|contract| ContractSpec {
            cost_ms: contract.cost_ms,
            period_ms: contract.period_ms,
            streams: class.clients,
        }),
        range_bytes: raw.filter(|_| shares || stream_bytes.is_some()).map(range),
        stream_bytes,
        ..ClassSpec::named(&class.name)
    }
}

/// Deadline of a workload's requests, in ms after the intended time.
fn deadline_ms(workload: &Workload) -> Option<f64> {
    match (workload.deadline.as_ref()?, &workload.arrivals) {
        (Deadline::After { ms }, _) => Some(*ms),
        (Deadline::RoundEnd, Arrivals::Rounds { round_ms, .. }) => Some(*round_ms),
        // Workloads without rounds have no round end.
        (Deadline::RoundEnd, _) => None,
    }
}

/// Bytes of each client's own part of a class's files; `None` if clients share files.
fn stream_bytes(class: &RunClass, place: &Placement) -> Option<u64> {
    let clients = u64::from(class.clients);
    let Workload { access: Access::Sequential, arrivals, files, .. } = &place.recipe else {
        return None;
    };
    if let Arrivals::Closed { .. } = arrivals {
        // The same offsets as in fio's job file.
        let bytes = place.recipe.largest_request_bytes().max(1);
        let share = place.files.total_bytes() / clients.max(1) / bytes * bytes;
        return Some(share).filter(|share| clients > 1 && *share > 0);
    }
    let each = place.files.sizes_bytes();
    let is_ones_own = files.popularity == Popularity::InTurn && each.len() as u64 == clients;
    let first = *each.first()?;
    (clients > 1 && is_ones_own && each.iter().all(|size| *size == first)).then_some(first)
}

/// Sets time 0 of models and schedulers of all servers to the run's epoch, an instant of CLOCK_MONOTONIC. Returns for each
/// device whether it was set: a server that already has requests keeps its time 0.
///
/// # Errors
/// A server does not answer.
pub(crate) fn begin(devices: &mut [BlockDevice], epoch_ns: i64) -> Result<Vec<(String, bool)>, Error> {
    let at_ns = u64::try_from(epoch_ns).unwrap_or(0);
    let mut begun = Vec::new();
    for device in devices.iter_mut().filter(|device| device.has_policies) {
        let Some(control) = &mut device.control else { continue };
        let until = Instant::now() + until(at_ns);
        let is_begun = loop {
            match control.begin_at(at_ns) {
                Ok(()) => break true,
                Err(weir_blockserver::Error::Refused(_)) if Instant::now() < until => sleep(POLL_INTERVAL),
                Err(weir_blockserver::Error::Refused(_)) => break false,
                Err(error) => return Err(Error::Failed(format!("device `{}`: {error}", device.name))),
            }
        };
        begun.push((device.name.clone(), is_begun));
    }
    Ok(begun)
}

/// Time from now to an instant of CLOCK_MONOTONIC; zero if it has passed.
fn until(at_ns: u64) -> Duration {
    let now_ns = u64::try_from(weir_host::clock::monotonic_ns()).unwrap_or(0);
    Duration::from_nanos(at_ns.saturating_sub(now_ns))
}

/// Reads back the scheduler in force and the statistics of each class, by device.
pub(crate) fn read_back(
    devices: &mut [BlockDevice],
    asked: &[Asked],
    begun: &[(String, bool)],
) -> BTreeMap<String, InForce> {
    let of_device = |asked: &Asked| {
        let device = devices.iter_mut().find(|device| device.name == asked.device);
        let control = device.and_then(|device| device.control.as_mut());
        let (found, stats) = match control {
            Some(control) => (control.arrangement().ok(), control.live().ok()),
            None => (None, None),
        };
        let began_with_run = begun.iter().any(|(name, is_begun)| *name == asked.device && *is_begun);
        let in_force = InForce { asked: asked.arrangement.clone(), found, began_with_run, stats };
        (asked.device.clone(), in_force)
    };
    asked.iter().map(of_device).collect()
}

impl InForce {
    /// The active scheduler, as text; `Err` says how it differs from the run's.
    pub(crate) fn verify(&self) -> Result<String, String> {
        let Arrangement { policy, queue_depth, .. } = &self.asked;
        match &self.found {
            None => Err(format!("expected scheduler {policy}, but the block server does not answer")),
            Some(found) if found.policy != *policy => {
                Err(format!("wrong scheduler at the end (found {}, expected {policy})", found.policy))
            }
            Some(found) if *found != self.asked.completed() => {
                Err(format!("scheduler {policy} has other classes or another queue depth than the run"))
            }
            Some(_) => Ok(format!("{policy}, queue depth {queue_depth}")),
        }
    }
}

#[cfg(test)]
impl InForce {
    /// A server that reported its statistics and nothing else.
    pub(crate) fn of_stats(stats: SchedulingStats) -> Self {
        let asked = Arrangement { policy: String::new(), queue_depth: 1, seed: 0, classes: Vec::new() };
        InForce { asked, found: None, began_with_run: true, stats: Some(stats) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_force(found: Option<&str>) -> InForce {
        let arrangement = |policy: &str| Arrangement {
            policy: policy.to_owned(),
            queue_depth: 1,
            seed: 0,
            classes: vec![ClassSpec { rest: true, ..ClassSpec::named("text") }],
        };
        let found = found.map(arrangement);
        InForce { asked: arrangement("hds root_kb_s=100"), found, began_with_run: true, stats: None }
    }

    #[test]
    fn another_policy_other_classes_and_silence_are_told() {
        assert!(in_force(Some("hds root_kb_s=100")).verify().unwrap().starts_with("hds root_kb_s=100"));
        assert!(in_force(Some("hds")).verify().unwrap_err().contains("found hds"));
        assert!(in_force(None).verify().unwrap_err().contains("does not answer"));
        let mut other = in_force(Some("hds root_kb_s=100"));
        if let Some(found) = &mut other.found {
            found.classes[0].weight = 2.0;
        }
        assert!(other.verify().unwrap_err().contains("classes"));
    }
}
