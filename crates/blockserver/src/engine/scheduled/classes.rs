//! Classes of a server with a scheduler: attribution of requests to classes, and properties of a class for the scheduler.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_scheduler::guarantee::Task;
use weir_scheduler::{Class, Contract};
use weir_specs::{Document, Problems};
use weir_vocabulary::{IoPriorityClass, TrafficKind};

/// Most classes of a server: as many as the simulator has.
pub const MOST_CLASSES: usize = 64;
/// Name of the class of unattributed requests, if every class has a mark.
pub const OTHER: &str = "other";
const MIB: u64 = 1 << 20;

/// Contract of a class with each disk; see docs/reference/schedulers-clockwise.md.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ContractSpec {
    /// Maximum service time of a request on one disk, in ms.
    pub cost_ms: f64,
    /// Time from one request to the next, in ms.
    pub period_ms: f64,
    /// Streams that are promised it.
    #[serde(default = "one")]
    pub streams: u32,
}

/// One class. A request belongs to the first class whose marks (a range or extents, `cgroup`, `ioprio`) all match. At
/// most one class has no mark or `rest: true`; it has the unattributed requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClassSpec {
    /// Name: letters, digits, `-` and `_`, at most 40.
    pub name: String,
    /// Traffic kind.
    #[serde(default = "best_effort")]
    pub wants: TrafficKind,
    /// Its share relative to the other classes, above 0.
    #[serde(default = "weight_one")]
    pub weight: f64,
    /// A request's answer becomes worthless so long after its arrival, in ms; without, the contract's period, or never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<f64>,
    /// Contract, for policies with guarantees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract: Option<ContractSpec>,
    /// First MiB, and the one after the last, of the part of the device that is its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range_mib: Option<[u64; 2]>,
    /// First byte, and the one after the last; in place of `range_mib` if the range is not in whole MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range_bytes: Option<[u64; 2]>,
    /// Its parts, in place of a range: of each the first byte and the one after the last, in order and apart. As a file system has
    /// placed files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extents_bytes: Vec<[u64; 2]>,
    /// Size of each stream's part of the range, in MiB: stream n begins n parts after its start. Without it, each NBD
    /// connection is a stream, and all other requests are one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream_mib: Option<u64>,
    /// The same in bytes, in place of `stream_mib`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream_bytes: Option<u64>,
    /// Control group of the asking process, as in /proc/PID/cgroup: this one and those below it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<String>,
    /// I/O priority class of the asking process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ioprio: Option<IoPriorityClass>,
    /// Whether it also takes what fits no class, in place of one without a mark.
    #[serde(default, skip_serializing_if = "is_false")]
    pub rest: bool,
    /// Of a partitioned server: the disks that are its own.
    #[serde(default = "one")]
    pub heads: u32,
    /// Partitioned servers: size of the class's own device, in MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_mib: Option<u64>,
}

/// A file of classes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClassesFile {
    /// The classes; of two that fit a request the first has it.
    pub classes: Vec<ClassSpec>,
}

impl ClassesFile {
    /// Reads and checks a file of classes for a device of `size_mib` (`None`: each class has its own).
    ///
    /// # Errors
    /// The file cannot be read, or is invalid: the problem with its line.
    pub fn load(path: &Path, size_mib: Option<u64>) -> Result<Self, Problems> {
        let document = Document::read(path)?;
        let file: ClassesFile = document.parse_all()?;
        check(&file.classes, size_mib).map_err(|ClassProblem { field, message }| {
            document.problem(format!("classes.{field}").trim_end_matches('.'), message)
        })?;
        Ok(file)
    }
}

fn one() -> u32 {
    1
}

fn is_false(value: &bool) -> bool {
    !*value
}

fn best_effort() -> TrafficKind {
    TrafficKind::BestEffort
}

fn weight_one() -> f64 {
    1.0
}

/// A problem in classes: the field as a dotted path below `classes`, and the message with its remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassProblem {
    /// The field, such as `2.weight`.
    pub field: String,
    /// Found and allowed values.
    pub message: String,
}

impl ClassSpec {
    /// A class of that name which only has defaults.
    pub fn named(name: &str) -> Self {
        ClassSpec {
            name: name.to_owned(),
            wants: best_effort(),
            weight: 1.0,
            deadline_ms: None,
            contract: None,
            range_mib: None,
            range_bytes: None,
            extents_bytes: Vec::new(),
            stream_mib: None,
            stream_bytes: None,
            cgroup: None,
            ioprio: None,
            rest: false,
            heads: 1,
            size_mib: None,
        }
    }

    /// The class on its own device, without marks.
    pub fn alone(&self) -> Self {
        ClassSpec {
            wants: self.wants,
            weight: self.weight,
            deadline_ms: self.deadline_ms,
            contract: self.contract,
            heads: self.heads,
            size_mib: self.size_mib,
            ..Self::named(&self.name)
        }
    }

    /// Whether it takes what fits no other.
    pub fn takes_the_rest(&self) -> bool {
        let has_place = self.range().is_some() || !self.extents_bytes.is_empty();
        self.rest || !(has_place || self.cgroup.is_some() || self.ioprio.is_some())
    }

    /// The parts of the device that are its own, in order: its range, or its extents.
    pub fn parts(&self) -> Vec<[u64; 2]> {
        self.range().map_or_else(|| self.extents_bytes.clone(), |range| vec![range])
    }

    /// The part of the device that is its own: its first byte, and the one after the last.
    pub fn range(&self) -> Option<[u64; 2]> {
        self.range_bytes.or(self.range_mib.map(|range| range.map(|mib| mib.saturating_mul(MIB))))
    }

    /// Each stream's part of the range, in bytes.
    pub fn stream(&self) -> Option<u64> {
        self.stream_bytes.or(self.stream_mib.map(|mib| mib.saturating_mul(MIB)))
    }

    /// How long after its arrival a request is due, in ns.
    pub fn deadline_after_ns(&self) -> Option<u64> {
        let ms = self.deadline_ms.or(self.contract.map(|contract| contract.period_ms))?;
        Some((ms * 1e6).round() as u64)
    }

    /// The class for policies; without its contract if the contract is invalid, which `check` refuses.
    pub fn class(&self) -> Class {
        let contract = self.contract.and_then(|ContractSpec { cost_ms, period_ms, streams }| {
            Some(Contract { task: Task::from_ms(cost_ms, period_ms).ok()?, streams })
        });
        Class { name: self.name.clone(), kind: self.wants, weight: self.weight, contract }
    }

    fn check(&self, size_mib: Option<u64>) -> Result<(), (&'static str, String)> {
        if let Some(problem) = weir_specs::name_problem(&self.name) {
            return Err(("name", problem));
        }
        if !(0.001..=1e6).contains(&self.weight) {
            return Err(("weight", format!("is {}; it must be from 0.001 to 1000000", self.weight)));
        }
        let most_ms = Task::MOST_NS as f64 / 1e6;
        let time = |field, ms: f64| match (1e-6..=most_ms).contains(&ms) {
            true => Ok(()),
            false => Err((field, format!("is {ms}; it must be above 0 and at most {most_ms} ms"))),
        };
        if let Some(ms) = self.deadline_ms {
            time("deadline_ms", ms)?;
        }
        if let Some(contract) = self.contract {
            Task::from_ms(contract.cost_ms, contract.period_ms).map_err(|(field, message)| match field {
                "period_ms" => ("contract.period_ms", message),
                _ => ("contract.cost_ms", message),
            })?;
            if !(1..=100_000).contains(&contract.streams) {
                return Err(("contract.streams", format!("is {}; use 1 to 100000", contract.streams)));
            }
        }
        for (field, twin, are_both) in [
            ("range_bytes", "range_mib", self.range_bytes.is_some() && self.range_mib.is_some()),
            ("stream_bytes", "stream_mib", self.stream_bytes.is_some() && self.stream_mib.is_some()),
        ] {
            if are_both {
                return Err((field, format!("is given beside {twin}. Leave one of them out")));
            }
        }
        if let Some([from, to]) = self.range_mib {
            let end = size_mib.unwrap_or(u64::MAX >> 20);
            if from >= to || to > end {
                let found = format!("is [{from}, {to}]");
                return Err((
                    "range_mib",
                    format!("{found} (expected the first MiB and the one after the last, within 0 to {end})"),
                ));
            }
        }
        if let Some([from, to]) = self.range_bytes {
            let end = size_mib.map_or(u64::MAX, |mib| mib.saturating_mul(MIB));
            if from >= to || to > end {
                let found = format!("is [{from}, {to}]");
                return Err((
                    "range_bytes",
                    format!(
                        "{found} (expected the first byte and the one after the last, within 0 to {end})"
                    ),
                ));
            }
        }
        if !self.extents_bytes.is_empty() {
            if self.range().is_some() {
                return Err(("extents_bytes", "is given beside a range. Leave one of them out".to_owned()));
            }
            let end = size_mib.map_or(u64::MAX, |mib| mib.saturating_mul(MIB));
            let mut free_from = 0;
            for [from, to] in &self.extents_bytes {
                if *from < free_from || from >= to || *to > end {
                    return Err((
                        "extents_bytes",
                        format!(
                            "has [{from}, {to}] (expected the first byte and the one after the last, ordered and disjoint, within 0 to {end})"
                        ),
                    ));
                }
                free_from = *to;
            }
        }
        let field = if self.stream_bytes.is_some() { "stream_bytes" } else { "stream_mib" };
        match (self.stream(), self.range()) {
            (Some(0), _) => return Err((field, "is 0; it must be at least 1".to_owned())),
            (Some(_), None) => {
                return Err((field, "is given without a range. Give range_mib too".to_owned()));
            }
            _ => {}
        }
        if self.cgroup.as_ref().is_some_and(|path| !path.starts_with('/')) {
            return Err(("cgroup", "must begin with `/`, as in /proc/PID/cgroup".to_owned()));
        }
        if !(1..=64).contains(&self.heads) {
            return Err(("heads", format!("is {}; it must be from 1 to 64", self.heads)));
        }
        Ok(())
    }
}

/// Checks classes for a device of `size_mib` (`None`: each has its own).
///
/// # Errors
/// The first thing that is wrong.
pub fn check(classes: &[ClassSpec], size_mib: Option<u64>) -> Result<(), ClassProblem> {
    let problem = |at: usize, (field, message): (&str, String)| ClassProblem {
        field: format!("{at}.{field}"),
        message,
    };
    if classes.len() >= MOST_CLASSES {
        let message =
            format!("too many classes (found {}, expected at most {})", classes.len(), MOST_CLASSES - 1);
        return Err(ClassProblem { field: String::new(), message });
    }
    for (at, class) in classes.iter().enumerate() {
        class.check(size_mib).map_err(|wrong| problem(at, wrong))?;
        if classes[..at].iter().any(|other| other.name == class.name) {
            return Err(problem(
                at,
                ("name", format!("`{}` is given twice. Choose another name", class.name)),
            ));
        }
        if size_mib.is_some()
            && class.takes_the_rest()
            && let Some(other) = classes[..at].iter().find(|other| other.takes_the_rest())
        {
            let message = format!(
                "`{}` and `{}` both have unattributed requests. Give one of them range_mib, cgroup or ioprio, without `rest`",
                other.name, class.name
            );
            return Err(problem(at, ("name", message)));
        }
    }
    Ok(())
}

/// The classes with one of unattributed requests: an existing one, or [`OTHER`] at the end.
pub fn completed(classes: &[ClassSpec]) -> Vec<ClassSpec> {
    let mut all = classes.to_vec();
    if !all.iter().any(ClassSpec::takes_the_rest) {
        // A user's class may already have this name.
        let free = (0..).map(|n| if n == 0 { OTHER.to_owned() } else { format!("{OTHER}{n}") });
        let name = free.into_iter().find(|name| all.iter().all(|class| class.name != *name));
        all.push(ClassSpec::named(&name.unwrap_or_default()));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(name: &str) -> ClassSpec {
        ClassSpec::named(name)
    }

    #[test]
    fn what_is_wrong_is_named() {
        let at = |classes: &[ClassSpec]| check(classes, Some(100)).unwrap_err().field;
        assert_eq!(at(&[ClassSpec { weight: 0.0, ..class("a") }]), "0.weight");
        assert_eq!(at(&[class("a"), class("b")]), "1.name");
        assert_eq!(at(&[ClassSpec { range_mib: Some([10, 101]), ..class("a") }]), "0.range_mib");
        assert_eq!(at(&[ClassSpec { range_mib: Some([10, 10]), ..class("a") }]), "0.range_mib");
        assert_eq!(at(&[ClassSpec { stream_mib: Some(1), ..class("a") }]), "0.stream_mib");
        let bytes = |range| ClassSpec { range_bytes: Some(range), ..class("a") };
        assert_eq!(at(&[bytes([0, (100 << 20) + 1])]), "0.range_bytes");
        assert_eq!(at(&[bytes([7, 7])]), "0.range_bytes");
        assert_eq!(at(&[ClassSpec { range_mib: Some([0, 1]), ..bytes([0, 9]) }]), "0.range_bytes");
        assert_eq!(at(&[ClassSpec { stream_bytes: Some(0), ..bytes([0, 9]) }]), "0.stream_bytes");
        assert_eq!(check(&[bytes([1, 9]), class("b")], Some(100)), Ok(()));
        let contract = Some(ContractSpec { cost_ms: 0.0, period_ms: 1.0, streams: 1 });
        assert_eq!(at(&[ClassSpec { contract, ..class("a") }]), "0.contract.cost_ms");
        assert_eq!(check(&[class("a"), class("b")], None), Ok(()), "a partitioned server needs no marks");
    }

    #[test]
    fn somebody_takes_the_rest() {
        let video = ClassSpec { range_mib: Some([0, 1]), ..class("video") };
        let names =
            |all: Vec<ClassSpec>| all.into_iter().map(|class| class.name).collect::<Vec<_>>().join(" ");
        assert_eq!(names(completed(std::slice::from_ref(&video))), "video other");
        assert_eq!(names(completed(&[video.clone(), class("text")])), "video text");
        assert_eq!(names(completed(&[ClassSpec { rest: true, ..video.clone() }])), "video");
        let both = [ClassSpec { rest: true, ..video.clone() }, class("text")];
        assert!(check(&both, Some(100)).unwrap_err().message.contains("`video` and `text`"));
        assert_eq!(names(completed(&[ClassSpec { name: OTHER.into(), ..video }])), "other other1");
    }
}
