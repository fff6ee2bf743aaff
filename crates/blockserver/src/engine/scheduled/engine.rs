//! Engine with a scheduler: accepts requests, lets the scheduler order them, replies when the device completes them.
//!
//! The thread that brings a request carries out its immediate consequences; a device without service times needs no other
//! thread. One thread ([`Engine::keep_time`]) acts at the times of models and schedulers, and one
//! ([`Engine::take_completions`]) on completions of real devices. All use one lock, and reply outside it.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weir_simulator::Op;
use weir_simulator::server::{Dispatcher, Head};

use super::attribution::{Attribution, Caller};
use super::buffer::{Buffer, Payload, Reply, Written};
use super::classes::{ClassSpec, completed};
use super::direct::{Direct, Flights};
use super::inner::{Answers, Data, Inner, Pending, ServerRequest};
use super::machine::Machine;
use super::policy_text::PolicyText;
use super::tally::Tally;
use crate::clock::now_ns;
use crate::engine::alarm::{Alarm, NEVER, TIMING_PRIORITY};
use crate::engine::backing::Backing;
use crate::stats::{Counters, Occupancy};

/// Makes the machines of the heads in their initial state, from a seed.
pub(crate) type Machines = Box<dyn Fn(u64) -> Vec<Machine> + Send + Sync>;

/// Place of the data.
pub(crate) enum Media {
    /// In a backing, with models for service times.
    Modelled(Arc<Backing>),
    /// On the devices of the heads.
    Direct(Box<Direct>),
}

/// Parts of an engine.
pub(crate) struct Setup {
    /// Place of the data.
    pub media: Media,
    /// The devices of its heads.
    pub machines: Machines,
    /// Whether these take no time.
    pub is_instant: bool,
    /// Size of the whole in bytes.
    pub size_bytes: u64,
    /// Stripe unit in bytes.
    pub stripe_unit_bytes: u64,
    /// Initial queue depth of a head.
    pub queue_depth: u32,
    /// The scheduler, as text.
    pub policy: String,
    /// The classes, checked.
    pub classes: Vec<ClassSpec>,
}

/// Data, schedulers and outstanding requests.
pub(crate) struct Engine {
    pub(super) setup: Setup,
    pub(super) inner: Mutex<Inner>,
    /// Engine time 0 on CLOCK_MONOTONIC, changed under the lock: models and schedulers begin near 0, as in virtual time.
    pub(super) epoch_ns: AtomicU64,
    /// Time of creation, on the same clock.
    pub(super) started_ns: u64,
    pub(super) alarm: Alarm,
    /// Whether models and schedulers are on.
    pub(super) timed: AtomicBool,
    pub(super) counters: Counters,
    pub(super) syncs: Sender<Reply>,
    pub(super) synced: Mutex<Option<Receiver<Reply>>>,
}

impl Engine {
    /// Makes an engine; the caller starts its threads.
    ///
    /// # Errors
    /// The scheduler is unknown, or refuses the classes.
    pub fn new(setup: Setup) -> Result<Self, String> {
        let policy = PolicyText::parse(&setup.policy)?;
        let classes = completed(&setup.classes);
        let (queue_depth, seed, started_ns) = (setup.queue_depth, 0, now_ns());
        let dispatcher = dispatcher(&setup, &policy, &classes, queue_depth, seed)?;
        let inner = Inner {
            dispatcher,
            pending: Vec::new(),
            unused: Vec::new(),
            joined: Vec::new(),
            flights: Flights::default(),
            attribution: Attribution::new(&classes),
            tally: Tally::new(&classes),
            policy_text: setup.policy.clone(),
            policy,
            queue_depth,
            seed,
            occupancy: Occupancy::default(),
            done: Vec::new(),
            begun: Vec::new(),
            #[cfg(test)]
            log: super::tests::Log::default(),
        };
        let (syncs, synced) = mpsc::channel();
        Ok(Engine {
            setup,
            inner: Mutex::new(inner),
            epoch_ns: AtomicU64::new(started_ns),
            started_ns,
            alarm: Alarm::new(),
            timed: AtomicBool::new(true),
            counters: Counters::default(),
            syncs,
            synced: Mutex::new(Some(synced)),
        })
    }

    /// Size of the device in bytes.
    pub fn size_bytes(&self) -> u64 {
        self.setup.size_bytes
    }

    /// Alignment of offsets and sizes, in bytes.
    pub fn block_bytes(&self) -> u32 {
        match &self.setup.media {
            Media::Modelled(_) => 1,
            Media::Direct(direct) => direct.block_bytes(),
        }
    }

    /// Engine time, in ns.
    pub(super) fn now_ns(&self) -> u64 {
        now_ns().saturating_sub(self.epoch_ns.load(Ordering::Acquire))
    }

    /// Accepts a read. One past the end is refused.
    pub fn read(&self, offset_bytes: u64, size_bytes: u32, caller: &Caller, reply: Reply) {
        let arrived_ns = now_ns();
        let data = self.check(offset_bytes, size_bytes).and_then(|()| match &self.setup.media {
            Media::Direct(_) => Ok(Data::Buffer(Buffer::new(size_bytes as usize)?)),
            Media::Modelled(backing) => match &**backing {
                Backing::Memory(_) => Ok(Data::Memory),
                Backing::File(file) => {
                    let mut buffer = Buffer::new(size_bytes as usize)?;
                    std::os::unix::fs::FileExt::read_exact_at(file, buffer.bytes_mut(), offset_bytes)?;
                    Ok(Data::Buffer(buffer))
                }
            },
        });
        let asked = ServerRequest { op: Op::Read, is_fua: false, offset_bytes, size_bytes, arrived_ns };
        self.submit(data, asked, caller, reply);
    }

    /// Accepts a write; with `is_fua` it completes only once its data are on the medium.
    pub fn write(&self, offset_bytes: u64, data: Written, is_fua: bool, caller: &Caller, reply: Reply) {
        let arrived_ns = now_ns();
        let size_bytes = data.bytes().len() as u32;
        let data = self.check(offset_bytes, size_bytes).and_then(|()| match &self.setup.media {
            Media::Direct(_) => data.into_buffer().map(Data::Buffer),
            Media::Modelled(backing) => backing.write(offset_bytes, data.bytes()).map(|()| Data::None),
        });
        let asked = ServerRequest { op: Op::Write, is_fua, offset_bytes, size_bytes, arrived_ns };
        self.submit(data, asked, caller, reply);
    }

    fn check(&self, offset_bytes: u64, size_bytes: u32) -> io::Result<()> {
        let end = offset_bytes.checked_add(u64::from(size_bytes));
        if end.is_none_or(|end| end > self.size_bytes()) {
            return Err(io::Error::from_raw_os_error(libc::ENOSPC));
        }
        let block = self.block_bytes();
        if size_bytes == 0
            || !offset_bytes.is_multiple_of(u64::from(block))
            || !size_bytes.is_multiple_of(block)
        {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        Ok(())
    }

    fn submit(&self, data: io::Result<Data>, mut asked: ServerRequest, caller: &Caller, reply: Reply) {
        let data = match data {
            Ok(data) => data,
            Err(error) => {
                self.counters.error();
                return reply.send(Err(errno(&error)));
            }
        };
        let mut answers = Answers::new();
        let (mut guard, has_waited) = match self.inner.try_lock() {
            Ok(guard) => (guard, false),
            Err(_) => (self.lock(), true),
        };
        let inner = &mut *guard;
        if !self.timed.load(Ordering::Relaxed) && matches!(self.setup.media, Media::Modelled(_)) {
            inner.tally.answered(asked.op, asked.size_bytes);
            drop(guard);
            return self.send(Pending::new(reply, data, asked));
        }
        // Time 0 does not change any more.
        asked.arrived_ns = asked.arrived_ns.saturating_sub(self.epoch_ns.load(Ordering::Acquire));
        let now_ns = if has_waited { self.now_ns() } else { asked.arrived_ns };
        if let Err(reply) = inner.arrive(caller, reply, data, asked) {
            drop(guard);
            self.counters.error();
            return reply.send(Err(libc::EIO));
        }
        let wakes = self.follow(inner, now_ns, &mut answers);
        drop(guard);
        self.send_all(&mut answers, wakes);
    }

    /// Carries out everything due by now, with the clock read under the lock. Returns whether the timing thread must be woken.
    pub(super) fn follow(&self, inner: &mut Inner, now_ns: u64, answers: &mut Answers) -> bool {
        let Inner { dispatcher, done, .. } = &mut *inner;
        let next_ns = dispatcher.advance(now_ns, done);
        if let Media::Direct(direct) = &self.setup.media {
            inner.begin(direct);
        }
        inner.settle(now_ns, answers);
        match next_ns {
            NEVER => self.alarm.set(NEVER),
            _ => self.alarm.set(self.epoch_ns.load(Ordering::Acquire).saturating_add(next_ns)),
        }
    }

    /// The timing thread, until [`stop`](Self::stop).
    pub fn keep_time(&self) {
        self.alarm.keep(|| {
            let mut answers = Answers::new();
            let mut guard = self.lock();
            self.follow(&mut guard, self.now_ns(), &mut answers);
            drop(guard);
            self.send_all(&mut answers, false);
        });
    }

    /// The completion thread of real devices, until [`stop`](Self::stop). Returns immediately without real devices.
    pub fn take_completions(&self) {
        let Media::Direct(direct) = &self.setup.media else { return };
        let mut completed = Vec::new();
        let mut goes_on = true;
        while goes_on {
            goes_on = direct.wait(&mut completed);
            let mut answers = Answers::new();
            let mut guard = self.lock();
            let inner = &mut *guard;
            let now_ns = self.now_ns();
            inner.finish(now_ns, &completed, &mut answers);
            let wakes = self.follow(inner, now_ns, &mut answers);
            drop(guard);
            completed.clear();
            self.send_all(&mut answers, wakes);
        }
    }

    pub(super) fn send_all(&self, answers: &mut Answers, wakes: bool) {
        if wakes {
            self.alarm.wake();
        }
        if answers.len() > 1 {
            return answers.drain(..).for_each(|answer| self.send(answer));
        }
        if let Some(answer) = answers.pop() {
            self.send(answer);
        }
    }

    /// Replies to a completed request.
    pub(super) fn send(&self, request: Pending) {
        let Pending {
            reply,
            data,
            asked: ServerRequest { op, is_fua, offset_bytes, size_bytes, .. },
            error,
            ..
        } = request;
        if let Some(errno) = error {
            self.counters.error();
            return reply.send(Err(errno));
        }
        // A device's FUA write is durable; data in a backing are not.
        if is_fua && !matches!(data, Data::Buffer(_)) {
            return self.sync_then(reply);
        }
        reply.send(Ok(match (op, data, &self.setup.media) {
            (Op::Read, Data::Buffer(buffer), _) => Payload::Buffer(buffer),
            (Op::Read, Data::Memory, Media::Modelled(backing)) => {
                Payload::Memory { backing, offset: offset_bytes as usize, length: size_bytes as usize }
            }
            _ => Payload::Nothing,
        }));
    }

    /// Gives the calling thread, which receives requests, real-time priority: arrivals get exact timestamps.
    pub fn enter_reader(&self) {
        if !self.setup.is_instant {
            weir_host::thread::request_fifo(TIMING_PRIORITY - 1);
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panicked thread leaves at most one request without a reply.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Heads with new schedulers, and machines in their initial state.
pub(super) fn dispatcher(
    setup: &Setup,
    policy: &PolicyText,
    classes: &[ClassSpec],
    queue_depth: u32,
    seed: u64,
) -> Result<Dispatcher<Machine>, String> {
    let machines = (setup.machines)(seed);
    let policies = policy.build(classes, machines.len()).map_err(|error| error.to_string())?;
    let heads = machines.into_iter().zip(policies).map(|(machine, policy)| {
        Head::new(machine, policy, queue_depth as usize).with_real_time(real_time(classes))
    });
    Ok(Dispatcher::new(heads.collect(), setup.stripe_unit_bytes, setup.size_bytes))
}

/// By class, whether it is real-time.
pub(super) fn real_time(classes: &[ClassSpec]) -> Vec<bool> {
    classes.iter().map(|class| class.wants == weir_vocabulary::TrafficKind::RealTime).collect()
}

pub(crate) fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}
