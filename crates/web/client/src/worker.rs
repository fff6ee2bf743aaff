//! Sending thread: timers, connections and epoll loop.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{SyncSender, TrySendError};

use hdrhistogram::Histogram;
use weir_host::clock::monotonic_ns;

use crate::Error;
use crate::class::Options;
use crate::client::{Ask, Client, Source};
use crate::documents::Documents;
use crate::net::Poll;
use crate::outcome::Outcome;
use crate::report::{Tally, histogram};
use crate::server::Server;
use crate::slot::{Phase, Slot};

/// Events of one wait.
const EVENTS: usize = 256;
/// Bytes of one read: enough for most responses, and short enough that other connections do not wait.
const READ_BYTES: usize = 256 << 10;
/// Rows passed on in one batch.
const BATCH_ROWS: usize = 1024;
/// Longest interval between checks of timeouts and of the stop flag.
const TICK_NS: i64 = 20_000_000;
/// How long outstanding requests are awaited after the run was stopped.
const STOP_GRACE_NS: i64 = 1_000_000_000;

/// A class as threads see it.
pub(crate) struct Target {
    pub server: Server,
    pub documents: Option<std::sync::Arc<Documents>>,
}

/// Clients and sources of one thread: the class and the number within it, or the class and its limit of connections.
#[derive(Default)]
pub(crate) struct ThreadWork {
    pub clients: Vec<(u32, u32, Box<dyn Client>)>,
    pub sources: Vec<(u32, usize, Box<dyn Source>)>,
}

/// Rows of a thread. Its later rows were due at or after `settled_ns`.
pub(crate) struct RowBatch {
    pub thread: usize,
    pub rows: Vec<Outcome>,
    pub settled_ns: i64,
}

/// The connections that share the requests of a source.
pub(crate) struct Pool {
    pub class: u32,
    source: Option<Box<dyn Source>>,
    /// The source's next request.
    pending: Ask,
    pub idle: Vec<u32>,
    open: usize,
    limit: usize,
    /// Requests that found no connection free.
    pub waiting: VecDeque<Ask>,
}

/// A sending thread.
pub(crate) struct Worker<'a> {
    pub targets: &'a [Target],
    pub options: &'a Options,
    pub epoch_ns: i64,
    pub duration_ns: i64,
    pub warmup_ns: i64,
    pub timeout_ns: i64,
    pub poll: Poll,
    pub slots: Vec<Slot>,
    /// Slots of clients whose next request is later, by its instant.
    pub due: BinaryHeap<Reverse<(i64, u32)>>,
    pub pools: Vec<Pool>,
    pub buffer: Box<[u8]>,
    pub tallies: Vec<Tally>,
    pub lateness: Histogram<u64>,
    pub turn: Histogram<u64>,
    pub rows: Vec<Outcome>,
    /// A request's memory, for the next one.
    pub spare: Ask,
    /// Requests that are on a slot.
    pub outstanding: usize,
    /// After a stop: the instant at which outstanding requests are cancelled.
    pub stopped_until_ns: Option<i64>,
    pub writer_waits: u64,
    thread: usize,
    to: SyncSender<RowBatch>,
}

impl<'a> Worker<'a> {
    pub fn new(
        (thread, crew): (usize, ThreadWork),
        targets: &'a [Target],
        options: &'a Options,
        epoch_ns: i64,
        to: SyncSender<RowBatch>,
    ) -> Result<Self, Error> {
        let ns = |time: std::time::Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        let pool = |(class, limit, source): (u32, usize, Box<dyn Source>)| Pool {
            class,
            source: Some(source),
            pending: Ask::default(),
            idle: Vec::new(),
            open: 0,
            limit: limit.max(1),
            waiting: VecDeque::new(),
        };
        let slot = |(class, number, client)| Slot::new(class, None, Some(client), number);
        Ok(Worker {
            targets,
            options,
            epoch_ns,
            duration_ns: ns(options.duration),
            warmup_ns: ns(options.warmup),
            timeout_ns: ns(options.timeout),
            poll: Poll::new(EVENTS).map_err(Error::system("cannot wait for connections (epoll)"))?,
            slots: crew.clients.into_iter().map(slot).collect(),
            due: BinaryHeap::new(),
            pools: crew.sources.into_iter().map(pool).collect(),
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
            tallies: targets.iter().map(|_| Tally::new()).collect::<Result<_, _>>()?,
            lateness: histogram()?,
            turn: histogram()?,
            rows: Vec::with_capacity(BATCH_ROWS),
            spare: Ask::default(),
            outstanding: 0,
            stopped_until_ns: None,
            writer_waits: 0,
            thread,
            to,
        })
    }

    /// Now, ns since the epoch.
    pub fn now_ns(&self) -> i64 {
        monotonic_ns() - self.epoch_ns
    }

    /// Sends until every request has an outcome. Returns that instant.
    pub fn run(&mut self) -> Result<i64, Error> {
        for index in 0..self.slots.len() {
            self.ask_client(index as u32);
        }
        for pool in 0..self.pools.len() {
            self.pools[pool].advance(0, self.duration_ns);
        }
        let mut tick_ns = 0;
        loop {
            let now = self.now_ns();
            let to_stop = self.stopped_until_ns.is_none() && self.options.stop.load(Ordering::Relaxed);
            if now >= tick_ns || to_stop {
                tick_ns = now + TICK_NS.min(self.timeout_ns / 4).max(100_000);
                self.tick(now);
            }
            self.send_due(now);
            let next_ns = self.next_due_ns();
            if self.outstanding == 0 && next_ns == i64::MAX {
                break;
            }
            let now = self.now_ns();
            let ready = self
                .poll
                .wait(next_ns.min(tick_ns) - now)
                .map_err(Error::system("cannot wait for connections (epoll)"))?;
            if ready > 0 {
                self.handle(ready);
            }
        }
        let end_ns = self.now_ns();
        self.send_rows(i64::MAX);
        Ok(end_ns)
    }

    /// Handles the events of one wait.
    fn handle(&mut self, ready: usize) {
        let begin = self.now_ns();
        for event in 0..ready {
            let event = self.poll.event(event);
            let index = event.key as u32;
            if self.slots[index as usize].generation == (event.key >> 32) as u32 {
                self.ready(index, event.conditions);
            }
        }
        let took = self.now_ns() - begin;
        self.turn.saturating_record(u64::try_from(took).unwrap_or(0));
        if self.rows.len() >= BATCH_ROWS {
            let settled = self.settled_ns();
            self.send_rows(settled);
        }
    }

    /// Starts requests that are due.
    fn send_due(&mut self, now: i64) {
        while let Some(&Reverse((at_ns, index))) = self.due.peek()
            && at_ns <= now
        {
            self.due.pop();
            self.start(index, false);
        }
        for pool in 0..self.pools.len() {
            self.send_waiting(pool);
            while self.pools[pool].pending_ns() <= now {
                self.assign(pool);
            }
        }
    }

    /// Assigns free connections to waiting requests.
    fn send_waiting(&mut self, pool: usize) {
        loop {
            let Pool { waiting, idle, .. } = &mut self.pools[pool];
            let Some(index) = idle.pop() else { return };
            let Some(ask) = waiting.pop_front() else { return idle.push(index) };
            self.slots[index as usize].ask = ask;
            self.start(index, true);
        }
    }

    /// Assigns a source's next request to a connection, or queues it.
    fn assign(&mut self, pool_index: usize) {
        let pool = &mut self.pools[pool_index];
        let last_ns = pool.pending.at_ns;
        let index = pool.idle.pop().or_else(|| {
            (pool.open < pool.limit).then(|| {
                pool.open += 1;
                self.slots.push(Slot::new(pool.class, Some(pool_index as u32), None, 0));
                (self.slots.len() - 1) as u32
            })
        });
        match index {
            Some(index) => std::mem::swap(&mut self.slots[index as usize].ask, &mut pool.pending),
            None => pool.waiting.push_back(std::mem::take(&mut pool.pending)),
        }
        self.pools[pool_index].advance(last_ns, self.duration_ns);
        if let Some(index) = index {
            self.start(index, false);
        }
    }

    /// Instant of the next request.
    fn next_due_ns(&self) -> i64 {
        let client = self.due.peek().map_or(i64::MAX, |Reverse((at_ns, _))| *at_ns);
        self.pools.iter().map(Pool::pending_ns).fold(client, i64::min)
    }

    /// Rows that are not handed over yet were due at or after this.
    fn settled_ns(&self) -> i64 {
        let busy = self.slots.iter().filter(|slot| slot.phase != Phase::Free).map(|slot| slot.ask.at_ns);
        let waiting = self.pools.iter().filter_map(|pool| pool.waiting.front()).map(|ask| ask.at_ns);
        busy.chain(waiting).fold(self.next_due_ns().min(self.now_ns()), i64::min)
    }

    /// Hands rows to the writer. Waits, and counts that, if the writer is behind.
    fn send_rows(&mut self, settled_ns: i64) {
        let rows = std::mem::replace(&mut self.rows, Vec::with_capacity(BATCH_ROWS));
        let handed = RowBatch { thread: self.thread, rows, settled_ns };
        if let Err(TrySendError::Full(handed)) = self.to.try_send(handed) {
            self.writer_waits += 1;
            // Fails only if the calling thread is gone.
            let _ = self.to.send(handed);
        }
    }

    /// Ends requests that timed out, handles a stop, passes rows on.
    fn tick(&mut self, now: i64) {
        if self.stopped_until_ns.is_none() && self.options.stop.load(Ordering::Relaxed) {
            self.stopped_until_ns = Some(now + STOP_GRACE_NS);
            self.due.clear();
            self.pools.iter_mut().for_each(|pool| pool.source = None);
        }
        let cancelled = self.stopped_until_ns.is_some_and(|until| now >= until);
        let oldest_ns = now - self.timeout_ns;
        for index in 0..self.slots.len() {
            let slot = &self.slots[index];
            if slot.phase != Phase::Free && (cancelled || slot.ask.at_ns <= oldest_ns) {
                self.slots[index].close();
                self.end(index as u32, if cancelled { libc::ECANCELED } else { libc::ETIMEDOUT });
            }
        }
        for index in 0..self.pools.len() {
            let stopped = self.stopped_until_ns.is_some();
            while self.pools[index].waiting.front().is_some_and(|ask| stopped || ask.at_ns <= oldest_ns) {
                self.fail_longest_waiting(index, if stopped { libc::ECANCELED } else { libc::ETIMEDOUT });
            }
        }
        let settled = self.settled_ns();
        self.send_rows(settled);
    }
}

impl Pool {
    /// Takes the source's next request; not before that at `last_ns`.
    fn advance(&mut self, last_ns: i64, duration_ns: i64) {
        self.pending.clear();
        let Some(source) = &mut self.source else { return };
        let more = source.next(&mut self.pending) == ControlFlow::Continue(());
        self.pending.at_ns = self.pending.at_ns.max(last_ns);
        if !more || self.pending.at_ns >= duration_ns {
            self.source = None;
        }
    }

    /// When the source's next request is due.
    fn pending_ns(&self) -> i64 {
        if self.source.is_some() { self.pending.at_ns } else { i64::MAX }
    }
}
