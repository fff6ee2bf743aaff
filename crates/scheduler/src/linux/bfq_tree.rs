//! B-WF2Q+: the choice of the next queue.
//!
//! P. Valente and M. Andreolini, "Improving application responsiveness with the BFQ disk I/O scheduler", SYSTOR 2012,
//! section 3. The tags of WF2Q+ are computed from budgets, which may turn out too large, and corrected when a queue has
//! been served.

use std::collections::{BTreeMap, BTreeSet};

use crate::share::{Pace, Weight};

/// Backlogged queues by index.
#[derive(Debug)]
pub(crate) struct Tree {
    /// Eligible queues by finish, then by arrival.
    eligible: BTreeSet<(u128, u64, usize)>,
    /// Other queues by start, with finish.
    early: BTreeSet<(u128, u128, u64, usize)>,
    insertions: u64,
    virtual_now: u128,
    /// Sum of weights of backlogged queues and the queue in service.
    total: Weight,
    /// How fast virtual time passes for all of them.
    all: Pace,
    /// Number of queues by weight.
    weights: BTreeMap<Weight, usize>,
}

impl Default for Tree {
    fn default() -> Self {
        let total = [].into_iter().sum::<Weight>();
        Tree {
            eligible: BTreeSet::new(),
            early: BTreeSet::new(),
            insertions: 0,
            virtual_now: 0,
            total,
            all: total.pace_up(),
            weights: BTreeMap::new(),
        }
    }
}

impl Tree {
    pub(crate) fn virtual_now(&self) -> u128 {
        self.virtual_now
    }

    /// Activates an idle queue; [`Tree::insert`] follows.
    pub(crate) fn join(&mut self, weight: Weight) {
        *self.weights.entry(weight).or_default() += 1;
        self.set_total(self.total + weight);
    }

    /// Deactivates a served queue.
    pub(crate) fn leave(&mut self, weight: Weight) {
        if let Some(count) = self.weights.get_mut(&weight) {
            *count -= 1;
            if *count == 0 {
                self.weights.remove(&weight);
            }
        }
        self.set_total(self.total - weight);
    }

    /// Whether active queues differ in weight.
    pub(crate) fn is_asymmetric(&self) -> bool {
        self.weights.len() > 1
    }

    /// Whether exactly one queue is active.
    pub(crate) fn has_one(&self) -> bool {
        self.weights.values().sum::<usize>() == 1
    }

    fn set_total(&mut self, total: Weight) {
        self.total = total;
        self.all = total.pace_up();
    }

    pub(crate) fn insert(&mut self, queue: usize, start: u128, finish: u128) {
        self.early.insert((start, finish, self.insertions, queue));
        self.insertions += 1;
    }

    /// Removes the eligible queue with the least finish. Without an eligible queue, virtual time jumps to the least start.
    pub(crate) fn pick(&mut self) -> Option<usize> {
        if let (true, Some((start, ..))) = (self.eligible.is_empty(), self.early.first()) {
            self.virtual_now = self.virtual_now.max(*start);
        }
        while let Some((start, finish, insertion, queue)) = self.early.first().copied()
            && start <= self.virtual_now
        {
            self.early.pop_first();
            self.eligible.insert((finish, insertion, queue));
        }
        self.eligible.pop_first().map(|(.., queue)| queue)
    }

    /// Reports served sectors.
    pub(crate) fn served(&mut self, sectors: u64) {
        self.virtual_now = self.virtual_now.saturating_add(self.all.times(sectors));
    }
}
