//! Write cache of a disk: written data not yet on the platter.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Time of writes from the cache to the platter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Destage {
    /// Whenever the arm has nothing else to do.
    #[default]
    Idle,
    /// Only to make room for another write.
    Full,
}

/// Size and habit of a write cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteCacheOptions {
    /// Capacity in sectors; longer writes go directly to the platter.
    pub sectors: u64,
    /// Separate runs of sectors that it holds; a write that continues the last one is of the same run.
    pub runs: usize,
    /// When it is emptied.
    pub destage: Destage,
}

/// A run of dirty sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// First sector.
    pub first: u64,
    /// The sector after the last one.
    pub end: u64,
    /// When the last of its data arrived.
    pub since_ns: u64,
}

/// The dirty runs, oldest first, and the one that is being written to the platter.
#[derive(Clone, Debug)]
pub(crate) struct WriteCache {
    options: WriteCacheOptions,
    runs: VecDeque<Run>,
    dirty: u64,
    /// Sectors on their way and when they are on the platter.
    leaving: Option<(u64, u64)>,
}

impl WriteCache {
    pub fn new(options: WriteCacheOptions) -> Self {
        Self { options, runs: VecDeque::new(), dirty: 0, leaving: None }
    }

    /// The run that the disk writes by itself if the arm is free before `now_ns`, and when it can begin.
    pub fn due(&self, arm_free_ns: u64, now_ns: u64) -> Option<(Run, u64)> {
        let run = self.runs.front().filter(|_| self.options.destage == Destage::Idle)?;
        let start_ns = arm_free_ns.max(run.since_ns);
        (start_ns < now_ns).then_some((*run, start_ns))
    }

    /// The oldest run.
    pub fn oldest(&self) -> Option<Run> {
        self.runs.front().copied()
    }

    /// Takes the oldest run to the platter, where it is at `end_ns`.
    pub fn leave(&mut self, end_ns: u64) {
        if let Some(run) = self.runs.pop_front() {
            self.dirty -= run.end - run.first;
            self.leaving = Some((run.end - run.first, end_ns));
        }
    }

    /// Whether the cache is large enough for this number of sectors.
    pub fn fits(&self, sectors: u64) -> bool {
        sectors <= self.options.sectors
    }

    /// Whether there is room for the sectors `first..end` at `now_ns`.
    pub fn has_room(&self, first: u64, end: u64, now_ns: u64) -> bool {
        let (leaving_runs, leaving_sectors) = match self.leaving {
            Some((sectors, end_ns)) if end_ns > now_ns => (1, sectors),
            _ => (0, 0),
        };
        let new_run = usize::from(!self.extends_last(first) && !self.holds(first, end));
        self.dirty + leaving_sectors + (end - first) <= self.options.sectors
            && self.runs.len() + leaving_runs + new_run <= self.options.runs
    }

    /// Takes the sectors `first..end`, all of them there at `done_ns`.
    pub fn take(&mut self, first: u64, end: u64, done_ns: u64) {
        if self.holds(first, end) {
            return;
        }
        self.dirty += end - first;
        if self.extends_last(first)
            && let Some(last) = self.runs.back_mut()
        {
            (last.end, last.since_ns) = (end, done_ns);
            return;
        }
        self.runs.push_back(Run { first, end, since_ns: done_ns });
    }

    fn extends_last(&self, first: u64) -> bool {
        self.runs.back().is_some_and(|last| last.end == first)
    }

    /// Whether all of `first..end` are in one dirty run.
    pub fn holds(&self, first: u64, end: u64) -> bool {
        self.runs.iter().any(|run| run.first <= first && end <= run.end)
    }

    /// Whether some of `first..end` are dirty.
    pub fn overlaps(&self, first: u64, end: u64) -> bool {
        self.runs.iter().any(|run| run.first < end && first < run.end)
    }
}
