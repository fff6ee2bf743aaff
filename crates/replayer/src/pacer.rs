//! Pacing thread: sends each request at its intended time, and takes completions in between.

use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;

use weir_host::clock::{monotonic_ns, thread_cpu_seconds};
use weir_host::thread::{self, Scheduling};
use weir_records::{Op, Request};
use weir_vocabulary::Op as DataOp;

use crate::blocking::{BLOCKED_NS, Blocking};
use crate::buffer::{Buffer, Pool};
use crate::feed::{Empty, Feed, Planned};
use crate::fidelity::Recorder;
use crate::graph::Graph;
use crate::ring::{Completion, Ring};
use crate::slots::Slots;
use crate::submission::Submission;
use crate::wait::{Rest, SpinBudget, WakeDelay};
use crate::{Error, Options, Targets};

/// Maximum due requests in one submission call: the last is submitted a few microseconds after its timestamp.
const BATCH: usize = 8;
/// Maximum sleep: the stop flag is checked this often.
const SLEEP_NS: i64 = 100_000_000;
/// Minimum sleep: shorter ones are spun.
const NAP_NS: i64 = 5_000;
/// Sleep while the stream has not been read ahead.
const STARVED_NS: i64 = 200_000;
/// Completed requests are passed on in batches of this size, or after this time.
const PASS_ON: usize = 1024;
const PASS_ON_NS: i64 = 50_000_000;
/// Time for read-ahead, if no epoch was given.
const LEAD_NS: i64 = 10_000_000;

/// A submitted request before its completion.
struct InFlight {
    planned: Planned,
    /// The kernel may use the buffer until the completion is taken: without one it is never freed.
    buffer: ManuallyDrop<Buffer>,
}

/// The next request, with its data in place.
enum Upcoming {
    Ready(Planned, Buffer),
    /// Whether the memory for data in flight is used up.
    NoBuffer(Planned),
    Unknown(Empty),
}

pub(crate) struct Pacer<'a> {
    /// Owns the descriptors of everything in flight.
    _targets: PhantomData<&'a Targets>,
    options: &'a Options,
    epoch_ns: i64,
    ring: Ring,
    feed: Feed,
    /// Requests with dependencies; `None` for a stream without.
    graph: Option<Graph>,
    /// Time of the last submission or completion.
    active_ns: i64,
    upcoming: Upcoming,
    flights: Slots<InFlight>,
    pool: Pool,
    wake: WakeDelay,
    spinning: SpinBudget,
    /// Of a real-time thread.
    rest: Option<Rest>,
    blocking: Vec<Blocking>,
    /// Voluntary context switches when the thread last slept of its own accord.
    switches: i64,
    recorder: Recorder,
    completions: Vec<Completion>,
    done: Vec<Request>,
    passed_on_ns: i64,
    sink: Sender<Vec<Request>>,
}

impl<'a> Pacer<'a> {
    /// Prepares the calling thread, which must be the one that calls [`Pacer::run`].
    pub fn new(
        targets: &'a Targets,
        options: &'a Options,
        submission: Submission,
        epoch_ns: &OnceLock<i64>,
        mut feed: Feed,
        sink: Sender<Vec<Request>>,
    ) -> Result<Self, Error> {
        thread::sleep_precisely();
        let scheduling = options.fifo_priority.map_or(Scheduling::Other, thread::request_fifo);
        let mut ring = Ring::new(submission.polled, submission.poll_completions)?;
        let most_bytes = options.max_buffer_bytes / submission.rings;
        let registers = options.registers_buffers();
        let pool = if registers { Pool::with_arena(most_bytes) } else { Pool::new(most_bytes) };
        // SAFETY: the pool keeps the arena while any buffer was not given back. Pages that are registered stay pinned, so that
        // the kernel would use none that an earlier unmapping had freed.
        unsafe { ring.register(&targets.descriptors(), pool.arena()) };
        feed.wait_for_first();
        let epoch_ns =
            options.epoch_monotonic_ns.unwrap_or_else(|| *epoch_ns.get_or_init(|| monotonic_ns() + LEAD_NS));
        let submission = submission.with(ring.ways());
        Ok(Pacer {
            _targets: PhantomData,
            options,
            epoch_ns,
            ring,
            feed,
            graph: options.dependencies.then(Graph::new),
            active_ns: i64::MAX,
            upcoming: Upcoming::Unknown(Empty::Starved),
            flights: Slots::default(),
            pool,
            wake: WakeDelay::new(),
            spinning: SpinBudget::new(monotonic_ns()),
            rest: (scheduling == Scheduling::Fifo).then(|| Rest::new(monotonic_ns())),
            blocking: targets.targets.iter().map(|_| Blocking::default()).collect(),
            switches: thread::voluntary_switches(),
            recorder: Recorder::new(&targets.targets, epoch_ns, scheduling, submission)?,
            completions: Vec::new(),
            done: Vec::new(),
            passed_on_ns: 0,
            sink,
        })
    }

    /// Sends the whole stream, waits for outstanding requests, and reports.
    pub fn run(mut self) -> Result<Recorder, Error> {
        self.look_ahead();
        while !self.options.stop.load(Ordering::Relaxed) {
            self.take_completions();
            self.rest();
            match &self.upcoming {
                Upcoming::Ready(planned, _) => {
                    let due = self.epoch_ns + planned.request.intended_ns;
                    if monotonic_ns() >= due { self.send_due()? } else { self.wait_until(due)? }
                }
                Upcoming::NoBuffer(planned) => {
                    let due = self.epoch_ns + planned.request.intended_ns;
                    self.sleep(SLEEP_NS)?;
                    self.take_completions();
                    self.retry_buffer(due);
                }
                Upcoming::Unknown(Empty::Starved) => {
                    self.look_ahead();
                    if matches!(self.upcoming, Upcoming::Unknown(Empty::Starved)) {
                        if self.all_wait() {
                            // A request that never completes is waited for only so long.
                            if monotonic_ns().saturating_sub(self.active_ns) > self.grace_ns() {
                                break;
                            }
                        } else {
                            self.recorder.fidelity.starved += 1;
                        }
                        self.sleep(STARVED_NS)?;
                    }
                }
                Upcoming::Unknown(Empty::Ended) => break,
            }
        }
        self.await_completions()?;
        self.finish()
    }

    /// Takes the next request that can be sent from the stream and prepares its data.
    fn look_ahead(&mut self) {
        let next = if self.graph.is_some() { self.next_of_graph() } else { self.next_of_stream() };
        self.upcoming = match next {
            Ok(planned) => self.with_buffer(planned),
            Err(empty) => Upcoming::Unknown(empty),
        };
    }

    /// The next request of the stream that has a place in its target.
    fn next_of_stream(&mut self) -> Result<Planned, Empty> {
        loop {
            let planned = self.feed.next()?;
            self.recorder.fidelity.planned += 1;
            if planned.transfer.is_some() {
                return Ok(planned);
            }
            if let Some(graph) = &mut self.graph {
                graph.skip(planned.request.intended_ns);
            }
            self.recorder.fidelity.refused += 1;
            let mut request = planned.request;
            request.status = libc::EINVAL;
            self.done.push(request);
        }
    }

    /// The next request by time that waits for no other.
    fn next_of_graph(&mut self) -> Result<Planned, Empty> {
        while self.graph.as_ref().is_some_and(Graph::wants_more) {
            let next = self.next_of_stream();
            let Some(graph) = &mut self.graph else { break };
            match next {
                Ok(planned) => graph.push(planned),
                Err(Empty::Starved) => break,
                Err(Empty::Ended) => graph.ended = true,
            }
        }
        let Some(graph) = &mut self.graph else { return Err(Empty::Ended) };
        let over = if graph.ended && graph.is_empty() { Empty::Ended } else { Empty::Starved };
        graph.pop().ok_or(over)
    }

    /// Whether all requests that were read wait for others.
    fn all_wait(&self) -> bool {
        self.graph.as_ref().is_some_and(|graph| !graph.is_empty() && graph.next_ns().is_none())
    }

    /// Prefers a request that has become due before the next one.
    fn prefer_earlier(&mut self) {
        let Some(graph) = &mut self.graph else { return };
        let next_ns = match &self.upcoming {
            Upcoming::Ready(planned, _) | Upcoming::NoBuffer(planned) => planned.request.intended_ns,
            Upcoming::Unknown(_) => return,
        };
        if graph.next_ns().is_none_or(|earlier_ns| earlier_ns >= next_ns) {
            return;
        }
        match std::mem::replace(&mut self.upcoming, Upcoming::Unknown(Empty::Starved)) {
            Upcoming::Ready(planned, buffer) => {
                self.pool.give(buffer);
                graph.put_back(planned);
            }
            Upcoming::NoBuffer(planned) => graph.put_back(planned),
            Upcoming::Unknown(_) => {}
        }
        self.look_ahead();
    }

    fn grace_ns(&self) -> i64 {
        i64::try_from(self.options.grace.as_nanos()).unwrap_or(i64::MAX)
    }

    fn with_buffer(&mut self, planned: Planned) -> Upcoming {
        let Some(transfer) = planned.transfer else { return Upcoming::NoBuffer(planned) };
        match self.pool.take(transfer.length as usize) {
            Some(mut buffer) => {
                if transfer.op.data() == Some(DataOp::Write) {
                    let data = &mut buffer.as_mut_slice()[..transfer.length as usize];
                    planned.key.fill(transfer.offset, data);
                }
                Upcoming::Ready(planned, buffer)
            }
            None => Upcoming::NoBuffer(planned),
        }
    }

    fn retry_buffer(&mut self, due: i64) {
        let held = std::mem::replace(&mut self.upcoming, Upcoming::Unknown(Empty::Starved));
        if let Upcoming::NoBuffer(planned) = held {
            self.upcoming = self.with_buffer(planned);
            let got_one = matches!(self.upcoming, Upcoming::Ready(..));
            self.recorder.fidelity.held_back += u64::from(got_one && monotonic_ns() > due);
        }
    }

    /// Submits the due request, and up to a batch of other due requests.
    fn send_due(&mut self) -> Result<(), Error> {
        let mut sent = [0; BATCH];
        let mut count = 0;
        while count < BATCH {
            let Upcoming::Ready(planned, _) = &self.upcoming else { break };
            if self.epoch_ns + planned.request.intended_ns > monotonic_ns() {
                break;
            }
            let ready = std::mem::replace(&mut self.upcoming, Upcoming::Unknown(Empty::Starved));
            let Upcoming::Ready(planned, buffer) = ready else { break };
            sent[count] = self.queue(planned, buffer)?;
            count += 1;
            if count < BATCH {
                self.look_ahead();
            }
        }
        let sent = &sent[..count];
        let before = monotonic_ns();
        self.active_ns = before;
        for &slot in sent {
            if let Some(flight) = self.flights.get_mut(slot) {
                let request = &mut flight.planned.request;
                let submitted_ns = before - self.epoch_ns;
                request.submitted_ns = Some(submitted_ns);
                self.recorder.sent(request.intended_ns, submitted_ns, request.warmup)?;
            }
        }
        self.submit()?;
        let took_ns = monotonic_ns() - before;
        // Whether it slept matters only if it was long, and asking costs as much as a request.
        let slept = took_ns > BLOCKED_NS && {
            let switches = thread::voluntary_switches();
            std::mem::replace(&mut self.switches, switches) < switches
        };
        self.note_handover(sent, took_ns, slept);
        let fidelity = &mut self.recorder.fidelity;
        fidelity.max_in_flight = fidelity.max_in_flight.max(self.flights.occupied() as u64);
        self.options.progress.sent.fetch_add(count as u64, Ordering::Relaxed);
        if matches!(self.upcoming, Upcoming::Unknown(Empty::Starved)) {
            self.look_ahead();
        }
        Ok(())
    }

    fn queue(&mut self, planned: Planned, mut buffer: Buffer) -> Result<usize, Error> {
        let slot = self.flights.vacancy();
        if let Some(transfer) = &planned.transfer {
            let by_worker = self.blocking[transfer.target].by_worker();
            let report = &mut self.recorder.fidelity.targets[transfer.target];
            report.rounded += u64::from(transfer.rounded);
            report.handed_to_workers += u64::from(by_worker);
            // SAFETY: the buffer is at least as long as the transfer and stays in its slot, at the
            // same address, until the completion is taken or, failing that, forever (`InFlight`); the
            // targets, which own the descriptor, outlive the pacer.
            unsafe {
                let in_arena = buffer.is_in_arena();
                self.ring.push(transfer, buffer.as_mut_ptr(), in_arena, slot as u64, by_worker)?;
            }
        }
        self.flights.fill(slot, InFlight { planned, buffer: ManuallyDrop::new(buffer) });
        Ok(slot)
    }

    fn submit(&mut self) -> Result<(), Error> {
        while !self.ring.submit()? {
            // The kernel needs completions to be taken, or memory.
            self.take_completions();
            std::thread::yield_now();
        }
        Ok(())
    }

    fn note_handover(&mut self, sent: &[usize], took_ns: i64, slept: bool) {
        self.recorder.handed_over(took_ns);
        for &slot in sent {
            let transfer = self.flights.get_mut(slot).and_then(|flight| flight.planned.transfer);
            if let Some(transfer) = transfer {
                self.blocking[transfer.target].note(took_ns, slept);
            }
        }
    }

    /// Sleeps until shortly before `due`, spins for the rest; returns early at a completion.
    fn wait_until(&mut self, due: i64) -> Result<(), Error> {
        let now = monotonic_ns();
        let mut margin = self.wake.margin_ns();
        if !self.spinning.allows(margin.min(due - now), now) {
            margin = 0;
        }
        let wake = due - margin;
        if wake - now > SLEEP_NS {
            return self.sleep(SLEEP_NS);
        }
        if wake - now > NAP_NS {
            if wake - now > 1_000_000 {
                self.pass_on(now);
            }
            if let Some(end) = self.wait(wake - monotonic_ns())? {
                self.wake.observe(end - wake);
            }
            return Ok(());
        }
        let mut end = monotonic_ns();
        while end < due && !self.ring.has_completions() {
            std::hint::spin_loop();
            end = monotonic_ns();
        }
        self.spinning.spend(end - now);
        Ok(())
    }

    fn sleep(&mut self, timeout_ns: i64) -> Result<(), Error> {
        self.pass_on(monotonic_ns());
        self.wait(timeout_ns).map(drop)
    }

    /// Waits for a completion. Returns the time at a timeout.
    fn wait(&mut self, timeout_ns: i64) -> Result<Option<i64>, Error> {
        let (begin, polls) = (monotonic_ns(), self.ring.polls());
        let timed_out = self.ring.wait(timeout_ns)?;
        let end = monotonic_ns();
        if !polls {
            self.has_slept(end - begin);
        }
        Ok(timed_out.then_some(end))
    }

    fn has_slept(&mut self, for_ns: i64) {
        self.switches = thread::voluntary_switches();
        if let Some(rest) = &mut self.rest {
            rest.rested(for_ns);
        }
    }

    /// Rests if this thread has been busy for too long.
    fn rest(&mut self) {
        let now = monotonic_ns();
        if let Some(for_ns) = self.rest.as_mut().and_then(|rest| rest.owed_ns(now)) {
            thread::sleep_ns(for_ns);
            self.has_slept(monotonic_ns() - now);
        }
    }

    fn take_completions(&mut self) {
        if !self.ring.has_completions() {
            return;
        }
        let mut completions = std::mem::take(&mut self.completions);
        let stamp = self.ring.take(monotonic_ns, &mut completions);
        for completion in completions.drain(..) {
            self.complete(&completion, stamp);
        }
        self.completions = completions;
        self.active_ns = stamp;
        self.prefer_earlier();
        if self.done.len() >= PASS_ON {
            self.pass_on(i64::MAX);
        }
    }

    fn complete(&mut self, completion: &Completion, stamp: i64) {
        let Some(mut flight) = self.flights.take(completion.slot as usize) else { return };
        let request = &mut flight.planned.request;
        if completion.result == -libc::ECANCELED {
            request.status = libc::ETIMEDOUT;
            self.recorder.fidelity.unfinished += 1;
        } else {
            request.completed_ns = Some(stamp - self.epoch_ns);
            request.status = 0;
            if completion.result < 0 {
                request.status = -completion.result;
            } else if let Some(transfer) = flight.planned.transfer {
                if completion.result as u32 != transfer.expected {
                    request.status = libc::EIO;
                } else if self.options.verify && transfer.op == Op::Read {
                    let from = transfer.skip as usize;
                    let data = &flight.buffer.as_mut_slice()[from..from + request.size_bytes as usize];
                    if !flight.planned.key.matches(transfer.offset + u64::from(transfer.skip), data) {
                        request.status = libc::EBADMSG;
                    }
                }
            }
            self.recorder.fidelity.completed += 1;
            if request.status != 0 {
                self.recorder.fidelity.failed += 1;
                *self.recorder.fidelity.errors.entry(request.status).or_default() += 1;
            }
            self.options.progress.completed.fetch_add(1, Ordering::Relaxed);
        }
        self.pool.give(ManuallyDrop::into_inner(flight.buffer));
        if let Some(graph) = &mut self.graph {
            graph.done(flight.planned.number, stamp - self.epoch_ns);
        }
        self.done.push(flight.planned.request);
    }

    /// Passes completed requests on, unless it just did.
    fn pass_on(&mut self, now: i64) {
        if !self.done.is_empty() && now.saturating_sub(self.passed_on_ns) > PASS_ON_NS {
            self.passed_on_ns = monotonic_ns();
            // Without a receiver the sink has panicked; its thread reports that.
            let _ = self.sink.send(std::mem::take(&mut self.done));
        }
    }

    fn await_completions(&mut self) -> Result<(), Error> {
        let give_up = monotonic_ns().saturating_add(self.grace_ns());
        self.await_until(give_up)?;
        if self.flights.occupied() > 0 {
            self.ring.cancel_all();
            self.await_until(monotonic_ns() + 1_000_000_000)?;
        }
        Ok(())
    }

    fn await_until(&mut self, give_up: i64) -> Result<(), Error> {
        loop {
            self.take_completions();
            let left = give_up - monotonic_ns();
            if self.flights.occupied() == 0 || left <= 0 {
                return Ok(());
            }
            self.sleep(left.min(SLEEP_NS))?;
        }
    }

    fn finish(mut self) -> Result<Recorder, Error> {
        // With requests outstanding the kernel may wait for them, which can take forever.
        if self.flights.occupied() == 0 {
            self.ring.unregister();
        }
        for flight in self.flights.drain() {
            let mut request = flight.planned.request;
            request.status = libc::ETIMEDOUT;
            self.recorder.fidelity.unfinished += 1;
            self.done.push(request);
        }
        let upcoming = std::mem::replace(&mut self.upcoming, Upcoming::Unknown(Empty::Ended));
        if let Upcoming::Ready(planned, _) | Upcoming::NoBuffer(planned) = upcoming {
            self.recorder.fidelity.stopped += 1;
            self.done.push(planned.request);
        }
        let held: Vec<Planned> = self.graph.iter_mut().flat_map(Graph::drain).collect();
        for planned in held {
            self.recorder.fidelity.stopped += 1;
            self.done.push(planned.request);
        }
        for planned in self.feed.rest() {
            self.recorder.fidelity.planned += 1;
            self.recorder.fidelity.stopped += 1;
            self.done.push(planned.request);
            if self.done.len() >= PASS_ON {
                let _ = self.sink.send(std::mem::take(&mut self.done));
            }
        }
        let _ = self.sink.send(self.done);
        self.recorder.fidelity.queue_overflows = self.ring.overflows;
        self.recorder.fidelity.cpu_seconds = thread_cpu_seconds();
        Ok(self.recorder)
    }
}
