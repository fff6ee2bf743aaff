//! A striped address space over heads with schedulers, on any clock.

use weir_scheduler::{ClassId, Policy, Request};

use super::calendar::NEVER;
use super::head::{Head, Machine};
use crate::array::{Part, Striping};
use crate::device::{IoRequest, Op, RequestError, check};

/// A request to the address space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// The caller's identifier, returned in [`Done`].
    pub tag: u64,
    /// Class of the request.
    pub class: ClassId,
    /// Which client or stream of the class.
    pub stream: u32,
    /// Read or write.
    pub op: Op,
    /// First byte.
    pub offset_bytes: u64,
    /// Bytes, at least 1.
    pub size_bytes: u32,
    /// When its answer becomes worthless; `None` if never.
    pub deadline_ns: Option<u64>,
}

/// A request of which all parts are done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    /// The tag of the request.
    pub tag: u64,
    /// When the first part's service began.
    pub begun_ns: u64,
    /// When the last part was done.
    pub done_ns: u64,
}

/// A request that is not done.
#[derive(Debug, Clone, Copy)]
struct Open {
    tag: u64,
    parts_left: u32,
    begun_ns: u64,
}

/// A part of a request at a head, waiting or in service. The slot is the tag in the head's policy.
#[derive(Debug, Clone, Copy)]
struct Slot {
    open: u32,
    head: u32,
    /// Number of the arrival, by which the order is kept when a policy is replaced.
    arrival: u64,
    /// `None` if the slot is free.
    request: Option<Request>,
}

impl Slot {
    const FREE: Slot = Slot { open: 0, head: 0, arrival: 0, request: None };
}

/// Divides requests over heads and puts their parts together again.
///
/// Events are processed at their own times, in order, even if the caller polls late: dispatches depend only on the times
/// of arrivals (and, for real devices, on the times of their completions).
pub struct Dispatcher<M> {
    heads: Vec<Head<M>>,
    striping: Striping,
    capacity_bytes: u64,
    now_ns: u64,
    /// Time of the last event that was worked off.
    event_ns: Option<u64>,
    arrivals: u64,
    open: Vec<Open>,
    open_unused: Vec<u32>,
    slots: Vec<Slot>,
    slots_unused: Vec<u32>,
}

impl<M: Machine> Dispatcher<M> {
    /// An address space of `capacity_bytes` over `heads`, of which there is at least one; each holds at least
    /// [`StripedArray::device_bytes`](crate::StripedArray::device_bytes).
    pub fn new(heads: Vec<Head<M>>, stripe_unit_bytes: u64, capacity_bytes: u64) -> Self {
        let striping =
            Striping { stripe_unit_bytes: stripe_unit_bytes.max(1), devices: heads.len().max(1) as u64 };
        Dispatcher {
            heads,
            striping,
            capacity_bytes,
            now_ns: 0,
            event_ns: None,
            arrivals: 0,
            open: Vec::new(),
            open_unused: Vec::new(),
            slots: Vec::new(),
            slots_unused: Vec::new(),
        }
    }

    /// The heads.
    pub fn heads(&self) -> &[Head<M>] {
        &self.heads
    }

    /// The device of a head, for completions from outside.
    pub fn machine_mut(&mut self, head: usize) -> &mut M {
        self.heads[head].machine_mut()
    }

    /// How the space is striped.
    pub fn striping(&self) -> Striping {
        self.striping
    }

    /// The request of a slot, if it is in use: its tag, and its part at the head.
    pub fn part(&self, slot: u64) -> Option<(u64, Request)> {
        let slot = self.slots.get(slot as usize)?;
        Some((self.open[slot.open as usize].tag, slot.request?))
    }

    /// Requests that are not done.
    pub fn outstanding(&self) -> usize {
        self.open.len() - self.open_unused.len()
    }

    /// Adds a request that arrives at `now_ns`, after all earlier events; appends completed requests. The policies have
    /// already decided at the last event: an earlier or equal time counts as 1 ns after it. Returns the time that counts.
    ///
    /// # Errors
    /// The request is empty or exceeds the end. It is not added.
    pub fn arrive(
        &mut self,
        now_ns: u64,
        wanted: &Wanted,
        done: &mut Vec<Done>,
    ) -> Result<u64, RequestError> {
        let Wanted { tag, class, stream, op, offset_bytes, size_bytes, deadline_ns } = *wanted;
        check(&IoRequest { tag, op, offset_bytes, size_bytes }, self.capacity_bytes)?;
        // What arrives at the time of an event is there when the policy chooses because of it.
        self.advance(now_ns.saturating_sub(1), done);
        let now_ns =
            now_ns.max(self.now_ns).max(self.event_ns.map_or(0, |event_ns| event_ns.saturating_add(1)));
        self.now_ns = now_ns;
        let parts = self.striping.parts(offset_bytes, size_bytes);
        let open = Open { tag, parts_left: parts.len() as u32, begun_ns: u64::MAX };
        let open = put(&mut self.open, &mut self.open_unused, open);
        let arrival = self.arrivals;
        self.arrivals += 1;
        for Part { device, offset_bytes, size_bytes } in &parts {
            let slot = self.slots_unused.pop().unwrap_or_else(|| {
                self.slots.push(Slot::FREE);
                self.slots.len() as u32 - 1
            });
            let request = || Request {
                tag: u64::from(slot),
                class,
                stream,
                op: if op == Op::Read { weir_scheduler::Op::Read } else { weir_scheduler::Op::Write },
                offset_bytes: *offset_bytes,
                size_bytes: *size_bytes,
                arrived_ns: now_ns,
                deadline_ns,
            };
            // Built twice to avoid a store-forwarding stall.
            let kept = Some(request());
            self.slots[slot as usize] = Slot { open, head: *device as u32, arrival, request: kept };
            self.heads[*device].arrive(now_ns, request());
        }
        for Part { device, .. } in &parts {
            self.feed(*device, now_ns);
        }
        Ok(now_ns)
    }

    /// When something happens next; `u64::MAX` if nothing will of itself.
    pub fn next_ns(&self) -> u64 {
        self.heads.iter().map(Head::next_ns).min().unwrap_or(NEVER)
    }

    /// Processes events up to `now_ns`, and appends completions, in order. Returns the time of the next event, as
    /// [`next_ns`](Self::next_ns).
    pub fn advance(&mut self, now_ns: u64, done: &mut Vec<Done>) -> u64 {
        loop {
            let at_ns = self.next_ns();
            if at_ns == NEVER || at_ns > now_ns {
                return at_ns;
            }
            self.now_ns = self.now_ns.max(at_ns);
            self.event_ns = Some(self.now_ns);
            for head in 0..self.heads.len() {
                // One that is alone is the one.
                if self.heads.len() == 1 || self.heads[head].next_ns() <= at_ns {
                    self.head_event(head, done);
                }
            }
        }
    }

    /// Replaces the policies of all heads. Waiting requests go to the new ones, in the order of arrival and with the
    /// class of `class_of`; requests in service are completed. The new policies begin with new accounts.
    pub fn replace_policies(
        &mut self,
        now_ns: u64,
        policies: Vec<Box<dyn Policy>>,
        real_time: &[bool],
        class_of: &dyn Fn(ClassId) -> ClassId,
    ) {
        let now_ns = now_ns.max(self.now_ns);
        self.now_ns = now_ns;
        for ((head, number), policy) in self.heads.iter_mut().zip(0u32..).zip(policies) {
            let is_inside = |slot: u32| head.inside().iter().any(|request| request.tag == u64::from(slot));
            let mut waiting: Vec<(u64, u32)> = (0..)
                .zip(&self.slots)
                .filter(|(at, slot)| slot.head == number && slot.request.is_some() && !is_inside(*at))
                .map(|(at, slot)| (slot.arrival, at))
                .collect();
            waiting.sort_unstable();
            head.replace_policy(policy, real_time.to_vec());
            for (_, at) in waiting {
                if let Some(request) = &mut self.slots[at as usize].request {
                    request.class = class_of(request.class);
                    head.arrive(now_ns, *request);
                }
            }
        }
        for head in 0..self.heads.len() {
            self.feed(head, now_ns);
        }
    }

    fn feed(&mut self, head: usize, now_ns: u64) {
        // Parts are inside their devices because the whole is inside the space, so none is refused.
        let fed = self.heads[head].feed(now_ns);
        debug_assert!(fed.is_ok(), "{fed:?}");
    }

    fn head_event(&mut self, head: usize, done: &mut Vec<Done>) {
        let now_ns = self.now_ns;
        let Self { heads, open, open_unused, slots, slots_unused, .. } = self;
        heads[head].advance(now_ns, |request, begun_ns| {
            let slot = &mut slots[request.tag as usize];
            slot.request = None;
            slots_unused.push(request.tag as u32);
            let entry = &mut open[slot.open as usize];
            entry.parts_left -= 1;
            entry.begun_ns = entry.begun_ns.min(begun_ns);
            if entry.parts_left == 0 {
                open_unused.push(slot.open);
                done.push(Done { tag: entry.tag, begun_ns: entry.begun_ns, done_ns: now_ns });
            }
        });
        self.feed(head, now_ns);
    }
}

/// Puts a value into a free slot, and returns the slot.
fn put<T>(places: &mut Vec<T>, unused: &mut Vec<u32>, value: T) -> u32 {
    match unused.pop() {
        Some(place) => {
            places[place as usize] = value;
            place
        }
        None => {
            places.push(value);
            places.len() as u32 - 1
        }
    }
}
