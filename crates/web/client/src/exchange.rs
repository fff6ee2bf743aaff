//! Sending thread: one request from connect to the last byte of its answer.

use std::cmp::Reverse;
use std::io::{ErrorKind, Read as _, Write as _};
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use crate::client::{Answer, Ask, Expect};
use crate::net::{READABLE, WRITABLE, connect};
use crate::outcome::Outcome;
use crate::slot::{Phase, Slot};
use crate::worker::Worker;

/// The number of a system error; `EIO` for one that has none.
fn errno(error: &std::io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}

impl Worker<'_> {
    fn slot(&mut self, index: u32) -> &mut Slot {
        &mut self.slots[index as usize]
    }

    /// Begins the request of a slot. `held_back`: it waited for the slot; that wait is not lateness of the driver.
    pub(crate) fn start(&mut self, index: u32, held_back: bool) {
        let now = self.now_ns();
        self.outstanding += 1;
        let server = &self.targets[self.slots[index as usize].class as usize].server;
        let slot = &mut self.slots[index as usize];
        let at_ns = slot.ask.at_ns;
        if held_back {
            self.tallies[slot.class as usize].held_back += 1;
        } else if at_ns >= self.warmup_ns {
            self.lateness.saturating_record(u64::try_from(now - at_ns).unwrap_or(0));
        }
        slot.phase = Phase::Sending;
        if !slot.prepare(server) {
            self.end(index, libc::EINVAL);
        } else if slot.stream.is_some() {
            slot.submitted_ns = Some(now);
            self.send(index);
        } else {
            self.connect(index);
        }
    }

    /// Makes a connection, and sends as soon as there is one.
    fn connect(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        slot.phase = Phase::Connecting;
        slot.used = false;
        let made = connect(&self.targets[slot.class as usize].server.address);
        let watched = made.and_then(|(stream, done)| {
            self.poll.add(&stream, slot.key(index), !done)?;
            slot.watches_writes = !done;
            slot.stream = Some(stream);
            Ok(done)
        });
        match watched {
            Ok(true) => self.connected(index),
            Ok(false) => {}
            Err(error) => self.lost(index, errno(&error)),
        }
    }

    fn connected(&mut self, index: u32) {
        let now = self.now_ns();
        let class = self.slot(index).class;
        self.tallies[class as usize].connections += 1;
        let slot = self.slot(index);
        slot.submitted_ns.get_or_insert(now);
        slot.phase = Phase::Sending;
        self.send(index);
    }

    /// Writes as much as the connection accepts.
    fn send(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        let Some(stream) = &mut slot.stream else { return };
        while slot.out_at < slot.out.len() {
            match stream.write(&slot.out[slot.out_at..]) {
                Ok(sent) => slot.out_at += sent,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return self.lost(index, errno(&error)),
            }
        }
        let rest = slot.out_at < slot.out.len();
        slot.phase = if rest { Phase::Sending } else { Phase::Awaiting };
        if rest != slot.watches_writes {
            slot.watches_writes = rest;
            let key = u64::from(slot.generation) << 32 | u64::from(index);
            if let Err(error) = self.poll.modify(stream, key, rest) {
                self.lost(index, errno(&error));
            }
        }
    }

    /// Something happened on a connection.
    pub(crate) fn ready(&mut self, index: u32, conditions: u32) {
        let slot = self.slot(index);
        if slot.phase == Phase::Connecting {
            let failed = slot.stream.as_ref().and_then(|stream| stream.take_error().transpose());
            match failed {
                Some(Ok(error) | Err(error)) => self.lost(index, errno(&error)),
                None if conditions & WRITABLE != 0 => self.connected(index),
                None => {}
            }
            return;
        }
        let generation = slot.generation;
        if conditions & READABLE != 0 {
            self.read(index);
        }
        let slot = self.slot(index);
        if conditions & WRITABLE != 0 && slot.generation == generation && slot.phase == Phase::Sending {
            self.send(index);
        }
    }

    /// Reads once: poll reports remaining data again.
    fn read(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        let Some(stream) = &mut slot.stream else { return };
        let count = match stream.read(&mut self.buffer) {
            Ok(0) => return self.closed(index),
            Ok(count) => count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return,
            Err(error) => return self.lost(index, errno(&error)),
        };
        if slot.phase == Phase::Free {
            // No request is outstanding on this connection.
            self.tallies[slot.class as usize].surplus += 1;
            return slot.close();
        }
        let documents = self.targets[slot.class as usize].documents.as_deref();
        let Some(used) = slot.read(&self.buffer[..count], documents, self.options.body_limit_bytes) else {
            slot.close();
            return self.end(index, libc::EPROTO);
        };
        if !slot.parser.is_done() {
            return;
        }
        let error = slot.judge(documents);
        let surplus = used < count;
        self.tallies[slot.class as usize].surplus += u64::from(surplus);
        // An answer that came before the request was sent to its end leaves the connection out of step.
        if surplus || !slot.parser.keep_alive() || slot.phase == Phase::Sending {
            slot.close();
        }
        slot.used = true;
        self.end(index, error);
    }

    /// The server closed the connection.
    fn closed(&mut self, index: u32) {
        let slot = self.slot(index);
        if slot.phase == Phase::Free {
            return slot.close();
        }
        match slot.parser.close() {
            Err(_) => {
                slot.close();
                self.end(index, libc::EPROTO);
            }
            Ok(false) => self.lost(index, libc::EIO),
            Ok(true) => {
                let class = slot.class;
                slot.close();
                let documents = self.targets[class as usize].documents.as_deref();
                let error = self.slots[index as usize].judge(documents);
                self.end(index, error);
            }
        }
    }

    /// The connection is unusable. A request that may be repeated is sent once more on a new connection if the old one
    /// was kept alive: most likely the server closed it before it read the request (RFC 9112, 9.3.1).
    fn lost(&mut self, index: u32, errno: i32) {
        let slot = self.slot(index);
        let free = slot.phase == Phase::Free;
        let again = slot.used && !slot.resent && !slot.parser.has_begun() && slot.ask.method.is_idempotent();
        slot.close();
        if free {
            return;
        }
        if again {
            slot.resent = true;
            slot.await_answer();
            let class = slot.class as usize;
            self.tallies[class].resent += 1;
            self.connect(index);
        } else {
            self.end(index, errno);
        }
    }

    /// A request ended: writes its row, and continues with the client or the pool.
    pub(crate) fn end(&mut self, index: u32, error: i32) {
        let now = self.now_ns();
        self.outstanding -= 1;
        let slot = &mut self.slots[index as usize];
        slot.phase = Phase::Free;
        let given_up = matches!(error, libc::ETIMEDOUT | libc::ECANCELED) && !slot.parser.is_done();
        let outcome = Outcome {
            submitted_ns: slot.submitted_ns,
            completed_ns: (!given_up).then_some(now),
            body_bytes: slot.verdict.bytes,
            http_status: slot.parser.status(),
            ..outcome(&slot.ask, slot.class, error, self.warmup_ns)
        };
        self.tallies[outcome.class as usize].add(&outcome, &slot.ask.path);
        let pool = slot.pool;
        self.record(outcome);
        match pool {
            None => self.answer_client(index, error, now),
            Some(pool) => self.release(index, pool, error == 0),
        }
    }

    fn record(&mut self, outcome: Outcome) {
        self.options.progress.fetch_add(1, Ordering::Relaxed);
        self.rows.push(outcome);
    }

    /// Passes the outcome to a client, and takes its next request.
    fn answer_client(&mut self, index: u32, error: i32, now: i64) {
        let slot = &mut self.slots[index as usize];
        // Two requests alternate to reuse their memory.
        let mut answered = std::mem::replace(&mut slot.ask, std::mem::take(&mut self.spare));
        let answer = Answer {
            ask: &answered,
            error,
            status: slot.parser.status(),
            body: &slot.verdict.body,
            submitted_ns: slot.submitted_ns,
            completed_ns: now,
        };
        slot.ask.clear();
        slot.ask.at_ns = now;
        let next = match &mut slot.client {
            Some(client) => client.next(Some(&answer), now, &mut slot.ask),
            None => ControlFlow::Break(()),
        };
        answered.clear();
        self.spare = answered;
        // The next request after a failure goes through the queue: direct calls would recurse once per failure.
        self.take_ask(index, next, now, error == 0);
    }

    /// Takes the first request of a client.
    pub(crate) fn ask_client(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        let next = match &mut slot.client {
            Some(client) => client.next(None, 0, &mut slot.ask),
            None => ControlFlow::Break(()),
        };
        self.take_ask(index, next, 0, false);
    }

    /// Sends a client's request, now or at its intended instant.
    fn take_ask(&mut self, index: u32, next: ControlFlow<()>, now: i64, at_once: bool) {
        let slot = &mut self.slots[index as usize];
        slot.ask.client = slot.number;
        slot.ask.at_ns = slot.ask.at_ns.max(now);
        let at_ns = slot.ask.at_ns;
        if next.is_break() || at_ns >= self.duration_ns || self.stopped_until_ns.is_some() {
            slot.close();
        } else if at_once && at_ns <= now {
            self.start(index, false);
        } else {
            self.due.push(Reverse((at_ns, index)));
        }
    }

    /// Returns a connection to its pool.
    fn release(&mut self, index: u32, pool: u32, at_once: bool) {
        let pool = &mut self.pools[pool as usize];
        if at_once && let Some(ask) = pool.waiting.pop_front() {
            self.slots[index as usize].ask = ask;
            self.start(index, true);
        } else {
            pool.idle.push(index);
        }
    }

    /// Ends the request that has waited longest for a connection of a pool.
    pub(crate) fn fail_longest_waiting(&mut self, pool: usize, error: i32) {
        let pool = &mut self.pools[pool];
        if let Some(ask) = pool.waiting.pop_front() {
            let class = pool.class;
            let tally = &mut self.tallies[class as usize];
            tally.held_back += 1;
            let outcome = outcome(&ask, class, error, self.warmup_ns);
            tally.add(&outcome, &ask.path);
            self.record(outcome);
        }
    }
}

/// Outcome of a request that was never sent.
fn outcome(ask: &Ask, class: u32, error: i32, warmup_ns: i64) -> Outcome {
    Outcome {
        request: 0,
        class,
        client: ask.client,
        label: ask.label.clone(),
        method: ask.method,
        document: match ask.expect {
            Expect::Document(number) => Some(number),
            _ => None,
        },
        intended_ns: ask.at_ns,
        submitted_ns: None,
        completed_ns: None,
        deadline_ns: ask.deadline_ns,
        body_bytes: 0,
        http_status: 0,
        error,
        warmup: ask.at_ns < warmup_ns,
    }
}
