//! Registry of schedulers: one line for each scheduler of weir's own, and the kernel's schedulers with their models.

use crate::entry::Entry;
use crate::linux::{bfq, elevator_linus, kyber, mq_deadline};
use crate::policy::Policy;
use crate::request::Class;
use crate::settings::{SettingError, Settings};

/// Schedulers of weir's own, the simple ones first.
pub const POLICIES: &[Entry] = &[
    crate::fcfs::ENTRY,
    crate::sstf::ENTRY,
    crate::satf::ENTRY,
    crate::elevator::LOOK,
    crate::elevator::SCAN,
    crate::elevator::C_LOOK,
    crate::elevator::C_SCAN,
    crate::n_step_scan::FSCAN,
    crate::n_step_scan::N_STEP_SCAN,
    crate::edf::ENTRY,
    crate::scan_edf::ENTRY,
    crate::round_robin::ENTRY,
    crate::sfq::ENTRY,
    crate::wf2q::ENTRY,
    crate::cello::ENTRY,
    crate::wr::ENTRY,
    crate::clockwise::EDF_BACKGROUND,
    crate::clockwise::USD,
    crate::clockwise::LST,
    crate::clockwise::DELTAL,
    crate::hds::ENTRY,
    mq_deadline::ENTRY,
    kyber::ENTRY,
    bfq::ENTRY,
    elevator_linus::ENTRY,
];

/// An I/O scheduler of the kernel's multi-queue block layer.
pub struct KernelScheduler {
    /// Name in studies and in `/sys/block/DEV/queue/scheduler`.
    pub name: &'static str,
    /// Label in figures and tables.
    pub label: &'static str,
    /// Kernel module; `None` if built into every kernel.
    pub module: Option<&'static str>,
    /// Name in [`POLICIES`] of the model that replaces the scheduler in virtual time. Tunables keep their names.
    pub counterpart: &'static str,
}

/// I/O schedulers of the kernel.
pub const KERNEL_SCHEDULERS: &[KernelScheduler] = &[
    KernelScheduler { name: "none", label: "none", module: None, counterpart: "fcfs" },
    KernelScheduler {
        name: "mq-deadline",
        label: mq_deadline::ENTRY.label,
        module: Some("mq-deadline-iosched"),
        counterpart: mq_deadline::ENTRY.name,
    },
    KernelScheduler {
        name: "kyber",
        label: kyber::ENTRY.label,
        module: Some("kyber-iosched"),
        counterpart: kyber::ENTRY.name,
    },
    KernelScheduler {
        name: "bfq",
        label: bfq::ENTRY.label,
        module: Some("bfq"),
        counterpart: bfq::ENTRY.name,
    },
];

/// Kernel scheduler by name.
pub fn kernel_scheduler(name: &str) -> Option<&'static KernelScheduler> {
    KERNEL_SCHEDULERS.iter().find(|scheduler| scheduler.name == name)
}

/// Names of all schedulers, kernel schedulers first.
pub fn names() -> impl Iterator<Item = &'static str> {
    let own = POLICIES.iter().map(|entry| entry.name);
    KERNEL_SCHEDULERS.iter().map(|scheduler| scheduler.name).chain(own)
}

/// Builds a scheduler by its name.
///
/// # Errors
/// The name or a setting is unknown, a value is invalid, or the scheduler cannot serve the classes.
pub fn build(name: &str, classes: &[Class], settings: &Settings) -> Result<Box<dyn Policy>, SettingError> {
    let Some(entry) = POLICIES.iter().find(|entry| entry.name == name) else {
        let names = || POLICIES.iter().map(|entry| entry.name);
        let nearest =
            names().min_by_key(|known| strsim::damerau_levenshtein(known, name)).unwrap_or_default();
        let known = names().collect::<Vec<_>>().join(", ");
        return Err(SettingError::UnknownPolicy { name: name.to_owned(), nearest, known });
    };
    if let Some(key) = settings.0.keys().find(|key| !entry.settings.iter().any(|(known, _)| known == key)) {
        let known: Vec<&str> = entry.settings.iter().map(|(known, _)| *known).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        return Err(SettingError::UnknownKey { policy: entry.name, key: key.clone(), known });
    }
    (entry.build)(classes, settings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::TrafficKind;

    fn classes() -> Vec<Class> {
        let class = |name: &str, kind| Class { name: name.into(), kind, weight: 1.0, contract: None };
        vec![class("text", TrafficKind::Interactive), class("video", TrafficKind::RealTime)]
    }

    #[test]
    fn every_policy_can_be_built_and_says_what_it_is() {
        let mut names: Vec<&str> = POLICIES.iter().map(|entry| entry.name).collect();
        for entry in POLICIES {
            assert!(build(entry.name, &classes(), &Settings::default()).is_ok(), "{}", entry.name);
            assert!(![entry.label, entry.about, entry.promises].contains(&""), "{}", entry.name);
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), POLICIES.len());
    }

    #[test]
    fn kernel_schedulers_have_names_of_their_own_and_a_counterpart_that_exists() {
        for scheduler in KERNEL_SCHEDULERS {
            let known = |name| POLICIES.iter().any(|entry| entry.name == name);
            assert!(known(scheduler.counterpart) && !known(scheduler.name), "{}", scheduler.name);
            assert!(!scheduler.label.is_empty(), "{}", scheduler.name);
        }
    }

    #[test]
    fn what_is_unknown_is_refused_by_name() {
        let refused = |name, key: &str| {
            let settings = Settings([(key.to_owned(), "1".to_owned())].into());
            build(name, &classes(), &settings).err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert!(refused("fcsf", "x").contains("did you mean `fcfs`"), "{}", refused("fcsf", "x"));
        assert!(refused("fcfs", "depth").contains("no setting `depth`"), "{}", refused("fcfs", "depth"));
    }
}
