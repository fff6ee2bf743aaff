//! Engine without a scheduler: the device model orders its own queue, and requests complete at the model's times.
//!
//! A reader thread passes each request to the engine on arrival ([`Engine::read`], [`Engine::write`]). One timing thread
//! ([`Engine::keep_time`]) sleeps until shortly before the model's next completion, spins, and replies. The model computes
//! from event to event: a late reply delays no other one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use fuser::{Errno, ReplyData, ReplyEmpty, ReplyWrite};
use weir_simulator::{Completion, Device, IoRequest, Op};

use crate::clock::now_ns;
use crate::engine::alarm::{Alarm, NEVER, TIMING_PRIORITY};
use crate::engine::backing::Backing;
use crate::exports::fuse::FileService;
use crate::stats::{Counters, Occupancy, Stats, Times};

/// A reply that waits for its time.
enum Answer {
    Read { reply: ReplyData, offset: u64, size: u32 },
    ReadBuffer { reply: ReplyData, data: Vec<u8> },
    Write { reply: ReplyWrite, size: u32 },
}

struct Pending {
    answer: Answer,
    arrived_ns: u64,
}

/// Makes a model in its initial state.
type Model = Box<dyn Fn() -> Option<Box<dyn Device>> + Send + Sync>;

struct Inner {
    device: Option<Box<dyn Device>>,
    pending: Vec<Option<Pending>>,
    unused: Vec<usize>,
    occupancy: Occupancy,
    times: Times,
}

/// Data, model and outstanding requests.
pub(crate) struct Engine {
    backing: Backing,
    size_bytes: u64,
    model: Model,
    inner: Mutex<Inner>,
    /// When the timing thread must act next.
    alarm: Alarm,
    /// Whether service times are on.
    timed: AtomicBool,
    counters: Counters,
}

impl Engine {
    /// An engine over `backing`. `model` makes the device; `None` is a device without service times, whose requests the reader
    /// thread completes.
    pub fn new(backing: Backing, size_bytes: u64, model: Model) -> Self {
        let device = model();
        let timed = AtomicBool::new(device.is_some());
        let inner = Inner {
            device,
            pending: Vec::new(),
            unused: Vec::new(),
            occupancy: Occupancy::default(),
            times: Times::default(),
        };
        Self {
            backing,
            size_bytes,
            model,
            inner: Mutex::new(inner),
            alarm: Alarm::new(),
            timed,
            counters: Counters::default(),
        }
    }

    /// Size of the device in bytes.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Whether service times are on now.
    pub fn is_timed(&self) -> bool {
        self.timed.load(Ordering::Acquire)
    }

    /// Accepts a read.
    pub fn read(&self, offset: u64, size: u32, reply: ReplyData) {
        let arrived_ns = now_ns();
        let size = size.min(self.size_bytes.saturating_sub(offset).min(u64::from(u32::MAX)) as u32);
        if size == 0 {
            return reply.data(&[]);
        }
        let answer = match &self.backing {
            Backing::Memory(_) => Answer::Read { reply, offset, size },
            Backing::File(file) => {
                let mut data = vec![0; size as usize];
                match std::os::unix::fs::FileExt::read_exact_at(file, &mut data, offset) {
                    Ok(()) => Answer::ReadBuffer { reply, data },
                    Err(error) => {
                        self.counters.error();
                        return reply.error(errno(&error));
                    }
                }
            }
        };
        self.submit(arrived_ns, Op::Read, offset, size, answer);
    }

    /// Accepts a write. Its data are stored now; it completes at the model's time.
    pub fn write(&self, offset: u64, data: &[u8], reply: ReplyWrite) {
        let arrived_ns = now_ns();
        let size = data.len() as u32;
        if offset.saturating_add(data.len() as u64) > self.size_bytes {
            self.counters.error();
            return reply.error(Errno::ENOSPC);
        }
        if let Err(error) = self.backing.write(offset, data) {
            self.counters.error();
            return reply.error(errno(&error));
        }
        self.submit(arrived_ns, Op::Write, offset, size, Answer::Write { reply, size });
    }

    /// Accepts a flush, which costs nothing: all completed writes are on the modelled medium.
    pub fn flush(&self) {
        self.counters.flush();
    }

    /// Zeroes bytes and frees their memory immediately.
    pub fn discard(&self, offset: u64, length: u64) -> std::io::Result<()> {
        let offset = offset.min(self.size_bytes);
        let length = length.min(self.size_bytes - offset);
        self.backing.discard(offset, length)?;
        if let Some(device) = &mut self.lock().device {
            device.discard(offset, length);
        }
        self.counters.discards.add(length);
        Ok(())
    }

    fn submit(&self, arrived_ns: u64, op: Op, offset_bytes: u64, size_bytes: u32, answer: Answer) {
        if !self.is_timed() || size_bytes == 0 {
            return self.send(answer);
        }
        let mut guard = self.lock();
        let inner = &mut *guard;
        let Some(device) = &mut inner.device else {
            drop(guard);
            return self.send(answer);
        };
        let slot = inner.unused.pop().unwrap_or(inner.pending.len());
        let request = IoRequest { tag: slot as u64, op, offset_bytes, size_bytes };
        if device.arrive(arrived_ns, request).is_err() {
            // Both sizes were checked against the device's: the model refuses the request for another reason.
            inner.unused.push(slot);
            drop(guard);
            self.counters.error();
            return refuse(answer);
        }
        let deadline_ns = device.next_event_ns().unwrap_or(NEVER);
        inner.occupancy.came(arrived_ns, device.outstanding());
        let pending = Some(Pending { answer, arrived_ns });
        if slot == inner.pending.len() {
            inner.pending.push(pending);
        } else {
            inner.pending[slot] = pending;
        }
        let earlier = self.alarm.set(deadline_ns);
        drop(guard);
        if earlier {
            self.alarm.wake();
        }
    }

    /// The timing thread: completes due requests until [`stop`](Self::stop).
    pub fn keep_time(&self) {
        let mut due = Due::default();
        self.alarm.keep(|| self.answer_due(&mut due));
    }

    /// Replies to all requests that the model has completed by now.
    fn answer_due(&self, due: &mut Due) {
        let mut guard = self.lock();
        let inner = &mut *guard;
        let Some(device) = &mut inner.device else { return };
        device.advance(now_ns(), &mut due.completions);
        // The acting thread is the timing thread itself.
        let _ = self.alarm.set(device.next_event_ns().unwrap_or(NEVER));
        if device.outstanding() == 0
            && let Some(last) = due.completions.last()
        {
            inner.occupancy.empty(last.done_ns);
        }
        for completion in due.completions.drain(..) {
            let slot = completion.tag as usize;
            if let Some(pending) = inner.pending.get_mut(slot).and_then(Option::take) {
                inner.unused.push(slot);
                due.answers.push((completion, pending));
            }
        }
        drop(guard);
        for (completion, Pending { answer, arrived_ns }) in due.answers.drain(..) {
            self.send(answer);
            let late_ns = now_ns().saturating_sub(completion.done_ns);
            due.times.push((late_ns, completion, arrived_ns));
        }
        let mut guard = self.lock();
        for (late_ns, Completion { start_ns, done_ns, .. }, arrived_ns) in due.times.drain(..) {
            guard.times.record(late_ns, done_ns - start_ns, done_ns.saturating_sub(arrived_ns));
        }
    }

    fn send(&self, answer: Answer) {
        match answer {
            Answer::Read { reply, offset, size } => {
                if let Backing::Memory(memory) = &self.backing {
                    reply.data(memory.bytes(offset as usize, size as usize));
                }
                self.counters.reads.add(u64::from(size));
            }
            Answer::ReadBuffer { reply, data } => {
                reply.data(&data);
                self.counters.reads.add(data.len() as u64);
            }
            Answer::Write { reply, size } => {
                reply.written(size);
                self.counters.writes.add(u64::from(size));
            }
        }
    }

    /// Turns service times on or off. Off: outstanding requests complete now, and later ones immediately. On: the model
    /// starts in its initial state, equal for all measurements.
    pub fn set_timing(&self, on: bool) {
        let fresh = (self.model)();
        let timed = on && fresh.is_some();
        if timed == self.is_timed() {
            return;
        }
        self.timed.store(timed, Ordering::Release);
        let mut guard = self.lock();
        guard.device = fresh;
        let waiting: Vec<Pending> = guard.pending.drain(..).flatten().collect();
        guard.unused.clear();
        guard.occupancy.empty(now_ns());
        // A later instant needs no ring.
        let _ = self.alarm.set(NEVER);
        drop(guard);
        for pending in waiting {
            self.send(pending.answer);
        }
    }

    /// Statistics; resets them if `reset`.
    pub fn stats(&self, reset: bool) -> Stats {
        let mut inner = self.lock();
        let now_ns = now_ns();
        let (timing, realtime) = (self.is_timed(), self.alarm.is_realtime());
        let mut stats = Stats { timing, realtime, ..Stats::default() };
        inner.occupancy.show(now_ns, &mut stats);
        self.counters.show(&mut stats);
        inner.times.show(&mut stats);
        if reset {
            self.counters.reset();
            inner.times.reset();
            let outstanding = inner.device.as_ref().map_or(0, |device| device.outstanding());
            inner.occupancy.reset(now_ns, outstanding);
        }
        stats
    }

    /// Gives the calling reader thread real-time priority: arrivals get exact timestamps.
    pub fn enter_reader(&self) {
        if self.lock().device.is_some() {
            weir_host::thread::request_fifo(TIMING_PRIORITY - 1);
        }
    }

    /// Completes all requests, and ends the timing thread.
    pub fn stop(&self) {
        self.set_timing(false);
        self.alarm.stop();
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panicked thread leaves at most one request uncounted.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FileService for Engine {
    fn size_bytes(&self) -> u64 {
        self.size_bytes()
    }

    fn enter_reader(&self) {
        self.enter_reader();
    }

    fn read(&self, _: u32, offset: u64, size: u32, reply: ReplyData) {
        self.read(offset, size, reply);
    }

    fn write(&self, _: u32, offset: u64, data: &[u8], reply: ReplyWrite) {
        self.write(offset, data, reply);
    }

    fn flush(&self, reply: ReplyEmpty) {
        self.flush();
        reply.ok();
    }

    fn discard(&self, offset: u64, length: u64, reply: ReplyEmpty) {
        match self.discard(offset, length) {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(errno(&error)),
        }
    }
}

/// Reused buffers of the timing thread.
#[derive(Default)]
struct Due {
    completions: Vec<Completion>,
    answers: Vec<(Completion, Pending)>,
    times: Vec<(u64, Completion, u64)>,
}

fn refuse(answer: Answer) {
    match answer {
        Answer::Read { reply, .. } | Answer::ReadBuffer { reply, .. } => reply.error(Errno::EIO),
        Answer::Write { reply, .. } => reply.error(Errno::EIO),
    }
}

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_i32(error.raw_os_error().unwrap_or(libc::EIO))
}
