//! Trace filters: selection, cache, scaling of addresses and time.
//!
//! A [`Pipeline`] applies its steps to each request in order. `weir trace filter` uses the order: time range, devices, cache,
//! addresses, times, and times since the first remaining request. The cache therefore sees original addresses, starts
//! empty at the start of the time range, and is independent of scaling.

mod absorb;
mod order;
mod ratio;
mod sort;
mod steps;

pub use absorb::{Absorb, Writes};
pub use order::{Peeked, SinceFirst};
pub use ratio::{NoRatio, Ratio};
pub use sort::Sorted;
pub use steps::{OfDevices, Rebase, ScaleAddress, ScaleTime, TimeRange};

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use crate::{Devices, Error, Reader, Skipping, TraceRequest};

/// Name of a number of a request that is out of range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound(pub &'static str);

/// A step of a pipeline.
pub trait Step: Send {
    /// Name, for counts.
    fn name(&self) -> &'static str;

    /// Processes a request; appends zero, one or several results to `on`.
    ///
    /// # Errors
    /// A number of the result is out of range.
    fn take(
        &mut self,
        request: TraceRequest,
        devices: &Devices,
        on: &mut Vec<TraceRequest>,
    ) -> Result<(), Bound>;

    /// Notes at the end of the trace.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Numbers of requests before and after a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepCount {
    /// The step's name.
    pub name: &'static str,
    /// Requests before the step.
    pub taken: u64,
    /// Requests after the step.
    pub given: u64,
    /// Notes of the step.
    pub notes: Vec<String>,
}

/// A reader followed by steps.
pub struct Pipeline {
    path: PathBuf,
    inner: Box<dyn Reader>,
    steps: Vec<(Box<dyn Step>, u64, u64)>,
    number: u64,
    ready: VecDeque<TraceRequest>,
    now: Vec<TraceRequest>,
    next: Vec<TraceRequest>,
}

impl Pipeline {
    /// A pipeline of a reader and steps; `path` is for errors.
    pub fn new(path: &Path, inner: Box<dyn Reader>, steps: Vec<Box<dyn Step>>) -> Self {
        Pipeline {
            path: path.to_owned(),
            inner,
            steps: steps.into_iter().map(|step| (step, 0, 0)).collect(),
            number: 0,
            ready: VecDeque::new(),
            now: Vec::new(),
            next: Vec::new(),
        }
    }

    /// Counts of each step so far.
    pub fn counts(&self) -> Vec<StepCount> {
        let count = |(step, taken, given): &(Box<dyn Step>, u64, u64)| StepCount {
            name: step.name(),
            taken: *taken,
            given: *given,
            notes: step.notes(),
        };
        self.steps.iter().map(count).collect()
    }

    /// Requests read so far.
    pub fn read(&self) -> u64 {
        self.number
    }
}

impl Reader for Pipeline {
    fn next_request(&mut self) -> Result<Option<TraceRequest>, Error> {
        loop {
            if let Some(request) = self.ready.pop_front() {
                return Ok(Some(request));
            }
            let Some(request) = self.inner.next_request()? else { return Ok(None) };
            let number = self.number;
            self.number += 1;
            self.now.clear();
            self.now.push(request);
            for (step, taken, given) in &mut self.steps {
                self.next.clear();
                for request in self.now.drain(..) {
                    *taken += 1;
                    step.take(request, self.inner.devices(), &mut self.next)
                        .map_err(|Bound(what)| Error::OutOfRange { path: self.path.clone(), number, what })?;
                }
                *given += self.next.len() as u64;
                std::mem::swap(&mut self.now, &mut self.next);
            }
            self.ready.extend(self.now.drain(..));
        }
    }

    fn devices(&self) -> &Devices {
        self.inner.devices()
    }

    fn skipped(&self) -> &Skipping {
        self.inner.skipped()
    }

    fn header(&self) -> &[(String, String)] {
        self.inner.header()
    }
}
