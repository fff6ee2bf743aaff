//! Schedulers of weir's own in front of modelled devices: set in their servers, and read back.

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

/// Where the kernel's scheduler orders requests, the server passes them through unchanged.
const PASS_THROUGH: &str = "fcfs";
const PASS_THROUGH_DEPTH: u32 = 128;
/// Interval at which a busy server is asked again.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Scheduler of a device's server during a run.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct InForce {
    /// What the run asked for.
    asked: Arrangement,
    /// What was in force at the end, as the server said; absent if it said nothing.
    found: Option<Arrangement>,
    /// Whether its models' and policy's time 0 is that of the run; if not it is somewhat earlier, since something asked already.
    pub(crate) began_with_run: bool,
    /// What became of each class, as the server counted it; absent if it said nothing.
    pub(crate) stats: Option<SchedulingStats>,
}

/// What a server was asked for.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    device: String,
    arrangement: Arrangement,
}

/// Tells the server of a device its policy and classes, and reads them back, before it keeps time.
///
/// # Errors
/// [`Error::Failed`] if it refuses them, or has others.
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
    control.arrange(&asked).map_err(|error| failed("its server did not take", error))?;
    let found = control.arrangement().map_err(|error| failed("cannot read back", error))?;
    if found != asked.completed() {
        let policy = &found.policy;
        return Err(Error::Failed(format!(
            "device `{name}`: its server was set to scheduler `{}`, but reads back `{policy}` or other classes",
            asked.policy
        )));
    }
    Ok(Some(Asked { device: name, arrangement: asked }))
}

/// Lets the server of a device pass requests through to its disks, as many at once as in the run, so that the disks can be
/// calibrated.
///
/// # Errors
/// [`Error::Failed`] if it refuses.
pub(crate) fn pass_through(run: &Run, device: &mut BlockDevice) -> Result<(), Error> {
    let (_, queue_depth) = scheduler_of(run, &device.name);
    let Some(control) = device.control.as_mut().filter(|_| device.has_policies) else { return Ok(()) };
    let all =
        Arrangement { policy: PASS_THROUGH.to_owned(), queue_depth, seed: run.seed, classes: Vec::new() };
    control.arrange(&all).map_err(|error| Error::Failed(format!("device `{}`: {error}", device.name)))
}

/// The policy in front of a device's disks, and how many requests each of them has at once.
fn scheduler_of(run: &Run, device: &str) -> (String, u32) {
    let scheduler = run.scheduler_of(device);
    match scheduler.is_of_kernel() {
        true => (PASS_THROUGH.to_owned(), PASS_THROUGH_DEPTH),
        false => (scheduler.to_string(), run.settings.queue_depth),
    }
}

/// Arrangement of a device's server for a run: where classes share the device, the server tells them apart by their files' ranges.
///
/// # Errors
/// A file system does not say where it has placed them.
pub(crate) fn arrangement(run: &Run, device: &RunDevice, places: &[Placement]) -> Result<Arrangement, Error> {
    let scheduler = run.scheduler_of(&device.name);
    let (policy, queue_depth) = scheduler_of(run, &device.name);
    // As in virtual time, where the same seed draws the same disks.
    let number = run.devices.iter().position(|other| other.name == device.name).unwrap_or(0) as u64;
    let mut askers: Vec<(&RunClass, &SimulatedClass)> = run
        .classes
        .iter()
        .filter(|class| class.device == device.name)
        .filter_map(|class| Some((class, class.simulated.as_ref()?)))
        .collect();
    let is_raw = places.iter().all(Placement::is_raw);
    if scheduler.is_of_kernel() && !is_raw {
        // No scheduler of weir's orders them, and not every file system reports extents.
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

/// How long after it was asked a request of a workload is due, in ms.
fn deadline_ms(workload: &Workload) -> Option<f64> {
    match (workload.deadline.as_ref()?, &workload.arrivals) {
        (Deadline::After { ms }, _) => Some(*ms),
        (Deadline::RoundEnd, Arrivals::Rounds { round_ms, .. }) => Some(*round_ms),
        // Workloads without rounds have no such deadline.
        (Deadline::RoundEnd, _) => None,
    }
}

/// Each client's part of a class's files, where each has one for itself.
fn stream_bytes(class: &RunClass, place: &Placement) -> Option<u64> {
    let clients = u64::from(class.clients);
    let Workload { access: Access::Sequential, arrivals, sizes, files, .. } = &place.recipe else {
        return None;
    };
    if let Arrivals::Closed { .. } = arrivals {
        // The same offsets as in fio's job file.
        let weir_workload::Sizes::Drawn(weir_workload::Distribution::Fixed { bytes }) = sizes else {
            return None;
        };
        let share = place.files.total_bytes() / clients.max(1) / bytes.max(&1) * bytes;
        return Some(share).filter(|share| clients > 1 && *share > 0);
    }
    let each = place.files.sizes_bytes();
    let is_ones_own = files.popularity == Popularity::InTurn && each.len() as u64 == clients;
    let first = *each.first()?;
    (clients > 1 && is_ones_own && each.iter().all(|size| *size == first)).then_some(first)
}

/// Sets time 0 of the models and policies of all servers to that of a run, an instant of CLOCK_MONOTONIC. Says of each device
/// whether it could be: a server that is asked something already keeps the time that it has.
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

/// Time from now to an instant of CLOCK_MONOTONIC; zero if it is past.
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
    /// The scheduler in force, in words; `Err` says how it differs from the run's.
    pub(crate) fn verify(&self) -> Result<String, String> {
        let Arrangement { policy, queue_depth, .. } = &self.asked;
        match &self.found {
            None => Err(format!("{policy} was asked for, but its server does not say what it has")),
            Some(found) if found.policy != *policy => {
                Err(format!("{policy} was asked for, but at the end it was {}", found.policy))
            }
            Some(found) if *found != self.asked.completed() => {
                Err(format!("{policy} was in force, but not with the classes or the queue depth asked for"))
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
        assert!(in_force(Some("hds")).verify().unwrap_err().contains("at the end it was hds"));
        assert!(in_force(None).verify().unwrap_err().contains("does not say"));
        let mut other = in_force(Some("hds root_kb_s=100"));
        if let Some(found) = &mut other.found {
            found.classes[0].weight = 2.0;
        }
        assert!(other.verify().unwrap_err().contains("classes"));
    }
}
