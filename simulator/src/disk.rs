//! One disk: a queue, one arm, a read-ahead buffer.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::device::{Completion, Device, IoRequest, Op, RequestError, check};
use crate::mechanism::{Arm, Mechanism};
use crate::read_ahead::Segment;

/// In which order the disk serves the requests that it has been given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum QueueOrder {
    /// As they arrived.
    #[default]
    Fifo,
    /// The one that comes under the head first (shortest positioning time first). Nothing keeps a request from waiting for
    /// ever under a stream of better ones.
    Sptf,
}

/// A request in the queue.
#[derive(Clone, Copy, Debug)]
struct Queued {
    request: IoRequest,
    arrived_ns: u64,
    /// When the controller has understood the command. This overlaps with the work on earlier requests, so that queued
    /// sequential requests follow each other without a gap.
    ready_ns: u64,
}

/// A disk that serves one request at a time. Writes go to the platter before they complete: there is no write cache.
#[derive(Debug)]
pub struct Disk {
    mechanism: Mechanism,
    order: QueueOrder,
    capacity_bytes: u64,
    command_overhead_ns: u64,
    interface_bytes_per_s: f64,
    read_ahead_sectors: u64,
    queue: VecDeque<Queued>,
    serving: Option<Completion>,
    free_ns: u64,
    arm: Arm,
    segment: Option<Segment>,
}

impl Disk {
    /// A disk of `capacity_bytes`, which the mechanism's geometry must hold, with the arm at the outer edge.
    ///
    /// `read_ahead_sectors` is how far the disk reads ahead (0: not at all), `interface_bytes_per_s` how fast it delivers
    /// what is in its buffer.
    pub fn new(
        mechanism: Mechanism,
        capacity_bytes: u64,
        order: QueueOrder,
        command_overhead_ns: u64,
        interface_bytes_per_s: f64,
        read_ahead_sectors: u64,
    ) -> Self {
        Self {
            mechanism,
            order,
            capacity_bytes,
            command_overhead_ns,
            interface_bytes_per_s,
            read_ahead_sectors,
            queue: VecDeque::new(),
            serving: None,
            free_ns: 0,
            arm: Arm { cylinder: 0, head: 0 },
            segment: None,
        }
    }

    /// The disk's moving parts.
    pub fn mechanism(&self) -> &Mechanism {
        &self.mechanism
    }

    /// Begins the next request of the queue, if there is one.
    fn start_next(&mut self) {
        let Some(index) = self.choose() else { return };
        let Some(Queued { request, arrived_ns, ready_ns }) = self.queue.remove(index) else { return };
        let begin_ns = self.free_ns.max(ready_ns);
        let done_ns = match request.op {
            Op::Read => self.read(begin_ns, &request),
            Op::Write => self.write(begin_ns, &request),
        };
        self.serving = Some(Completion { tag: request.tag, start_ns: self.free_ns.max(arrived_ns), done_ns });
    }

    /// The place in the queue of the request to serve next.
    fn choose(&self) -> Option<usize> {
        if self.order == QueueOrder::Fifo || self.queue.len() < 2 {
            return (!self.queue.is_empty()).then_some(0);
        }
        // Decide at the moment the disk is free and understands at least one command, among those that it understands then.
        let earliest = self.queue.iter().map(|q| q.ready_ns).min()?;
        let decision_ns = self.free_ns.max(earliest);
        let arm = self.segment.as_ref().and_then(|s| s.arm(&self.mechanism, decision_ns)).unwrap_or(self.arm);
        let cost_ns = |queued: &Queued| {
            let (first, sectors) = queued.request.sectors();
            let holds = |s: &Segment| s.holds(&self.mechanism, decision_ns, first, first + sectors);
            if queued.request.op == Op::Read && self.segment.as_ref().is_some_and(holds) {
                0
            } else {
                self.mechanism.positioning_ns(decision_ns, arm, first, queued.request.op)
            }
        };
        (self.queue.iter().enumerate())
            .filter(|(_, queued)| queued.ready_ns <= decision_ns)
            .min_by_key(|(_, queued)| cost_ns(queued))
            .map(|(index, _)| index)
    }

    fn read(&mut self, begin_ns: u64, request: &IoRequest) -> u64 {
        let (first, sectors) = request.sectors();
        let end = first + sectors;
        let delivery_ns = (f64::from(request.size_bytes) / self.interface_bytes_per_s * 1e9).round() as u64;
        let buffered = (self.segment.as_mut()).and_then(|s| s.read(&self.mechanism, begin_ns, first, end));
        if let Some(available_ns) = buffered {
            return available_ns.max(begin_ns + delivery_ns);
        }
        let arm = self.stop_read_ahead(begin_ns);
        let access = self.mechanism.access(begin_ns, arm, first, sectors, Op::Read);
        self.arm = access.arm;
        self.segment = (self.read_ahead_sectors > 0).then(|| {
            let disk_sectors = self.mechanism.geometry.sectors();
            Segment::after_read(first, end, access.end_ns, access.arm, self.read_ahead_sectors, disk_sectors)
        });
        access.end_ns
    }

    fn write(&mut self, begin_ns: u64, request: &IoRequest) -> u64 {
        let (first, sectors) = request.sectors();
        let arm = self.stop_read_ahead(begin_ns);
        if self.segment.as_ref().is_some_and(|segment| segment.overlaps(first, first + sectors)) {
            self.segment = None;
        }
        let access = self.mechanism.access(begin_ns, arm, first, sectors, Op::Write);
        self.arm = access.arm;
        access.end_ns
    }

    /// Takes the arm away from reading ahead, and says where it is.
    fn stop_read_ahead(&mut self, now_ns: u64) -> Arm {
        if let Some(segment) = &mut self.segment
            && let Some(arm) = segment.stop(&self.mechanism, now_ns)
        {
            self.arm = arm;
        }
        self.arm
    }
}

impl Device for Disk {
    fn arrive(&mut self, now_ns: u64, request: IoRequest) -> Result<(), RequestError> {
        check(&request, self.capacity_bytes)?;
        let ready_ns = now_ns + self.command_overhead_ns;
        self.queue.push_back(Queued { request, arrived_ns: now_ns, ready_ns });
        if self.serving.is_none() {
            self.start_next();
        }
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
