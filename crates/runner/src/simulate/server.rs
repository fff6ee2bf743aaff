//! Simulated server of a run: heads, schedulers, layouts and clients.

use weir_scheduler::{Class, Settings, TrafficKind};
use weir_simulator::machine::Model;
use weir_simulator::profile;
use weir_simulator::server::{Head, Limits, Outcome, Served, Server, ServerClass, Volume};
use weir_study::{Run, RunDevice, SimulatedClass};
use weir_workload::FileSet;

use super::admission::{AdmittedStreams, admit_streams};
use super::places::{Heads, Places, head_bytes};
use super::{admission_run, clients, streams};
use crate::Error;

/// Service time of a hit in the buffer cache: a copy of some pages.
const CACHE_HIT_NS: u64 = 10_000;

/// A server that is ready to run.
pub(super) struct Built {
    server: Server<Model>,
    admitted: Option<AdmittedStreams>,
}

impl Built {
    pub(super) fn run(
        self,
        limits: Limits,
        record: &mut dyn FnMut(&Served),
    ) -> Result<Outcome, weir_simulator::server::ServerError> {
        self.server.simulate(limits, record)
    }

    /// Result of admission control, if the run has any.
    pub(super) fn admission(&self, run: &Run) -> Option<serde_json::Value> {
        let settings = run.settings.admission.as_ref()?;
        Some(admission_run::document(run, settings, self.admitted.as_ref()?))
    }
}

/// Makes the heads, their schedulers, the layouts and the clients of a run.
///
/// # Errors
/// A part cannot be made.
pub(super) fn build(run: &Run) -> Result<Built, Error> {
    let simulated =
        run.classes
            .iter()
            .map(|class| {
                class.simulated.as_ref().ok_or_else(|| {
                    Error::Refused("the run is for testbed `device`. Use `weir run`".to_owned())
                })
            })
            .collect::<Result<Vec<_>, _>>()?;
    let classes: Vec<Class> = run
        .classes
        .iter()
        .zip(&simulated)
        .map(|(class, simulated)| Class {
            name: class.name.clone(),
            kind: simulated.wants,
            weight: simulated.weight,
            contract: simulated.contract.and_then(|contract| contract.for_streams(class.clients)),
        })
        .collect();
    let mut heads = Vec::new();
    let mut devices: Vec<Heads> = Vec::new();
    for (device, number) in run.devices.iter().zip(0u64..) {
        // A class without clients leaves its disks unused.
        let first = run.classes.iter().position(|class| class.device == device.name);
        let Some(asker) = first.map(|index| simulated[index]) else { continue };
        let of_device =
            Heads { device, volume: Volume { first_head: heads.len() as u32, heads: device.heads } };
        devices.push(of_device);
        let models = models(run, device, number)?;
        for (model, at) in models.into_iter().zip(of_device.volume.first_head..) {
            // A contract holds on the disks of the class's files.
            let mut known = classes.clone();
            for (class, simulated) in known.iter_mut().zip(&simulated) {
                let volume = of_device.of_class(simulated);
                if !(volume.first_head..volume.first_head + volume.heads).contains(&at) {
                    class.contract = None;
                }
            }
            heads.push(new_head(run, device, asker, &known, model)?);
        }
    }
    let admission = run.settings.admission.as_ref();
    let admitted = admission.map(|settings| admit_streams(run, settings)).transpose()?;
    let mut places = Places::new(run);
    let mut servers = Vec::new();
    for (number, (class, simulated)) in run.classes.iter().zip(&simulated).enumerate() {
        let Some(of_device) = devices.iter().find(|heads| heads.device.name == class.device).copied() else {
            return Err(Error::Refused(format!(
                "class {}: the run has no device {}",
                class.name, class.device
            )));
        };
        if let (Some(settings), Some(admitted)) = (admission, &admitted)
            && streams::is_film(class)
        {
            let head_bytes = of_device.head_bytes();
            let class = streams::server_class(run, settings, number, admitted, of_device.volume, head_bytes)?;
            servers.push(class);
            continue;
        }
        let files = FileSet::new(&clients::requests(class)?.files, &class.name, run.seed);
        servers.push(ServerClass {
            layout: places.place(number, class, simulated, of_device, &files)?,
            source: clients::source(run, class, &files)?,
            cache_bytes: simulated.cache_mib << 20,
            cache_hit_ns: CACHE_HIT_NS,
        });
    }
    let server = Server::new(heads, servers).map_err(|error| Error::Refused(error.to_string()))?;
    Ok(Built { server, admitted })
}

/// Models of the heads of a device, which is the run's device of this number.
fn models(run: &Run, device: &RunDevice, number: u64) -> Result<Vec<Model>, Error> {
    let refused = |error: &dyn std::fmt::Display| Error::Refused(format!("device {}: {error}", device.name));
    let profile = profile::load(&device.profile).map_err(|error| refused(&error))?;
    let seeds = (0..u64::from(device.heads)).map(|head| run.seed.wrapping_add(number << 32 | head));
    Model::several(&profile, head_bytes(device), seeds)
        .map_err(|error| refused(&format!("profile `{}`: {error}", device.profile)))
}

fn new_head(
    run: &Run,
    device: &RunDevice,
    asker: &SimulatedClass,
    classes: &[Class],
    model: Model,
) -> Result<Head<Model>, Error> {
    let refused = |error: &dyn std::fmt::Display| Error::Refused(format!("device {}: {error}", device.name));
    let settings = Settings(asker.scheduler.tunables.clone());
    let policy =
        weir_scheduler::build(&asker.scheduler.name, classes, &settings).map_err(|error| refused(&error))?;
    let real_time = classes.iter().map(|class| class.kind == TrafficKind::RealTime).collect();
    Ok(Head::new(model, policy, run.settings.queue_depth as usize).with_real_time(real_time))
}
