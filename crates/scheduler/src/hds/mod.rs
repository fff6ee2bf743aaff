//! Hierarchical disk sharing: a tree of token buckets in front of a disk scheduler.
//!
//! J. C. Wu, S. Banachowski and S. A. Brandt, "Hierarchical disk sharing for multimedia systems", NOSSDAV 2005.
//!
//! Each client has a bucket that is filled at the rate it reserves, and so has each group of clients and the disk itself. A
//! request passes when its client's bucket, or one above it, has the tokens for it; from there upwards they are taken out.
//! What has passed is the disk scheduler's (`below`). What the paper's Fig. 2 misprints is done as its text says: buckets
//! are filled to the *minimum* of what has come and what they hold; the root's bucket supplies and is drawn from as every
//! other; and who has to wait does so for what is missing, not for that and the request's size again.

mod bucket;
mod gate;
mod notation;
mod programme;
#[cfg(test)]
mod tests;
mod tree;

pub use bucket::{Rate, tokens_of};
pub use tree::{NodeId, Reservation, Tree, TreeError};

use self::gate::Gate;
use self::notation::Plan;
use self::programme::{Change, Programme};
use crate::entry::Entry;
use crate::linux::mq_deadline;
use crate::model::ServiceModel;
use crate::policy::{Account, Decision, Policy};
use crate::request::{Class, Request};
use crate::settings::{SettingError, Settings};
use crate::{edf, elevator, fcfs, satf, scan_edf, sstf};

const NAME: &str = "hds";
const MOST_KB_S: u64 = 1_000_000_000;
/// Schedulers that conserve work, so that what has passed is never held back again.
const BELOW: [Entry; 8] = [
    elevator::C_LOOK,
    elevator::LOOK,
    fcfs::ENTRY,
    sstf::ENTRY,
    satf::ENTRY,
    edf::ENTRY,
    scan_edf::ENTRY,
    mq_deadline::ENTRY,
];

pub(crate) const ENTRY: Entry = Entry {
    name: NAME,
    label: "HDS",
    about: "a tree of token buckets that shares bandwidth among groups and clients (Wu, Banachowski and Brandt 2005)",
    promises: "a leaf passes what it reserves, whatever the others do, but for one request; nobody waits while a bucket \
               above it has the tokens; no more than the root's rate passes, but for what buckets hold; a leaf's requests \
               in the order of arrival",
    settings: &[
        ("root_kb_s", "rate of the whole disk, 1 token = 1 KB; default 18000, the paper's disk"),
        (
            "tree",
            "groups and classes with fractions, weights or KB/s: A:0.5(a:0.65,b:w3),B:4000kb_s(c); default: all classes \
             below the root with their weights",
        ),
        (
            "clients",
            "together: a class is one leaf; apart: each of its clients, with equal weights; default together",
        ),
        ("burst_ms", "a bucket holds what comes in this time; default 500"),
        ("leave_ms", "a leaf without requests for so long leaves the tree; default 1000"),
        (
            "root",
            "fixed; rise: step_kb_s more every every_ms; adapt: more while leaves get what they reserve, less if they do \
             not; default fixed",
        ),
        ("step_kb_s", "by how much the root's rate changes; default 384"),
        ("every_ms", "how often; default 1000"),
        ("from_s", "how long after the first request it begins to; default 0"),
        ("tolerance", "by how many % a leaf may get less than it reserves; default 5"),
        ("below", "order of what has passed: one of the schedulers that are never idle; default c-look"),
    ],
    build,
};

fn build(classes: &[Class], settings: &Settings) -> Result<Box<dyn Policy>, SettingError> {
    let root = Rate::per_s(settings.count("root_kb_s", 18_000, 1, MOST_KB_S)?);
    let plan = Plan::read(settings.0.get("tree").map(String::as_str), classes, root)?;
    let step = Rate::per_s(settings.count("step_kb_s", 384, 1, MOST_KB_S)?);
    let tolerance_percent = settings.count("tolerance", 5, 0, 99)?;
    let change = match settings.word("root", &["fixed", "rise", "adapt"])? {
        "rise" => Change::Rise,
        "adapt" => Change::Follow { tolerance_percent },
        _ => Change::None,
    };
    let every_ns = settings.number("every_ms", 1000.0, 1.0, 1e9).map(ms_ns)?;
    let from_ns = settings.number("from_s", 0.0, 0.0, 1e6).map(|s| ms_ns(s * 1e3))?;
    let programme = Programme::new(change, step, every_ns, from_ns, plan.firm, Rate::per_s(MOST_KB_S));
    let burst_ns = settings.number("burst_ms", 500.0, 1.0, 1e6).map(ms_ns)?;
    let leave_ns = settings.ms("leave_ms", 1000.0)?;
    let is_by_client = settings.word("clients", &["together", "apart"])? == "apart";
    let below = settings.choice("below", &BELOW, |entry| entry.name)?;
    let below = (below.build)(classes, &Settings::default())?;
    Ok(Box::new(Hds { gate: Gate::new(plan, root, burst_ns, is_by_client, leave_ns, programme), below }))
}

fn ms_ns(ms: f64) -> u64 {
    (ms * 1e6).round() as u64
}

/// Shares bandwidth by tokens.
struct Hds {
    gate: Gate,
    below: Box<dyn Policy>,
}

impl Hds {
    fn hand_down(&mut self, now_ns: u64, model: &dyn ServiceModel) {
        while let Some(request) = self.gate.take_passed() {
            self.below.arrive(now_ns, request, model);
        }
    }
}

impl Policy for Hds {
    fn arrive(&mut self, now_ns: u64, request: Request, model: &dyn ServiceModel) {
        self.gate.arrive(now_ns, request);
        self.hand_down(now_ns, model);
    }

    fn next(&mut self, now_ns: u64, model: &dyn ServiceModel) -> Decision {
        self.gate.catch_up(now_ns);
        self.hand_down(now_ns, model);
        match self.below.next(now_ns, model) {
            Decision::Idle => self.gate.next_ns().map_or(Decision::Idle, Decision::WaitUntil),
            Decision::WaitUntil(below_ns) => {
                Decision::WaitUntil(self.gate.next_ns().map_or(below_ns, |at_ns| at_ns.min(below_ns)))
            }
            decision @ Decision::Serve(_) => decision,
        }
    }

    fn complete(&mut self, now_ns: u64, request: &Request, begun_ns: u64) {
        self.gate.complete(now_ns, request);
        self.below.complete(now_ns, request, begun_ns);
    }

    fn accounts(&self) -> Vec<Account> {
        self.gate.accounts()
    }

    fn waiting(&self) -> usize {
        self.gate.waiting() + self.below.waiting()
    }
}
