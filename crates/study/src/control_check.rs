//! Checks of the control groups of classes.

use weir_specs::one_of;

use crate::cells::settings_of_cells;
use crate::control_group::ControlGroup;
use crate::filesystem::FileSystem;
use crate::spec::{Class, Settings, Study};

/// Problems, by field.
pub(crate) fn check(study: &Study) -> Vec<(String, String)> {
    let held = !study.hold.cgroup.is_empty() || study.hold.io_cost.is_some();
    let varied = study.factors.cgroup.is_some() || study.factors.io_cost.is_some();
    if !held && !varied && study.classes.values().all(|class| class.cgroup.is_none()) {
        return Vec::new();
    }
    let cells: Vec<Settings> = settings_of_cells(study).collect();
    let at = if study.factors.cgroup.is_some() { "factors.cgroup" } else { "hold.cgroup" };
    let mut found = Vec::new();
    for name in cells.iter().flat_map(|cell| cell.cgroup.keys()) {
        if !study.classes.contains_key(name) {
            found.push((at.to_owned(), one_of("class", name, study.classes.keys().map(String::as_str))));
        }
    }
    found.dedup();
    for (name, class) in &study.classes {
        let field = if class.cgroup.is_some() { format!("classes.{name}.cgroup") } else { at.to_owned() };
        let messages = of_class(name, class, &cells);
        found.extend(messages.into_iter().map(|message| (field.clone(), message)));
    }
    let weighs = |cell: &Settings| {
        study
            .classes
            .iter()
            .any(|(name, class)| in_cell(name, class, cell).is_some_and(|group| group.weight.is_some()))
    };
    if (study.hold.io_cost.is_some() || study.factors.io_cost.is_some()) && !cells.iter().any(weighs) {
        let field = if study.factors.io_cost.is_some() { "factors.io_cost" } else { "hold.io_cost" };
        let message = "is given, but no class has an io.weight: set one, or leave it out";
        found.push((field.to_owned(), message.to_owned()));
    }
    found
}

/// The group of a class in a cell.
fn in_cell(name: &str, class: &Class, cell: &Settings) -> Option<ControlGroup> {
    cell.cgroup.get(name).copied().or(class.cgroup)
}

fn of_class(name: &str, class: &Class, cells: &[Settings]) -> Vec<String> {
    let with: Vec<(&Settings, ControlGroup)> =
        cells.iter().filter_map(|cell| Some((cell, in_cell(name, class, cell)?))).collect();
    let mut messages = Vec::new();
    if with.is_empty() {
        return messages;
    }
    if class.through.is_some() {
        let message =
            "applies to requests to a disk, which the service sends for all its clients: leave it out";
        messages.push(message.to_owned());
    }
    if with.iter().any(|(cell, _)| cell.buffered) {
        messages.push(
            "is given, but the kernel sends the requests of the page cache for all classes: leave out `buffered`"
                .to_owned(),
        );
    }
    if let Some((cell, _)) = with.iter().find(|(cell, _)| !has_own_disk(cell)) {
        messages.push(format!(
            "is given with {}, which has no disk on this host: use a file system on a disk, or raw",
            cell.filesystem
        ));
    }
    let mut weighed = with.iter().filter(|(_, group)| group.bfq_weight.is_some()).peekable();
    if weighed.peek().is_some() && weighed.all(|(cell, _)| cell.scheduler.name != "bfq") {
        messages
            .push("has io.bfq.weight, which only the scheduler bfq reads: use bfq, or io.weight".to_owned());
    }
    messages
}

/// Whether its files lie on a disk that this host's kernel sends requests to for the class itself.
fn has_own_disk(settings: &Settings) -> bool {
    FileSystem::load(&settings.filesystem)
        .is_none_or(|found| found.on_device && found.network.is_none() && !found.mounted)
}
