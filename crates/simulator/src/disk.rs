//! One disk: a queue in front of a controller with one arm.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::controller::{Controller, ControllerOptions};
use crate::device::{Completion, Device, IoRequest, RequestError, check};
use crate::mechanism::Mechanism;

/// Order in which the disk serves its queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum QueueOrder {
    /// As they arrived.
    #[default]
    Fifo,
    /// The request that comes under the head first (shortest positioning time first). A request can starve under a stream
    /// of better ones.
    Sptf,
}

/// A request in the queue.
#[derive(Clone, Copy, Debug)]
struct Queued {
    request: IoRequest,
    arrived_ns: u64,
    /// Time when the controller has decoded the command. Decoding overlaps with the work on earlier requests: queued
    /// sequential requests follow each other without a gap.
    ready_ns: u64,
}

/// A disk that serves one request at a time.
#[derive(Clone, Debug)]
pub struct Disk {
    controller: Controller,
    order: QueueOrder,
    capacity_bytes: u64,
    queue: VecDeque<Queued>,
    serving: Option<Completion>,
    free_ns: u64,
}

impl Disk {
    /// A disk of `capacity_bytes`, which the mechanism's geometry must hold, with the arm at the outer edge.
    ///
    /// `read_ahead_sectors` is how far the disk reads ahead (0: not at all), `interface_bytes_per_s` the rate at which it
    /// delivers buffered data. Writes go to the platter before they complete.
    pub fn new(
        mechanism: Mechanism,
        capacity_bytes: u64,
        order: QueueOrder,
        command_overhead_ns: u64,
        interface_bytes_per_s: f64,
        read_ahead_sectors: u64,
    ) -> Self {
        let options = ControllerOptions {
            read_overhead_ns: command_overhead_ns,
            write_overhead_ns: command_overhead_ns,
            interface_bytes_per_s,
            read_ahead_sectors,
            keep_sectors: read_ahead_sectors,
            ..ControllerOptions::default()
        };
        Self::with_options(mechanism, capacity_bytes, order, options)
    }

    /// A disk with every option of its controller.
    pub fn with_options(
        mechanism: Mechanism,
        capacity_bytes: u64,
        order: QueueOrder,
        options: ControllerOptions,
    ) -> Self {
        Self {
            controller: Controller::new(mechanism, options),
            order,
            capacity_bytes,
            queue: VecDeque::new(),
            serving: None,
            free_ns: 0,
        }
    }

    /// An equal disk at the outer edge, with other options of its controller.
    pub(crate) fn another(&self, options: ControllerOptions) -> Self {
        Self::with_options(self.mechanism().clone(), self.capacity_bytes, self.order, options)
    }

    /// The disk's moving parts.
    pub fn mechanism(&self) -> &Mechanism {
        &self.controller.mechanism
    }

    /// How the disk treats requests.
    pub fn options(&self) -> &ControllerOptions {
        &self.controller.options
    }

    pub(crate) fn controller(&self) -> &Controller {
        &self.controller
    }

    /// Completion time of the request in service; in the past if there is none.
    pub fn free_ns(&self) -> u64 {
        self.serving.map_or(self.free_ns, |completion| completion.done_ns)
    }

    /// Begins the next request of the queue, if any.
    fn start_next(&mut self) {
        let Some(index) = self.choose() else { return };
        if let Some(Queued { request, arrived_ns, .. }) = self.queue.remove(index) {
            self.start(request, arrived_ns);
        }
    }

    fn start(&mut self, request: IoRequest, arrived_ns: u64) {
        let done_ns = self.controller.serve(self.free_ns, arrived_ns, &request);
        self.serving = Some(Completion { tag: request.tag, start_ns: self.free_ns.max(arrived_ns), done_ns });
    }

    /// The place in the queue of the request to serve next.
    fn choose(&self) -> Option<usize> {
        if self.order == QueueOrder::Fifo || self.queue.len() < 2 {
            return (!self.queue.is_empty()).then_some(0);
        }
        // Decides when the disk is free and has decoded at least one command, among the decoded ones.
        let earliest = self.queue.iter().map(|q| q.ready_ns).min()?;
        let decision_ns = self.free_ns.max(earliest);
        let cost_ns = |queued: &Queued| {
            if self.controller.is_buffered(decision_ns, &queued.request) {
                0
            } else {
                self.controller.positioning_ns(decision_ns, &queued.request)
            }
        };
        (self.queue.iter().enumerate())
            .filter(|(_, queued)| queued.ready_ns <= decision_ns)
            .min_by_key(|(_, queued)| cost_ns(queued))
            .map(|(index, _)| index)
    }
}

impl Device for Disk {
    fn arrive(&mut self, now_ns: u64, request: IoRequest) -> Result<(), RequestError> {
        check(&request, self.capacity_bytes)?;
        if self.serving.is_none() {
            // Then none waits.
            self.start(request, now_ns);
            return Ok(());
        }
        let ready_ns = now_ns + self.controller.overhead_ns(request.op);
        self.queue.push_back(Queued { request, arrived_ns: now_ns, ready_ns });
        Ok(())
    }

    fn next_event_ns(&self) -> Option<u64> {
        self.serving.map(|completion| completion.done_ns)
    }

    fn advance(&mut self, now_ns: u64, completions: &mut Vec<Completion>) {
        while let Some(completion) = self.serving.take_if(|completion| completion.done_ns <= now_ns) {
            self.free_ns = completion.done_ns;
            completions.push(completion);
            self.start_next();
        }
    }

    fn outstanding(&self) -> usize {
        self.queue.len() + usize::from(self.serving.is_some())
    }

    fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }
}
