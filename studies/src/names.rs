//! Names of a run that become folders, files and processes.

use weir_specs::{host_problem, name_problem};

use crate::plan::Plan;
use crate::run::Run;

impl Plan {
    /// What is wrong with a name of a plan or of its runs, as of [`Run::names_problem`]; `None` if nothing is.
    pub fn names_problem(&self) -> Option<String> {
        let of_study = name_problem(&self.study).map(|problem| format!("the study {problem}"));
        of_study.or_else(|| self.runs.iter().find_map(Run::names_problem))
    }
}

impl Run {
    /// What is wrong with a name of a run, which may come from a file that nobody planned; `None` if nothing is.
    ///
    /// Its id, study, classes, devices and services name folders, files, processes and control groups.
    pub fn names_problem(&self) -> Option<String> {
        let told = |field: &str, problem: Option<String>| problem.map(|problem| format!("{field} {problem}"));
        let classes = self.classes.iter().map(|class| told("a class", name_problem(&class.name)));
        let devices = self.devices.iter().map(|device| told("a device", host_problem(&device.name)));
        let services = self.services.iter().map(|service| told("a service", name_problem(&service.name)));
        [told("the run", host_problem(&self.id)), told("the study", name_problem(&self.study))]
            .into_iter()
            .chain(classes)
            .chain(devices)
            .chain(services)
            .flatten()
            .next()
    }
}
