//! Device with its scheduler.

use weir_scheduler::{Decision, Policy, Request, ServiceModel};

use super::calendar::NEVER;
use super::mix::Mix;
use crate::device::{Completion, Device, IoRequest};
use crate::flash_options::FlashCounts;

/// A device with a service model.
pub trait Machine: Device + ServiceModel {}

impl<M: Device + ServiceModel> Machine for M {}

/// A device, its scheduler, and its queue depth.
pub struct Head<M> {
    machine: M,
    policy: Box<dyn Policy>,
    depth: usize,
    /// By class, whether it is real-time.
    real_time: Vec<bool>,
    /// Requests in the device.
    inside: Vec<Request>,
    /// Time until which the scheduler holds requests back.
    wait_ns: u64,
    /// Last time at which no request waited.
    clear_ns: u64,
    /// Start of the present busy period, if a request is in the device.
    busy_since_ns: u64,
    report: HeadReport,
    /// Tags of requests in the device from replaced schedulers.
    foreign: Vec<u64>,
    scratch: Vec<Completion>,
}

/// Report of a head.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HeadReport {
    /// Requests served.
    pub requests: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Time with at least one request in the device.
    pub busy_ns: u64,
    /// Maximum queue length.
    pub most_waiting: usize,
    /// Alternation of real-time and best-effort requests.
    pub mix: Mix,
    /// Slack of the scheduler ([`Policy::slack_ns`]).
    pub slack_ns: Option<u64>,
    /// Counts of a flash device.
    pub flash: Option<FlashCounts>,
}

impl<M: Machine> Head<M> {
    /// A head with a queue depth of `depth`, at least one.
    pub fn new(machine: M, policy: Box<dyn Policy>, depth: usize) -> Self {
        Head {
            machine,
            policy,
            depth: depth.max(1),
            real_time: Vec::new(),
            inside: Vec::new(),
            wait_ns: NEVER,
            clear_ns: 0,
            busy_since_ns: 0,
            report: HeadReport::default(),
            foreign: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// Distinguishes requests of real-time classes in the report.
    #[must_use]
    pub fn with_real_time(mut self, real_time: Vec<bool>) -> Self {
        self.real_time = real_time;
        self
    }

    /// The device.
    pub fn machine(&self) -> &M {
        &self.machine
    }

    /// The device, for completions from outside.
    pub fn machine_mut(&mut self) -> &mut M {
        &mut self.machine
    }

    /// The scheduler.
    pub fn policy(&self) -> &dyn Policy {
        &*self.policy
    }

    /// Requests in the device.
    pub fn inside(&self) -> &[Request] {
        &self.inside
    }

    /// Replaces the scheduler. Waiting requests are dropped: the caller adds them to the new one by [`Head::arrive`].
    /// Completions of requests from the old scheduler are not reported to the new one.
    pub fn replace_policy(&mut self, policy: Box<dyn Policy>, real_time: Vec<bool>) {
        self.policy = policy;
        self.real_time = real_time;
        self.foreign = self.inside.iter().map(|request| request.tag).collect();
    }

    /// Report up to `now_ns`.
    pub fn report(&self, now_ns: u64) -> HeadReport {
        let under_way_ns = if self.inside.is_empty() { 0 } else { now_ns.saturating_sub(self.busy_since_ns) };
        let busy_ns = self.report.busy_ns + under_way_ns;
        let flash = self.machine.flash_counts();
        HeadReport { slack_ns: self.policy.slack_ns(), busy_ns, flash, ..self.report }
    }

    /// Requests that wait for the device.
    pub fn waiting(&self) -> usize {
        self.policy.waiting()
    }

    /// Whether the device takes no further request.
    pub(super) fn is_full(&self) -> bool {
        self.inside.len() >= self.depth
    }

    pub(super) fn clear_ns(&self) -> u64 {
        self.clear_ns
    }

    /// Adds a request to the scheduler. The caller then calls [`Head::feed`].
    pub fn arrive(&mut self, now_ns: u64, request: Request) {
        self.policy.arrive(now_ns, request, &self.machine);
        self.report.most_waiting = self.report.most_waiting.max(self.policy.waiting());
    }

    /// Dispatches requests to the device up to its depth.
    ///
    /// # Errors
    /// Tag and error of a request that the device refuses.
    pub fn feed(&mut self, now_ns: u64) -> Result<(), (u64, String)> {
        self.wait_ns = NEVER;
        while !self.is_full() {
            match self.policy.next(now_ns, &self.machine) {
                Decision::Serve(request) => {
                    let wanted = IoRequest::from(&request);
                    let tag = request.tag;
                    let class = usize::from(request.class);
                    self.machine
                        .arrive_of(now_ns, wanted, class)
                        .map_err(|error| (tag, error.to_string()))?;
                    if self.inside.is_empty() {
                        self.busy_since_ns = now_ns;
                    }
                    self.report.mix.add(self.real_time.get(class).copied().unwrap_or(false));
                    self.inside.push(request);
                }
                Decision::WaitUntil(until_ns) => {
                    // A time in the past would make the same call repeat without end.
                    self.wait_ns = until_ns.max(now_ns + 1);
                    break;
                }
                Decision::Idle => break,
            }
        }
        if self.policy.waiting() == 0 {
            self.clear_ns = now_ns;
        }
        Ok(())
    }

    /// Time of the next event; `u64::MAX` if there is none.
    pub fn next_ns(&self) -> u64 {
        self.machine.next_event_ns().unwrap_or(NEVER).min(self.wait_ns)
    }

    /// Processes events; returns completed requests with start of service.
    pub fn advance(&mut self, now_ns: u64, mut done: impl FnMut(&Request, u64)) {
        if self.machine.next_event_ns().is_none_or(|at_ns| at_ns > now_ns) {
            return;
        }
        self.machine.advance(now_ns, &mut self.scratch);
        for completion in self.scratch.drain(..) {
            let Some(place) = self.inside.iter().position(|request| request.tag == completion.tag) else {
                continue;
            };
            let request = self.inside.swap_remove(place);
            match self.foreign.iter().position(|tag| *tag == request.tag) {
                Some(place) => drop(self.foreign.swap_remove(place)),
                None => self.policy.complete(completion.done_ns, &request, completion.start_ns),
            }
            self.report.requests += 1;
            self.report.bytes += u64::from(request.size_bytes);
            if self.inside.is_empty() {
                self.report.busy_ns += completion.done_ns - self.busy_since_ns;
            }
            done(&request, completion.start_ns);
        }
    }
}
