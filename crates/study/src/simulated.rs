//! Checks of fields that apply to the simulator only.

use weir_scheduler::Settings;
use weir_vocabulary::TrafficKind;

use crate::contract::Contract;
use crate::level::{Architecture, Scheduler};
use crate::limits::{LARGEST_DISK_MIB, MOST_INTERVALS};
use crate::spec::{Class, Placement, Study};

/// The fields of a class that are set and apply to the simulator only.
pub(crate) fn fields_of(class: &Class) -> Vec<&'static str> {
    [
        ("wants", class.wants.is_some()),
        ("weight", class.weight.is_some()),
        ("contract", class.contract.is_some()),
        ("scheduler", class.scheduler.is_some()),
        ("stripe_unit_kib", class.stripe_unit_kib.is_some()),
        ("cache_mib", class.cache_mib.is_some()),
        ("disks", class.disks.is_some()),
        ("from_mib", class.from_mib.is_some()),
    ]
    .into_iter()
    .filter_map(|(name, given)| given.then_some(name))
    .collect()
}

/// Their problems: fields and messages.
pub(crate) fn check_class(class: &Class) -> Vec<(&'static str, String)> {
    let mut problems = Vec::new();
    if let Some(Err((field, message))) = class.contract.map(Contract::task) {
        let field = if field == "cost_ms" { "contract.cost_ms" } else { "contract.period_ms" };
        problems.push((field, message));
    }
    if let Some(weight) = class.weight
        && !(1e-3..=1e3).contains(&weight)
    {
        problems.push(("weight", format!("is {weight}; it must be from 0.001 to 1000")));
    }
    if let Some(unit) = class.stripe_unit_kib
        && !(1..=16 * 1024).contains(&unit)
    {
        problems.push(("stripe_unit_kib", format!("is {unit}; it must be from 1 to 16384")));
    }
    if let Some(disks) = &class.disks {
        let follow = disks.windows(2).all(|pair| pair[0].checked_add(1) == Some(pair[1]));
        if disks.is_empty() || !follow {
            let message = format!("is {disks:?}; name disks that follow each other, such as [0, 1]");
            problems.push(("disks", message));
        }
    }
    if let Some(cache) = class.cache_mib
        && cache > 1 << 20
    {
        problems.push(("cache_mib", format!("is {cache}; it must be at most 1048576")));
    }
    if let Some(from) = class.from_mib
        && from > LARGEST_DISK_MIB
    {
        problems.push(("from_mib", format!("is {from}; it must be at most {LARGEST_DISK_MIB}")));
    }
    if let Some(priority) = class.priority {
        let message = format!("is {priority}, but the simulator has no I/O priorities: use weight");
        problems.push(("priority", message));
    }
    if class.cgroup.is_some() {
        let message = "is given, but the simulator has no control groups: use weight";
        problems.push(("cgroup", message.to_owned()));
    }
    problems
}

/// Problems of the disks and offsets of classes: fields and messages.
pub(crate) fn check_places(study: &Study) -> Vec<(String, String)> {
    let mut problems = Vec::new();
    let architectures = study.factors.architecture.iter().flatten().chain([&study.hold.architecture]);
    let is_partitioned = architectures.into_iter().any(|found| *found == Architecture::Partitioned);
    for (name, class) in &study.classes {
        if let Some(last) = class.disks.iter().flatten().max().filter(|last| **last >= study.storage.heads) {
            let message = format!("names disk {last}, but there are {}, from 0", study.storage.heads);
            problems.push((format!("classes.{name}.disks"), message));
        }
        if class.disks.is_some() && is_partitioned {
            let message = "is given, but a partitioned server has disks of its own for each class: use heads";
            problems.push((format!("classes.{name}.disks"), message.to_owned()));
        }
        if class.from_mib.is_some() && study.storage.placement != Placement::Packed {
            let message = "is given, but only packed files begin at a place: use storage.placement: packed";
            problems.push((format!("classes.{name}.from_mib"), message.to_owned()));
        }
    }
    if let Some(series_s) = study.series_s
        && !(0.001..=86_400.0).contains(&series_s)
    {
        problems.push(("series_s".to_owned(), format!("is {series_s}; it must be from 0.001 to 86400")));
    } else if let Some(series_s) = study.series_s
        && study.duration_s / series_s > MOST_INTERVALS
    {
        let message = format!(
            "is {series_s}, which divides duration_s into more than {MOST_INTERVALS:.0e} intervals: make it longer"
        );
        problems.push(("series_s".to_owned(), message));
    }
    problems
}

/// Whether a scheduler can be made for some classes of a study.
pub(crate) fn check_scheduler<'a>(
    scheduler: &Scheduler,
    classes: impl Iterator<Item = (&'a String, &'a Class)>,
) -> Result<(), String> {
    let classes: Vec<weir_scheduler::Class> = classes
        .map(|(name, class)| weir_scheduler::Class {
            name: name.clone(),
            kind: class.wants.unwrap_or(TrafficKind::Interactive),
            weight: class.weight.unwrap_or(1.0),
            // Runs decide the number of streams, and whether the disk has capacity for them.
            contract: class.contract.and_then(|contract| contract.for_streams(1)),
        })
        .collect();
    let settings = Settings(scheduler.tunables.clone());
    weir_scheduler::build(&scheduler.name, &classes, &settings).map(drop).map_err(|error| error.to_string())
}
