//! Defaults of a study that depend on its testbed and its schedulers.

use std::collections::BTreeMap;

use weir_specs::Document;

use crate::device_scheduler;
use crate::level::Scheduler;
use crate::spec::Study;
use crate::testbed::Testbed;

/// Scheduler of a simulated server if a study names none.
const DEFAULT_SCHEDULER: &str = "scan";

/// A scheduler that every simulated server can have.
pub(crate) fn default_scheduler() -> Scheduler {
    Scheduler { name: DEFAULT_SCHEDULER.to_owned(), tunables: BTreeMap::new() }
}

/// Replaces the defaults of testbed `device` and the kernel's schedulers by those of the study's testbed.
pub(crate) fn apply(study: &mut Study, document: &Document) {
    let is_held = |field: &str| document.value().get("hold").is_some_and(|hold| hold.get(field).is_some());
    let is_virtual = study.testbed.are_virtual();
    if (is_virtual || device_scheduler::is_always(study)) && !is_held("queue_depth") {
        // The scheduler under study decides the order. A disk with a deeper queue would reorder requests.
        study.hold.queue_depth = 1;
    }
    // A study of both testbeds keeps the defaults of devices.
    if is_virtual && !is_held("scheduler") {
        study.hold.scheduler = default_scheduler();
    }
    if study.testbed.is_only(Testbed::Admission) {
        study.hold.admission.get_or_insert_default();
    }
}
