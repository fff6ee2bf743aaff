//! B-WF2Q+: which queue is served next.
//!
//! P. Valente and M. Andreolini, "Improving application responsiveness with the BFQ disk I/O scheduler", SYSTOR 2012,
//! section 3. The tags of WF2Q+ are computed from budgets, which may turn out too large, and corrected when a queue has
//! been served.

use std::collections::BTreeSet;

use crate::share::{Pace, Weight};

/// Queues that want service, by their numbers.
#[derive(Debug)]
pub(crate) struct Tree {
    /// Those whose start has come, by finish.
    eligible: BTreeSet<(u128, usize)>,
    /// The others by start, with their finish.
    early: BTreeSet<(u128, u128, usize)>,
    virtual_now: u128,
    /// Weight of those that want service or are being served.
    total: Weight,
    /// How fast virtual time passes for all of them.
    all: Pace,
}

impl Default for Tree {
    fn default() -> Self {
        let total = [].into_iter().sum::<Weight>();
        Tree {
            eligible: BTreeSet::new(),
            early: BTreeSet::new(),
            virtual_now: 0,
            total,
            all: total.pace_up(),
        }
    }
}

impl Tree {
    pub(crate) fn virtual_now(&self) -> u128 {
        self.virtual_now
    }

    /// A queue that was idle wants service; [`Tree::insert`] follows.
    pub(crate) fn join(&mut self, weight: Weight) {
        self.set_total(self.total + weight);
    }

    /// A queue that was served wants no more.
    pub(crate) fn leave(&mut self, weight: Weight) {
        self.set_total(self.total - weight);
    }

    fn set_total(&mut self, total: Weight) {
        self.total = total;
        self.all = total.pace_up();
    }

    pub(crate) fn insert(&mut self, queue: usize, start: u128, finish: u128) {
        self.early.insert((start, finish, queue));
    }

    /// Takes the queue with the least finish among those whose start has come. Virtual time jumps to the least start if
    /// none has.
    pub(crate) fn pick(&mut self) -> Option<usize> {
        if let (true, Some((start, ..))) = (self.eligible.is_empty(), self.early.first()) {
            self.virtual_now = self.virtual_now.max(*start);
        }
        while let Some((start, finish, queue)) = self.early.first().copied()
            && start <= self.virtual_now
        {
            self.early.pop_first();
            self.eligible.insert((finish, queue));
        }
        self.eligible.pop_first().map(|(_, queue)| queue)
    }

    /// Sectors were served.
    pub(crate) fn served(&mut self, sectors: u64) {
        self.virtual_now = self.virtual_now.saturating_add(self.all.times(sectors));
    }
}
