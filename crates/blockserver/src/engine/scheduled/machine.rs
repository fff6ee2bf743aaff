//! Machine of a head: a device model, or a real device that reports its completions.

use weir_scheduler::{Request, ServiceModel};
use weir_simulator::machine::Model;
use weir_simulator::{Completion, Device, IoRequest, RequestError};

/// Device of a head.
pub(crate) enum Machine {
    /// Completes at the model's times.
    Model(Box<Model>),
    /// Completes when the device reports it.
    Real(Box<RealMachine>),
}

/// A real device, in the interface of a head.
///
/// Dispatched requests wait for submission ([`take_begun`](Self::take_begun)), and [`finish`](Self::finish) reports completions.
/// A model of the device answers the schedulers' questions.
pub(crate) struct RealMachine {
    capacity_bytes: u64,
    /// Model for the schedulers' questions; it gets no requests.
    estimate: Model,
    /// The byte after the last request.
    head_bytes: u64,
    begun: Vec<IoRequest>,
    /// Outstanding requests of the device: tag and begin.
    inside: Vec<(u64, u64)>,
    finished: Vec<Completion>,
}

impl RealMachine {
    /// A device of `capacity_bytes`, with `estimate` as the model for schedulers.
    pub fn new(capacity_bytes: u64, estimate: Model) -> Self {
        RealMachine {
            capacity_bytes,
            estimate,
            head_bytes: 0,
            begun: Vec::new(),
            inside: Vec::new(),
            finished: Vec::new(),
        }
    }

    /// Dispatched requests that were not taken yet.
    pub fn take_begun(&mut self) -> std::vec::Drain<'_, IoRequest> {
        self.begun.drain(..)
    }

    /// Reports a completion; the head sees it at its next step.
    pub fn finish(&mut self, tag: u64, now_ns: u64) {
        if let Some(place) = self.inside.iter().position(|(inside, _)| *inside == tag) {
            let (_, start_ns) = self.inside.swap_remove(place);
            self.finished.push(Completion { tag, start_ns, done_ns: now_ns });
        }
    }
}

impl Device for RealMachine {
    fn arrive(&mut self, now_ns: u64, request: IoRequest) -> Result<(), RequestError> {
        self.inside.push((request.tag, now_ns));
        self.head_bytes = request.end_bytes();
        self.begun.push(request);
        Ok(())
    }

    fn next_event_ns(&self) -> Option<u64> {
        self.finished.iter().map(|completion| completion.done_ns).min()
    }

    fn advance(&mut self, now_ns: u64, completions: &mut Vec<Completion>) {
        completions.extend(self.finished.extract_if(.., |completion| completion.done_ns <= now_ns));
    }

    fn outstanding(&self) -> usize {
        self.inside.len() + self.finished.len()
    }

    fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }
}

impl ServiceModel for RealMachine {
    fn cylinder(&self, offset_bytes: u64) -> u32 {
        self.estimate.cylinder(offset_bytes)
    }

    fn head_bytes(&self) -> u64 {
        self.head_bytes
    }

    /// The device's rotational position is not known: half a revolution plus the transfer.
    fn positioning_ns(&self, _: u64, request: &Request) -> u64 {
        self.estimate.expected_ns(self.head_bytes, request)
    }

    fn expected_ns(&self, from_bytes: u64, request: &Request) -> u64 {
        self.estimate.expected_ns(from_bytes, request)
    }

    fn bound_ns(&self, from_bytes: u64, request: &Request) -> u64 {
        self.estimate.bound_ns(from_bytes, request)
    }

    fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }
}

weir_simulator::device_of_several!(Machine { Model, Real });
