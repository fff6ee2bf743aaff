//! State under the engine's lock: waiting and outstanding requests.

use smallvec::SmallVec;
use weir_simulator::server::{Dispatcher, Done, Head, Wanted};
use weir_simulator::{IoRequest, Op};

use super::attribution::{Attribution, Caller};
use super::buffer::{Buffer, Reply};
use super::direct::{CompletionKind, Direct, Flights, Part};
use super::machine::Machine;
use super::policy_text::PolicyText;
use super::tally::{Finished, Tally};
use crate::stats::Occupancy;

/// Source of a reply's data, or destination of a write's.
pub(super) enum Data {
    /// None: a write whose data are stored already, or a request without data.
    None,
    /// The server's memory, read at the time of the reply.
    Memory,
    /// A separate buffer: already read, or in use by the device.
    Buffer(Buffer),
}

/// A request.
#[derive(Clone, Copy)]
pub(super) struct ServerRequest {
    pub(super) op: Op,
    pub(super) is_fua: bool,
    pub(super) offset_bytes: u64,
    pub(super) size_bytes: u32,
    /// Engine time, or CLOCK_MONOTONIC before the lock is held.
    pub(super) arrived_ns: u64,
}

/// A request without a reply.
pub(super) struct Pending {
    pub(super) reply: Reply,
    pub(super) data: Data,
    pub(super) asked: ServerRequest,
    pub(super) class: u16,
    pub(super) deadline_ns: Option<u64>,
    pub(super) error: Option<i32>,
}

impl Pending {
    /// A request outside the classes.
    pub(super) fn new(reply: Reply, data: Data, asked: ServerRequest) -> Self {
        Pending { reply, data, asked, class: 0, deadline_ns: None, error: None }
    }

    /// Remaining part of a completed flush or discard.
    fn joined(reply: Reply, error: Option<i32>) -> Self {
        let nothing =
            ServerRequest { op: Op::Write, is_fua: false, offset_bytes: 0, size_bytes: 0, arrived_ns: 0 };
        Pending { error, ..Pending::new(reply, Data::None, nothing) }
    }
}

/// A flush or discard that waits for all heads.
pub(super) struct Joined {
    pub(super) reply: Reply,
    pub(super) left: usize,
    pub(super) error: Option<i32>,
}

/// Completed requests for replies. Usually there is one, which has just arrived.
pub(super) type Answers = SmallVec<[Pending; 1]>;

pub(super) struct Inner {
    pub(super) dispatcher: Dispatcher<Machine>,
    pub(super) pending: Vec<Option<Pending>>,
    pub(super) unused: Vec<usize>,
    pub(super) joined: Vec<Option<Joined>>,
    pub(super) flights: Flights,
    pub(super) tally: Tally,
    pub(super) attribution: Attribution,
    pub(super) policy: PolicyText,
    pub(super) policy_text: String,
    pub(super) queue_depth: u32,
    pub(super) seed: u64,
    pub(super) occupancy: Occupancy,
    pub(super) done: Vec<Done>,
    pub(super) begun: Vec<IoRequest>,
    #[cfg(test)]
    pub(super) log: super::tests::Log,
}

impl Inner {
    /// Passes a request to the dispatcher. Returns its reply if the request is outside the device.
    pub(super) fn arrive(
        &mut self,
        caller: &Caller,
        reply: Reply,
        data: Data,
        asked: ServerRequest,
    ) -> Result<(), Reply> {
        let ServerRequest { op, offset_bytes, size_bytes, arrived_ns, .. } = asked;
        let (class, stream) = self.attribution.class_of(arrived_ns, offset_bytes, caller);
        let (class, deadline_ns) = self.tally.arrived(class, arrived_ns);
        let slot = self.unused.pop().unwrap_or_else(|| {
            self.pending.push(None);
            self.pending.len() - 1
        });
        let wanted = Wanted { tag: slot as u64, class, stream, op, offset_bytes, size_bytes, deadline_ns };
        let Ok(_counted_ns) = self.dispatcher.arrive(arrived_ns, &wanted, &mut self.done) else {
            self.unused.push(slot);
            self.tally.refused(class);
            return Err(reply);
        };
        #[cfg(test)]
        self.log.arrived(&wanted, _counted_ns);
        self.pending[slot] = Some(Pending { reply, data, asked, class, deadline_ns, error: None });
        self.occupancy.came(arrived_ns, self.dispatcher.outstanding());
        Ok(())
    }

    /// Submits dispatched parts to the devices.
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
                    asked: ServerRequest { op, is_fua, offset_bytes, size_bytes, .. },
                    ..
                })) = self.pending.get(tag as usize)
                else {
                    continue;
                };
                let pieces = (striping.units(*offset_bytes, *size_bytes))
                    .filter(|(device, ..)| *device == head)
                    .map(|(_, _, first, length)| (first, length));
                let what = CompletionKind::Part { head, slot: io.tag };
                let part = Part { what, op: *op, is_fua: *is_fua, head, offset_bytes: io.offset_bytes };
                direct.begin(&mut self.flights, part, buffer, pieces);
            }
        }
    }

    /// Takes completed parts of the devices.
    pub(super) fn finish(&mut self, now_ns: u64, completed: &[(u64, i32)], answers: &mut Answers) {
        for (number, result) in completed {
            let Some((what, error)) = self.flights.take(*number, *result) else { continue };
            match what {
                CompletionKind::Part { head, slot } => {
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
                CompletionKind::Join { place } => {
                    let Some(Some(joined)) = self.joined.get_mut(place) else { continue };
                    joined.left -= 1;
                    joined.error = joined.error.or(error);
                    if joined.left == 0
                        && let Some(Joined { reply, error, .. }) = self.joined[place].take()
                    {
                        answers.push(Pending::joined(reply, error));
                    }
                }
            }
        }
        let Self { dispatcher, done, .. } = self;
        dispatcher.advance(now_ns, done);
    }

    /// Reserves a place for a flush or discard with this number of parts.
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

    /// Converts completed requests to replies.
    pub(super) fn settle(&mut self, now_ns: u64, answers: &mut Answers) {
        let mut done = std::mem::take(&mut self.done);
        for Done { tag, begun_ns, done_ns } in done.drain(..) {
            let slot = tag as usize;
            let Some(pending) = self.pending.get_mut(slot) else { continue };
            let Some(Pending { asked, class, deadline_ns, error, .. }) = pending else { continue };
            #[cfg(test)]
            self.log.done(tag, begun_ns, done_ns, now_ns);
            self.tally.finished(Finished {
                done_ns,
                noticed_after_ns: now_ns.saturating_sub(done_ns),
                service_ns: done_ns.saturating_sub(begun_ns),
                response_ns: done_ns.saturating_sub(asked.arrived_ns),
                op: asked.op,
                size_bytes: asked.size_bytes,
                class: *class,
                is_late: deadline_ns.is_some_and(|deadline_ns| done_ns > deadline_ns),
                has_failed: error.is_some(),
            });
            answers.extend(pending.take());
            self.unused.push(slot);
            if self.dispatcher.outstanding() == 0 {
                self.occupancy.empty(done_ns);
            }
        }
        self.done = done;
    }

    /// The heads.
    pub(super) fn heads(&self) -> &[Head<Machine>] {
        self.dispatcher.heads()
    }
}
