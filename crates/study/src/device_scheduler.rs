//! Checks of weir's own schedulers on testbed `device`, where the block server orders the requests in real time.

use crate::cells::settings_of_cells;
use crate::filesystem::FileSystem;
use crate::level::{Architecture, Scheduler};
use crate::simulated;
use crate::spec::{Class, Settings, Study};
use crate::testbed::Testbed;

/// The schedulers of a study, with those of its classes.
fn schedulers(study: &Study) -> impl Iterator<Item = &Scheduler> {
    let held = study.factors.scheduler.is_none().then_some(&study.hold.scheduler);
    let own = study.classes.values().filter_map(|class| class.scheduler.as_ref());
    study.factors.scheduler.iter().flatten().chain(held).chain(own)
}

/// Whether a run of the study has one of weir's schedulers in front of a block device.
pub(crate) fn is_used(study: &Study) -> bool {
    study.testbed.all().contains(&Testbed::Device) && schedulers(study).any(|found| !found.is_of_kernel())
}

/// Whether every run of the study has one of weir's schedulers in front of a block device.
pub(crate) fn is_always(study: &Study) -> bool {
    is_used(study) && schedulers(study).all(|found| !found.is_of_kernel())
}

/// Problems of a class with weir's schedulers: fields and messages.
pub(crate) fn check_class(study: &Study, class: &Class) -> Vec<(&'static str, String)> {
    let is_used = is_used(study);
    let of_policies = ["wants", "weight", "contract", "scheduler"];
    let mut problems: Vec<(&str, String)> = simulated::fields_of(class)
        .into_iter()
        .filter(|field| !(is_used && of_policies.contains(field)))
        .map(|field| {
            let message = if of_policies.contains(&field) {
                "applies to `testbed: simulator` and to weir's own schedulers: leave it out, or use one of them"
            } else {
                "applies to `testbed: simulator` only: leave it out"
            };
            (field, message.to_owned())
        })
        .collect();
    if is_used {
        let known =
            |(field, _): &(&str, String)| of_policies.contains(&field.split('.').next().unwrap_or(field));
        problems.extend(simulated::check_class(class).into_iter().filter(known));
        if let Some(own) = class.scheduler.as_ref().filter(|own| own.is_of_kernel()) {
            let message = format!(
                "is {own}, which is the kernel's; a class can have only one of weir's own schedulers"
            );
            problems.push(("scheduler", message));
        }
    }
    problems
}

/// Whether a scheduler can be built for the classes of a device: all of them, or each alone where each class has a device of its own.
pub(crate) fn check_scheduler(scheduler: &Scheduler, study: &Study) -> Result<(), String> {
    let architectures = study.factors.architecture.as_deref();
    let architectures = architectures.unwrap_or(std::slice::from_ref(&study.hold.architecture));
    if architectures.contains(&Architecture::Integrated) {
        simulated::check_scheduler(scheduler, study.classes.iter())?;
    }
    if architectures.contains(&Architecture::Partitioned) {
        for (name, class) in &study.classes {
            simulated::check_scheduler(scheduler, [(name, class)].into_iter())
                .map_err(|message| format!("{message} (for the device of class `{name}` alone)"))?;
        }
    }
    Ok(())
}

/// Problems of other fields of a study with weir's schedulers: fields and messages.
pub(crate) fn check(study: &Study, testbed: Testbed) -> Vec<(String, String)> {
    if testbed != Testbed::Device || !is_used(study) {
        return Vec::new();
    }
    let mut problems = Vec::new();
    if !study.storage.placement.is_packed() {
        let message = "is not packed, but on block devices the position of its files identifies the class of a request: use packed";
        problems.push(("storage.placement".to_owned(), message.to_owned()));
    }
    if study.access.is_some() {
        let message =
            "is given with one of weir's own schedulers, which has no class for it: use the kernel's";
        problems.push(("access".to_owned(), message.to_owned()));
    }
    let is_varied = study.factors.filesystem.is_some();
    let field = if is_varied { "factors.filesystem" } else { "hold.filesystem" };
    let wrong = |settings: Settings| {
        let has_policy = !settings.scheduler.is_of_kernel()
            || (settings.architecture == Architecture::Partitioned
                && study.classes.values().any(|class| class.scheduler.is_some()));
        let found = FileSystem::load(&settings.filesystem).filter(|_| has_policy)?;
        let Settings { scheduler, filesystem, .. } = &settings;
        if found.network.is_some() || found.mounted || !found.on_device {
            return Some(format!(
                "has {filesystem} with scheduler {}, which orders requests of modelled disks of this host: use a file system on them, or raw",
                scheduler.name
            ));
        }
        let share = settings.architecture == Architecture::Integrated && study.classes.len() > 1;
        if share && study.services.values().any(|service| service.site.is_some()) {
            return Some(format!(
                "has scheduler {}, which identifies a class by the position of its files, with a site, whose database creates files during the run: use the kernel's schedulers",
                scheduler.name
            ));
        }
        (share && found.mount_type.is_some() && !found.tells_extents).then(|| {
            format!(
                "has {filesystem} with scheduler {}, which identifies a class by the position of its files, but {filesystem} does not report positions: use ext4, xfs or raw, or architecture: partitioned",
                scheduler.name
            )
        })
    };
    let first = settings_of_cells(study).find_map(wrong);
    problems.extend(first.map(|message| (field.to_owned(), message)));
    problems
}
