//! Elevator schedulers: LOOK, SCAN, C-LOOK and C-SCAN.
//!
//! P. J. Denning, "Effects of scheduling on file memory operations", AFIPS SJCC 1967 (SCAN); E. G. Coffman, L. A. Klimko
//! and B. Ryan, "Analysis of scanning policies for reducing disk seek times", SIAM J. Computing 1(3), 1972 (SCAN, FSCAN
//! and the circular variants); A. G. Merten, 1970 (LOOK).
//!
//! SCAN and C-SCAN move to the edge of the disk before they turn; LOOK and C-LOOK turn at the last request. A scheduler
//! only chooses requests and moves no idle arm: both variants serve requests in the same order. On a real disk they would
//! differ by the seek to the edge. One implementation has both names, so that a study can use the name in its paper.
//!
//! Papers call both orders SCAN. That of Shenoy, Goyal and Vin ("Architectural considerations for next generation file
//! systems", section 2.1) serves "in the increasing order of cylinder numbers": `c-scan` here.

use crate::by_offset::ByOffset;
use crate::entry::{Build, Entry};
use crate::model::ServiceModel;
use crate::policy::{Decision, Policy};
use crate::request::Request;
use crate::sweep::{Sweep, Turn};

const PROMISES: &str = "work conserving; offsets change in one direction within a sweep; a request is served at the latest in the sweep after its arrival";
const TWO_WAYS: Build = |_, _| Ok(Box::new(Elevator::new(Turn::Around)));
const ONE_WAY: Build = |_, _| Ok(Box::new(Elevator::new(Turn::ToTheStart)));

pub(crate) const LOOK: Entry = Entry {
    name: "look",
    label: "LOOK",
    about: "sweeps up and down, turns at the last request (Merten 1970)",
    promises: PROMISES,
    settings: &[],
    build: TWO_WAYS,
};

pub(crate) const SCAN: Entry = Entry {
    name: "scan",
    label: "SCAN",
    about: "sweeps up and down over the disk (Denning 1967); requests are served in the order of LOOK",
    promises: PROMISES,
    settings: &[],
    build: TWO_WAYS,
};

pub(crate) const C_LOOK: Entry = Entry {
    name: "c-look",
    label: "C-LOOK",
    about: "sweeps upwards, from the last request back to the lowest (Coffman, Klimko and Ryan 1972)",
    promises: PROMISES,
    settings: &[],
    build: ONE_WAY,
};

pub(crate) const C_SCAN: Entry = Entry {
    name: "c-scan",
    label: "C-SCAN",
    about: "sweeps upwards over the disk (Coffman, Klimko and Ryan 1972); requests are served in the order of C-LOOK",
    promises: PROMISES,
    settings: &[],
    build: ONE_WAY,
};

#[derive(Debug)]
struct Elevator {
    waiting: ByOffset,
    sweep: Sweep,
}

impl Elevator {
    fn new(turn: Turn) -> Self {
        Elevator { waiting: ByOffset::default(), sweep: Sweep::new(turn) }
    }
}

impl Policy for Elevator {
    fn arrive(&mut self, _: u64, request: Request, _: &dyn ServiceModel) {
        self.waiting.insert(request);
    }

    fn next(&mut self, _: u64, model: &dyn ServiceModel) -> Decision {
        self.sweep.take(&mut self.waiting, model.head_bytes()).map_or(Decision::Idle, Decision::Serve)
    }

    fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use crate::fixture::{at, offsets, policy};

    /// The queue of a common textbook example: head at 53; 98, 183, 37, 122, 14, 124, 65, 67 wait.
    const QUEUE: [u64; 8] = [98, 183, 37, 122, 14, 124, 65, 67];

    #[test]
    fn look_goes_up_and_then_down() {
        for name in ["look", "scan"] {
            let order = offsets(&mut *policy(name, &[]), &at(&QUEUE), 53);
            assert_eq!(order, [65, 67, 98, 122, 124, 183, 37, 14], "{name}");
        }
    }

    #[test]
    fn c_look_goes_up_and_starts_again() {
        for name in ["c-look", "c-scan"] {
            let order = offsets(&mut *policy(name, &[]), &at(&QUEUE), 53);
            assert_eq!(order, [65, 67, 98, 122, 124, 183, 14, 37], "{name}");
        }
    }
}
