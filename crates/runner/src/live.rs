//! Policies of weir's own in front of modelled devices: what a run has their servers do, and what was in force.

use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde::Serialize;
use weir_blockserver::{Arrangement, ClassSpec, ContractSpec, LiveStats};
use weir_records::Request;
use weir_study::{Engine, Run, RunClass, RunDevice, SimulatedClass};
use weir_workload::{Access, Arrivals, Deadline, Popularity, Workload};

use crate::block_device::BlockDevice;
use crate::fio;
use crate::place::Place;
use crate::{Error, extents};

/// Where the kernel's scheduler decides, the server leaves its order as it is and its disks all that it hands on.
const LEAVES_IT: &str = "fcfs";
const LEAVES_IT_DEPTH: u32 = 128;
/// How often a server is asked that is still busy with what was asked before.
const GLANCE: Duration = Duration::from_millis(1);

/// A server with a policy during a run.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct InForce {
    /// What the run asked for.
    asked: Arrangement,
    /// What was in force at the end, as the server said; absent if it said nothing.
    found: Option<Arrangement>,
    /// Whether its models' and policy's time 0 is that of the run; if not it is somewhat earlier, since something asked already.
    pub(crate) began_with_run: bool,
    /// What became of each class, as the server counted it; absent if it said nothing.
    stats: Option<LiveStats>,
}

/// What is known of a server until the run is over.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    device: String,
    arrangement: Arrangement,
}

/// Tells the server of a device its policy and classes, and reads them back, before it keeps time.
///
/// # Errors
/// [`Error::Failed`] if it refuses them, or has others.
pub(crate) fn arrange(run: &Run, device: &mut BlockDevice, places: &[Place]) -> Result<Option<Asked>, Error> {
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
            "device `{name}`: its server was told scheduler `{}`, and has `{policy}` or other classes",
            asked.policy
        )));
    }
    Ok(Some(Asked { device: name, arrangement: asked }))
}

/// Has the server of a device hand on to its disks what it is asked, as many at once as in the run: whatever was before, what the
/// disks do can be measured then.
///
/// # Errors
/// [`Error::Failed`] if it refuses.
pub(crate) fn hand_on(run: &Run, device: &mut BlockDevice) -> Result<(), Error> {
    let (_, queue_depth) = policy_of(run, &device.name);
    let Some(control) = device.control.as_mut().filter(|_| device.has_policies) else { return Ok(()) };
    let all = Arrangement { policy: LEAVES_IT.to_owned(), queue_depth, seed: run.seed, classes: Vec::new() };
    control.arrange(&all).map_err(|error| Error::Failed(format!("device `{}`: {error}", device.name)))
}

/// The policy in front of a device's disks, and how many requests each of them has at once.
fn policy_of(run: &Run, device: &str) -> (String, u32) {
    let scheduler = run.scheduler_of(device);
    match scheduler.is_of_kernel() {
        true => (LEAVES_IT.to_owned(), LEAVES_IT_DEPTH),
        false => (scheduler.to_string(), run.settings.queue_depth),
    }
}

/// What a run asks of the server of a device: where classes share it, each is told by where its files lie.
///
/// # Errors
/// A file system does not say where it has placed them.
pub(crate) fn arrangement(run: &Run, device: &RunDevice, places: &[Place]) -> Result<Arrangement, Error> {
    let scheduler = run.scheduler_of(&device.name);
    let (policy, queue_depth) = policy_of(run, &device.name);
    // As in virtual time, where the same seed draws the same disks.
    let number = run.devices.iter().position(|other| other.name == device.name).unwrap_or(0) as u64;
    let mut askers: Vec<(&RunClass, &SimulatedClass)> = run
        .classes
        .iter()
        .filter(|class| class.device == device.name)
        .filter_map(|class| Some((class, class.simulated.as_ref()?)))
        .collect();
    let is_raw = places.iter().all(Place::is_raw);
    if scheduler.is_of_kernel() && !is_raw {
        // Nobody needs to tell them apart, and not every file system could.
        askers.drain(..askers.len().saturating_sub(1));
    }
    let last = askers.len().saturating_sub(1);
    let classes = askers.iter().zip(0..).map(|((class, told), at)| {
        let place = places.iter().find(|place| place.class.name == class.name);
        // Whoever is the last has what is nobody's, so that policies know of no class that the study does not have.
        let spec = class_spec(class, told, place, askers.len() > 1);
        let on_files = place.filter(|_| !is_raw && askers.len() > 1);
        let extents_bytes = on_files.map_or(Ok(Vec::new()), |place| extents::of_folder(&place.path))?;
        Ok(ClassSpec { rest: at == last, extents_bytes, ..spec })
    });
    let classes = classes.collect::<Result<_, Error>>()?;
    Ok(Arrangement { policy, queue_depth, seed: run.seed.wrapping_add(number << 32), classes })
}

fn class_spec(class: &RunClass, told: &SimulatedClass, place: Option<&Place>, shares: bool) -> ClassSpec {
    let raw = place.and_then(|place| Some((place, *place.offsets_bytes.first()?)));
    let stream_bytes = raw.and_then(|(place, _)| stream_bytes(class, place));
    let range = |(place, first): (&Place, u64)| [first, first + place.files.total_bytes()];
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
fn stream_bytes(class: &RunClass, place: &Place) -> Option<u64> {
    let clients = u64::from(class.clients);
    let Workload { access: Access::Sequential, arrivals, sizes, files, .. } = &place.recipe else {
        return None;
    };
    if let Arrivals::Closed { .. } = arrivals {
        // As fio is told where its clients begin.
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
                Err(weir_blockserver::Error::Refused(_)) if Instant::now() < until => sleep(GLANCE),
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

/// What was in force, and what became of each class, by device.
pub(crate) fn look(
    devices: &mut [BlockDevice],
    asked: &[Asked],
    begun: &[(String, bool)],
) -> BTreeMap<String, InForce> {
    let look_at = |asked: &Asked| {
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
    asked.iter().map(look_at).collect()
}

/// What a class's requests met between client and server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Way {
    /// They came whole: how long they and their answers were on their way, on average, in ms. Between these two, where the client
    /// does not know better.
    Whole { least_ms: f64, most_ms: f64 },
    /// The kernel made more of them than the client asked for: how many were asked for and how many came.
    Cut { asked: u64, came: u64 },
}

/// The way of each class between client and server: what clients waited less what the server says. Of devices whose policy is the
/// run's own; not of classes of which the server saw fewer requests than were asked for, as one that was stopped early.
pub(crate) fn ways(run: &Run, rows: &[Request], live: &BTreeMap<String, InForce>) -> Vec<(String, Way)> {
    let own = live.iter().filter(|(device, _)| !run.scheduler_of(device).is_of_kernel());
    let classes = own.filter_map(|(_, live)| live.stats.as_ref()).flat_map(|stats| &stats.classes);
    let end_ns = run.length_ns();
    classes
        .filter_map(|class| {
            let of_class = || rows.iter().filter(|row| *row.class == *class.name);
            let waited_ns: Vec<i64> = of_class()
                .filter(|row| row.status == 0)
                .filter_map(|row| Some(row.completed_ns? - row.submitted_ns.unwrap_or(row.intended_ns)))
                .collect();
            let asked = of_class().count() as u64;
            if asked > 0 && class.requests > asked {
                return Some((class.name.clone(), Way::Cut { asked, came: class.requests }));
            }
            let is_whole = !waited_ns.is_empty() && waited_ns.len() as u64 == class.requests;
            let mean_ms = waited_ns.iter().sum::<i64>() as f64 / waited_ns.len() as f64 / 1e6;
            let most_ms = mean_ms - class.mean_ms;
            let of_fio = run.classes.iter().any(|of| of.name == class.name && of.engine == Engine::Fio);
            let unknown_ns = if of_fio { fio::overstated_ns(end_ns, of_class()) } else { 0 };
            let unknown_ms = unknown_ns as f64 / waited_ns.len() as f64 / 1e6;
            let way = Way::Whole { least_ms: most_ms - unknown_ms, most_ms };
            is_whole.then(|| (class.name.clone(), way))
        })
        .collect()
}

impl InForce {
    /// The policy, in words; `Err` says what is not as it was asked for.
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

    fn row(class: &str, submitted_ns: i64, completed_ns: Option<i64>) -> Request {
        Request {
            request: 0,
            class: class.into(),
            client: 0,
            device: None,
            file: None,
            op: weir_records::Op::Read,
            offset: 0,
            size_bytes: 4096,
            intended_ns: 0,
            submitted_ns: Some(submitted_ns),
            completed_ns,
            deadline_ns: None,
            served_ns: None,
            status: 0,
            warmup: false,
        }
    }

    #[test]
    fn a_class_is_on_its_way_for_what_its_server_does_not_know_of() {
        let run: Run = serde_json::from_str(RUN).unwrap();
        let class = |name: &str, requests, mean_ms| weir_blockserver::ClassStats {
            name: name.to_owned(),
            requests,
            mean_ms,
            ..Default::default()
        };
        let classes = vec![class("text", 2, 3.0), class("video", 7, 1.0)];
        let stats = Some(LiveStats { classes, ..LiveStats::default() });
        let live = BTreeMap::from([("shared".to_owned(), InForce { stats, ..in_force(None) })]);
        let ms = |ms: i64| ms * 1_000_000;
        let rows = [
            row("text", ms(1), Some(ms(4))),
            row("text", ms(2), Some(ms(8))),
            row("video", 0, Some(9)),
            row("text", 0, None),
        ];
        // Three and six ms, of which the server knows three each; of video the kernel made seven of one.
        let cut = Way::Cut { asked: 1, came: 7 };
        assert_eq!(
            ways(&run, &rows, &live),
            [("text".to_owned(), Way::Whole { least_ms: 1.5, most_ms: 1.5 }), ("video".to_owned(), cut)]
        );
        let kernels = Run { settings: weir_study::Settings::default(), ..run };
        assert!(ways(&kernels, &rows, &live).is_empty());
    }

    /// A run without classes under hds.
    const RUN: &str = r#"{"format": 1, "id": "r", "study": "s", "question": "", "testbed": "device", "cell": "", "levels": {},
        "settings": {"scheduler": "hds"}, "repetition": 0, "block": 0, "order": 0, "seed": 0, "warmup_s": 0, "duration_s": 1,
        "capture": "none", "allowed_loss": 0, "fill_losses": false, "classes": [], "devices": []}"#;

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
