//! Hierarchical disk sharing: a tree of token buckets in front of a disk scheduler.
//!
//! J. C. Wu, S. Banachowski and S. A. Brandt, "Hierarchical disk sharing for multimedia systems", NOSSDAV 2005.
//!
//! Each client, each group of clients and the disk has a token bucket, filled at its reserved rate. A request passes when
//! its client's bucket, or one above it, has enough tokens; they are taken from that bucket and all above it. A disk
//! scheduler (`below`) orders the passed requests. Three misprints in the paper's Fig. 2 are corrected after its text:
//! buckets are filled to the *minimum* of tokens and capacity; the root's bucket supplies tokens like every other; a
//! request waits for the missing tokens only, not for them and its size again.

mod bucket;
mod gate;
mod notation;
mod programme;
#[cfg(test)]
mod tests;
mod tree;

pub use bucket::{Rate, tokens_of};
pub use tree::{NodeId, Reservation, Tree, TreeError};

use self::gate::{Gate, WaitsFor};
use self::notation::Plan;
use self::programme::{Change, Programme};
use crate::entry::Entry;
use crate::linux::{elevator_linus, mq_deadline};
use crate::model::ServiceModel;
use crate::policy::{Account, Decision, Policy};
use crate::request::{Class, Request};
use crate::settings::{SettingError, Settings};
use crate::{edf, elevator, fcfs, satf, scan_edf, sstf};

const NAME: &str = "hds";
const MOST_KB_S: u64 = 1_000_000_000;
/// Work-conserving schedulers: they never hold back passed requests.
const BELOW: [Entry; 9] = [
    elevator::C_LOOK,
    elevator::LOOK,
    fcfs::ENTRY,
    sstf::ENTRY,
    satf::ENTRY,
    edf::ENTRY,
    scan_edf::ENTRY,
    mq_deadline::ENTRY,
    elevator_linus::ENTRY,
];

pub(crate) const ENTRY: Entry = Entry {
    name: NAME,
    label: "HDS",
    about: "a tree of token buckets that shares bandwidth among groups and clients (Wu, Banachowski and Brandt 2005)",
    promises: "a leaf gets its reserved rate, independent of other leaves, less one request; with pass=any no request waits \
               while a bucket above its leaf has enough tokens; at most the root's rate plus the content of buckets passes; a \
               leaf's requests in order of arrival",
    settings: &[
        ("root_kb_s", "rate of the whole disk, 1 token = 1 KB; default 18000, the paper's disk"),
        (
            "tree",
            "groups and classes with fractions, weights or KB/s: A:0.5(a:0.65,b:w3),B:4000kb_s(c); default: all classes \
             below the root with their weights",
        ),
        (
            "clients",
            "leaves. together: each class; apart: each client of a class, with equal weights; default together",
        ),
        (
            "pass",
            "a request that finds no tokens at its arrival passes. any: as soon as a bucket from its leaf to the root has them; \
             own: it takes them from its leaf and waits until its leaf's rate has made them, as make_request in Fig. 2; default \
             any",
        ),
        ("burst_ms", "capacity of a bucket, as the tokens of this time; default 500"),
        ("leave_ms", "a leaf without requests for this time leaves the tree; default 1000"),
        (
            "root",
            "rate of the root. fixed; rise: step_kb_s more every every_ms; adapt: more while leaves get their reserved \
             rates, less otherwise; default fixed",
        ),
        ("step_kb_s", "step of the root's rate; default 384"),
        ("every_ms", "time between steps; default 1000"),
        ("from_s", "start of the steps after the first request; default 0"),
        ("tolerance", "allowed deficit of a leaf, in % of its reserved rate; default 5"),
        ("below", "scheduler of passed requests, work conserving; default c-look"),
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
    let waits_for = match settings.word("pass", &["any", "own"])? {
        "own" => WaitsFor::OwnTokens,
        _ => WaitsFor::AnyTokens,
    };
    let below = settings.choice("below", &BELOW, |entry| entry.name)?;
    let below = (below.build)(classes, &Settings::default())?;
    let gate = Gate::new(plan, root, burst_ns, is_by_client, leave_ns, programme).waiting_for(waits_for);
    Ok(Box::new(Hds { gate, below }))
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
