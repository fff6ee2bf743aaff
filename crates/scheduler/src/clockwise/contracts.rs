//! Admission of the contracts of classes.

use super::slots::Slots;
use crate::guarantee::{Mode, Rejection, Slack, Task, TaskSet, Utilisation, slack};
use crate::request::{Class, Request, TrafficKind};
use crate::settings::{SettingError, Settings};

/// Maximum number of streams with contracts.
const MOST_STREAMS: u64 = 100_000;

/// Admission test of contracts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Test {
    /// Jeffay's test, with the corresponding slack.
    Slack(Mode),
    /// The sum of cost / period is at most 1.
    Sum,
    /// All of them are.
    None,
}

pub(super) const REJECTED: (&str, &str) = (
    "rejected",
    "refuse: contracts that cannot be guaranteed are an error; best-effort: streams are admitted in the order of classes, \
     rejected ones are best effort; default refuse",
);

pub(super) const SERVER: (&str, &str) = (
    "server",
    "server of a best-effort class's contract. sporadic: its cost in any period; container: as in the thesis, where a late \
     joiner of a container can delay others; default sporadic",
);

pub(super) const LEAST_SLACK: (&str, &str) =
    ("least_slack_ms", "least slack ΔL after admission, in ms, reserved for best effort; default 0");

/// Flow of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Member {
    /// Number of the flow.
    pub(super) flow: usize,
    /// Cost of a request in the contract.
    pub(super) cost_ns: u64,
    /// Whether all requests share the cost (best-effort class).
    pub(super) is_server: bool,
}

/// The flows of a class: one for each stream, or one for all.
#[derive(Debug, Clone, Default)]
struct OfClass {
    /// By stream; `None` for those that were not admitted.
    flows: Vec<Option<usize>>,
    cost_ns: u64,
    is_server: bool,
}

/// Admitted contracts.
#[derive(Debug, Clone, Default)]
pub(super) struct Contracts {
    classes: Vec<OfClass>,
}

/// Contracts, the slots of each flow, and the slack of all, if it is required and there are contracts.
pub(super) type Admitted = (Contracts, Vec<Slots>, Option<Slack>);

/// Admits the contracts of classes. With `by_slices` contracts are slices, as in Atropos.
pub(super) fn admit(
    policy: &'static str,
    classes: &[Class],
    settings: &Settings,
    test: Test,
    by_slices: bool,
) -> Result<Admitted, SettingError> {
    let refuse = settings.word("rejected", &["refuse", "best-effort"])? == "refuse";
    let containers = !by_slices && settings.word("server", &["sporadic", "container"])? == "container";
    let refused = |problem: String| SettingError::Classes { policy, problem };
    let spare_ns = settings.ms("least_slack_ms", 0.0)?;
    let wanted = wanted(classes).map_err(refused)?;
    let tasks: Vec<Task> = wanted.iter().map(|(_, task)| *task).collect();
    let (is_admitted, slack) = match test_all(&tasks, test) {
        Ok(slack) if spares(slack, spare_ns) => (vec![true; tasks.len()], slack),
        Ok(slack) if refuse => return Err(refused(too_little(slack, spare_ns))),
        Err(rejection) if refuse => return Err(refused(reason(rejection, &wanted, classes))),
        _ => in_order(&tasks, test, spare_ns),
    };
    let mut contracts = Contracts { classes: vec![OfClass::default(); classes.len()] };
    let mut slots = Vec::new();
    for ((class, task), is_admitted) in wanted.into_iter().zip(is_admitted) {
        let of_class = &mut contracts.classes[class];
        of_class.cost_ns = task.cost_ns();
        of_class.is_server = classes[class].kind != TrafficKind::RealTime;
        of_class.flows.push(is_admitted.then_some(slots.len()));
        if is_admitted {
            slots.push(match (by_slices, of_class.is_server) {
                (true, _) => Slots::slice(task),
                (_, false) => Slots::stream(task),
                _ if containers => Slots::container(task),
                _ => Slots::server(task),
            });
        }
    }
    Ok((contracts, slots, slack))
}

/// Requested tasks: one for each stream of a real-time class, one for each other class.
fn wanted(classes: &[Class]) -> Result<Vec<(usize, Task)>, String> {
    let mut wanted = Vec::new();
    let mut streams = 0;
    for (number, class) in classes.iter().enumerate() {
        let Some(contract) = class.contract else { continue };
        let count = if class.kind == TrafficKind::RealTime { contract.streams } else { 1 };
        streams += u64::from(count);
        if streams > MOST_STREAMS {
            return Err(format!(
                "too many streams with contracts (found {streams} up to class `{}`, expected at most {MOST_STREAMS})",
                class.name
            ));
        }
        wanted.extend((0..count).map(|_| (number, contract.task)));
    }
    Ok(wanted)
}

fn test_all(tasks: &[Task], test: Test) -> Result<Option<Slack>, Rejection> {
    match test {
        Test::Slack(mode) => slack(tasks, mode),
        Test::Sum => match Utilisation::of(tasks) {
            utilisation if utilisation.fits() => Ok(None),
            utilisation => Err(Rejection::Overload { utilisation }),
        },
        Test::None => Ok(None),
    }
}

/// Whether the contracts leave the required slack; no contracts leave any slack.
fn spares(slack: Option<Slack>, spare_ns: u64) -> bool {
    slack.is_none_or(|slack| slack.slack_ns() >= spare_ns)
}

fn too_little(slack: Option<Slack>, spare_ns: u64) -> String {
    format!(
        "the contracts of the classes leave a slack of {} ms, below least_slack_ms={}. Use fewer streams, lower least_slack_ms, or \
         set rejected=best-effort",
        slack.map_or(0, Slack::slack_ns) as f64 / 1e6,
        spare_ns as f64 / 1e6,
    )
}

/// Admits tasks one after the other while they fit.
fn in_order(tasks: &[Task], test: Test, spare_ns: u64) -> (Vec<bool>, Option<Slack>) {
    match test {
        Test::Slack(mode) => {
            let mut set = TaskSet::new(mode);
            let mut take = |task: &Task| match set.admit(*task) {
                Ok(_) if spares(set.slack(), spare_ns) => true,
                Ok(id) => {
                    set.remove(id);
                    false
                }
                Err(_) => false,
            };
            let is_admitted = tasks.iter().map(&mut take).collect();
            (is_admitted, set.slack())
        }
        Test::Sum | Test::None => {
            let mut taken: Vec<Task> = Vec::new();
            let mut take = |task: &Task| {
                taken.push(*task);
                let fits = test_all(&taken, test).is_ok();
                if !fits {
                    taken.pop();
                }
                fits
            };
            (tasks.iter().map(&mut take).collect(), None)
        }
    }
}

/// Error message of a rejection, with class and remedy.
fn reason(rejection: Rejection, wanted: &[(usize, Task)], classes: &[Class]) -> String {
    let remedy = "Use fewer streams or longer periods, or set rejected=best-effort";
    match rejection {
        Rejection::Blocked { task, interval_ns, shortfall_ns } => {
            let name = wanted.get(task).map_or("", |(class, _)| classes[*class].name.as_str());
            format!(
                "the contracts of the classes cannot be guaranteed: after a request of class `{name}` has just begun, an interval of \
                 {1} ms is {0} ms too short. {remedy}",
                shortfall_ns as f64 / 1e6,
                interval_ns as f64 / 1e6,
            )
        }
        other => format!("the contracts of the classes cannot be guaranteed: {other}. {remedy}"),
    }
}

impl Contracts {
    /// Contract of a request.
    pub(super) fn member(&self, request: &Request) -> Option<Member> {
        let of_class = self.classes.get(usize::from(request.class))?;
        let stream = if of_class.is_server { 0 } else { usize::try_from(request.stream).ok()? };
        let flow = (*of_class.flows.get(stream)?)?;
        Some(Member { flow, cost_ns: of_class.cost_ns, is_server: of_class.is_server })
    }
}
