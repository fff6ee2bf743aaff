//! What a live server's lock guards: who waits, and who is served.

use smallvec::SmallVec;
use weir_simulator::server::{Dispatcher, Done, Head, Wanted};
use weir_simulator::{IoRequest, Op};

use super::attribution::{Attribution, Caller};
use super::buffer::{Buffer, Reply};
use super::class_stats::Counts;
use super::direct::{Direct, Flights, What};
use super::machine::Machine;
use super::policy_text::PolicyText;
use crate::stats::{Occupancy, Times};

/// Where an answer's data come from, or a write's go to.
pub(super) enum Data {
    /// A write whose data are stored already, or a request without any.
    None,
    /// The server's memory, to be read when it is answered.
    Memory,
    /// Bytes of its own: read already, or being read or written by the device.
    Buffer(Buffer),
}

/// A request that is not answered.
pub(super) struct Pending {
    pub(super) reply: Reply,
    pub(super) data: Data,
    pub(super) op: Op,
    pub(super) is_fua: bool,
    pub(super) class: u16,
    pub(super) offset_bytes: u64,
    pub(super) size_bytes: u32,
    pub(super) arrived_ns: u64,
    pub(super) deadline_ns: Option<u64>,
    pub(super) error: Option<i32>,
}

/// A flush or discard that waits for all heads.
pub(super) struct Joined {
    pub(super) reply: Reply,
    pub(super) left: usize,
    pub(super) error: Option<i32>,
}

/// An answer that can be sent; one that `wants_sync` once its write is on the medium.
pub(super) struct Answer {
    pub(super) reply: Reply,
    /// What it brings, or the errno that it failed with.
    pub(super) outcome: Result<Data, i32>,
    pub(super) op: Op,
    pub(super) offset_bytes: u64,
    pub(super) size_bytes: u32,
    pub(super) wants_sync: bool,
}

/// Most often there is one: the request's that has just come.
pub(super) type Answers = SmallVec<[Answer; 1]>;

pub(super) struct Inner {
    pub(super) dispatcher: Dispatcher<Machine>,
    pub(super) pending: Vec<Option<Pending>>,
    pub(super) unused: Vec<usize>,
    pub(super) joined: Vec<Option<Joined>>,
    pub(super) flights: Flights,
    pub(super) classes: Vec<Counts>,
    pub(super) attribution: Attribution,
    pub(super) policy: PolicyText,
    pub(super) policy_text: String,
    pub(super) queue_depth: u32,
    pub(super) seed: u64,
    pub(super) times: Times,
    pub(super) occupancy: Occupancy,
    pub(super) done: Vec<Done>,
    pub(super) begun: Vec<IoRequest>,
    #[cfg(test)]
    pub(super) log: super::tests::Log,
}

impl Inner {
    /// Puts a request into the dispatcher. Gives it back if the space does not hold it.
    pub(super) fn arrive(&mut self, caller: &Caller, mut pending: Pending) -> Result<(), Pending> {
        let now_ns = pending.arrived_ns;
        let (class, stream) = self.attribution.class_of(now_ns, pending.offset_bytes, caller);
        let place = usize::from(class).min(self.classes.len().saturating_sub(1));
        pending.class = place as u16;
        pending.deadline_ns =
            self.classes[place].deadline_after_ns.map(|after_ns| now_ns.saturating_add(after_ns));
        let slot = self.unused.pop().unwrap_or_else(|| {
            self.pending.push(None);
            self.pending.len() - 1
        });
        let wanted = Wanted {
            tag: slot as u64,
            class: pending.class,
            stream,
            op: pending.op,
            offset_bytes: pending.offset_bytes,
            size_bytes: pending.size_bytes,
            deadline_ns: pending.deadline_ns,
        };
        let Ok(_counted_ns) = self.dispatcher.arrive(now_ns, &wanted, &mut self.done) else {
            self.unused.push(slot);
            return Err(pending);
        };
        #[cfg(test)]
        self.log.arrived(&wanted, _counted_ns);
        self.classes[place].queue += 1;
        self.pending[slot] = Some(pending);
        self.occupancy.came(now_ns, self.dispatcher.outstanding());
        Ok(())
    }

    /// Gives the devices what was dispatched to them.
    pub(super) fn begin(&mut self, direct: &Direct) {
        let striping = self.dispatcher.striping();
        for head in 0..self.dispatcher.heads().len() {
            if let Machine::Real(machine) = self.dispatcher.machine_mut(head) {
                self.begun.extend(machine.take_begun());
            }
            for io in self.begun.drain(..) {
                let Some((tag, _)) = self.dispatcher.part(io.tag) else { continue };
                let Some(Some(Pending {
                    data: Data::Buffer(buffer),
                    op,
                    is_fua,
                    offset_bytes,
                    size_bytes,
                    ..
                })) = self.pending.get(tag as usize)
                else {
                    continue;
                };
                let pieces = (striping.units(*offset_bytes, *size_bytes))
                    .filter(|(device, ..)| *device == head)
                    .map(|(_, _, first, length)| (first, length));
                let what = What::Part { head, slot: io.tag };
                let at = (head, io.offset_bytes);
                direct.begin(&mut self.flights, what, (*op, *is_fua), at, buffer, pieces);
            }
        }
    }

    /// Takes what the devices have done.
    pub(super) fn finish(&mut self, now_ns: u64, completed: &[(u64, i32)], answers: &mut Answers) {
        for (number, result) in completed {
            let Some((what, error)) = self.flights.take(*number, *result) else { continue };
            match what {
                What::Part { head, slot } => {
                    let tag = self.dispatcher.part(slot).map(|(tag, _)| tag as usize);
                    if let Some(error) = error
                        && let Some(Some(pending)) = tag.and_then(|tag| self.pending.get_mut(tag))
                    {
                        pending.error = Some(error);
                    }
                    if let Machine::Real(machine) = self.dispatcher.machine_mut(head) {
                        machine.finish(slot, now_ns);
                    }
                }
                What::Join { place } => {
                    let Some(Some(joined)) = self.joined.get_mut(place) else { continue };
                    joined.left -= 1;
                    joined.error = joined.error.or(error);
                    if joined.left == 0
                        && let Some(Joined { reply, error, .. }) = self.joined[place].take()
                    {
                        let outcome = error.map_or(Ok(Data::None), Err);
                        let (op, offset_bytes, size_bytes) = (Op::Write, 0, 0);
                        answers.push(Answer {
                            reply,
                            outcome,
                            op,
                            offset_bytes,
                            size_bytes,
                            wants_sync: false,
                        });
                    }
                }
            }
        }
        let Self { dispatcher, done, .. } = self;
        dispatcher.advance(now_ns, done);
    }

    /// A place for a flush or discard that waits for so many.
    pub(super) fn join(&mut self, reply: Reply, left: usize) -> usize {
        let joined = Some(Joined { reply, left, error: None });
        match self.joined.iter().position(Option::is_none) {
            Some(place) => {
                self.joined[place] = joined;
                place
            }
            None => {
                self.joined.push(joined);
                self.joined.len() - 1
            }
        }
    }

    /// Turns what is done into answers.
    pub(super) fn settle(&mut self, now_ns: u64, answers: &mut Answers) {
        let mut done = std::mem::take(&mut self.done);
        for Done { tag, begun_ns, done_ns } in done.drain(..) {
            let slot = tag as usize;
            let Some(pending) = self.pending.get_mut(slot).and_then(Option::take) else { continue };
            self.unused.push(slot);
            #[cfg(test)]
            self.log.done(tag, begun_ns, done_ns, now_ns);
            let response_ns = done_ns.saturating_sub(pending.arrived_ns);
            let late_ns = now_ns.saturating_sub(done_ns);
            self.times.record(late_ns, done_ns.saturating_sub(begun_ns), response_ns);
            if self.dispatcher.outstanding() == 0 {
                self.occupancy.empty(done_ns);
            }
            answers.push(self.answered(pending, done_ns));
        }
        self.done = done;
    }

    /// Counts a request that is done, and makes its answer.
    pub(super) fn answered(&mut self, pending: Pending, done_ns: u64) -> Answer {
        let response_ns = done_ns.saturating_sub(pending.arrived_ns);
        let is_late = pending.deadline_ns.is_some_and(|deadline_ns| done_ns > deadline_ns);
        if let Some(counts) = self.classes.get_mut(usize::from(pending.class)) {
            let size_bytes = u64::from(pending.size_bytes);
            counts.add(done_ns, size_bytes, response_ns, is_late, pending.error.is_some());
        }
        answer(pending)
    }

    /// The heads.
    pub(super) fn heads(&self) -> &[Head<Machine>] {
        self.dispatcher.heads()
    }
}

/// The answer of a request that is done.
pub(super) fn answer(pending: Pending) -> Answer {
    let Pending { reply, data, op, is_fua, offset_bytes, size_bytes, error, .. } = pending;
    // What a device did with `is_fua` is durable; what was stored beside a model is not.
    let wants_sync = is_fua && !matches!(data, Data::Buffer(_));
    let outcome = match (error, op) {
        (Some(error), _) => Err(error),
        (None, Op::Read) => Ok(data),
        (None, Op::Write) => Ok(Data::None),
    };
    Answer { reply, outcome, op, offset_bytes, size_bytes, wants_sync }
}
