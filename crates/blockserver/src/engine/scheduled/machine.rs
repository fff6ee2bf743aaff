//! The device of a head: a model, or a real device that reports its completions.

use weir_scheduler::{Request, ServiceModel};
use weir_simulator::machine::Model;
use weir_simulator::{Completion, Device, IoRequest, RequestError};

/// The device of a head.
pub(crate) enum Machine {
    /// Completes at the model's times.
    Model(Box<Model>),
    /// Completes when it was told to.
    Real(Box<RealMachine>),
}

/// A real device as a head sees it.
///
/// What the policy dispatches is put out for whoever does the I/O ([`take_begun`](Self::take_begun)), and what was done is
/// told by [`finish`](Self::finish). What policies ask about it is answered by a model of it.
pub(crate) struct RealMachine {
    capacity_bytes: u64,
    /// Answers policies; it is given no requests.
    estimate: Model,
    /// The byte after the last one that was asked for.
    head_bytes: u64,
    begun: Vec<IoRequest>,
    /// Requests that the device has: tag and begin.
    inside: Vec<(u64, u64)>,
    finished: Vec<Completion>,
}

impl RealMachine {
    /// A device of `capacity_bytes`, of which policies reckon as `estimate` says.
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

    /// What was dispatched and has not been taken yet.
    pub fn take_begun(&mut self) -> std::vec::Drain<'_, IoRequest> {
        self.begun.drain(..)
    }

    /// The device has done a request; the head learns of it when it is next advanced.
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

    /// Where the device's rotation is nobody knows: half a revolution, and the transfer with it.
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
