//! Linux's mq-deadline.
//!
//! After the kernel's Documentation/block/deadline-iosched.rst and the behaviour of block/mq-deadline.c (6.x). Left out:
//! merging (`front_merges`), zoned devices, `async_depth` (a caller with unlimited queues needs no tag limit), requests
//! inserted at the head. Priorities belong to classes, not to processes.

use std::collections::VecDeque;

use crate::by_offset::{ByOffset, Key};
use crate::entry::Entry;
use crate::model::ServiceModel;
use crate::policy::{Decision, Policy};
use crate::request::{Class, Op, Request};
use crate::settings::{SettingError, Settings};

pub(crate) const ENTRY: Entry = Entry {
    name: "linux-mq-deadline",
    label: "mq-deadline",
    about: "model of Linux's mq-deadline: batches of reads or writes in sector order, expired ones first",
    promises: "work conserving while all classes have one priority; an expired request is served at the latest after the \
               current batch, all requests that expired earlier, and writes_starved batches of reads; a class of lower \
               priority waits while a higher one has requests waiting or in service, up to prio_aging_expire",
    settings: &[
        ("read_expire", "ms after which a read is overdue; default 500"),
        ("write_expire", "ms after which a write is overdue; default 5000"),
        ("writes_starved", "batches of reads for which waiting writes are passed over; default 2"),
        ("fifo_batch", "requests per batch; default 16"),
        ("prio_aging_expire", "ms after which a lower priority is served before higher ones; default 10000"),
        ("realtime", "names of classes of the highest priority, separated by commas; default none"),
        ("idle", "names of classes of the lowest priority, separated by commas; default none"),
    ],
    build: |classes, settings| Ok(Box::new(MqDeadline::new(classes, settings)?)),
};

/// Real time, best effort, idle.
const PRIORITIES: usize = 3;
const BEST_EFFORT: usize = 1;

#[derive(Debug)]
struct MqDeadline {
    expire_ns: [u64; 2],
    writes_starved: u64,
    fifo_batch: u64,
    prio_aging_ns: u64,
    /// Priority of each class; other classes are best effort.
    priority: Vec<usize>,
    levels: [Level; PRIORITIES],
    last: Op,
    /// Requests served in this batch.
    batching: u64,
    /// Batches of reads since the last writes.
    starved: u64,
}

/// Requests of one priority.
#[derive(Debug, Default)]
struct Level {
    directions: [Direction; 2],
    /// Number of requests waiting or in service.
    queued: u64,
}

/// Reads or writes of one priority.
#[derive(Debug, Default)]
struct Direction {
    sorted: ByOffset,
    /// Requests in order of arrival, with expiry time. Requests served out of order stay in it.
    fifo: VecDeque<(Key, u64)>,
    /// Offset of the last served request.
    latest_bytes: u64,
}

impl Direction {
    /// Earliest arrival, with its expiry time.
    fn oldest(&mut self) -> Option<(Key, u64)> {
        while let Some((key, _)) = self.fifo.front() {
            if self.sorted.get(*key).is_some() {
                break;
            }
            self.fifo.pop_front();
        }
        self.fifo.front().copied()
    }

    fn ahead(&self) -> Option<Key> {
        self.sorted.from((self.latest_bytes, 0))
    }
}

fn index(op: Op) -> usize {
    match op {
        Op::Read => 0,
        Op::Write => 1,
    }
}

impl MqDeadline {
    fn new(classes: &[Class], settings: &Settings) -> Result<Self, SettingError> {
        let mut priority = vec![BEST_EFFORT; classes.len()];
        for (key, level) in [("realtime", 0), ("idle", 2)] {
            for class in named(classes, settings, key)? {
                priority[class] = level;
            }
        }
        Ok(MqDeadline {
            expire_ns: [settings.ms("read_expire", 500.0)?, settings.ms("write_expire", 5000.0)?],
            writes_starved: settings.count("writes_starved", 2, 0, 1_000_000)?,
            fifo_batch: settings.count("fifo_batch", 16, 0, 1_000_000)?,
            prio_aging_ns: settings.ms("prio_aging_expire", 10_000.0)?,
            priority,
            levels: Default::default(),
            last: Op::Write,
            batching: 0,
            starved: 0,
        })
    }

    fn level(&self, request: &Request) -> usize {
        self.priority.get(usize::from(request.class)).copied().unwrap_or(BEST_EFFORT)
    }

    /// Next request of a priority, unless it arrived after `latest_ns`.
    fn dispatch(&mut self, priority: usize, now_ns: u64, latest_ns: u64) -> Option<Request> {
        let level = &mut self.levels[priority];
        let in_batch = if self.batching < self.fifo_batch {
            level.directions[index(self.last)].ahead().map(|key| (self.last, key))
        } else {
            None
        };
        let (op, key) = match in_batch {
            Some(next) => next,
            None => {
                let reads = !level.directions[index(Op::Read)].sorted.is_empty();
                let writes = !level.directions[index(Op::Write)].sorted.is_empty();
                // As in the kernel, reads that pass writes over are counted even if the request is too young below.
                let op = match (reads, writes) {
                    (false, false) => return None,
                    (true, true) if self.starved >= self.writes_starved => Op::Write,
                    (true, true) => {
                        self.starved += 1;
                        Op::Read
                    }
                    (true, false) => Op::Read,
                    (false, true) => Op::Write,
                };
                if op == Op::Write {
                    self.starved = 0;
                }
                let direction = &mut level.directions[index(op)];
                let (oldest, expires_ns) = direction.oldest()?;
                let key = direction.ahead().filter(|_| expires_ns > now_ns).unwrap_or(oldest);
                self.last = op;
                self.batching = 0;
                (op, key)
            }
        };
        let direction = &mut level.directions[index(op)];
        direction.sorted.get(key).filter(|request| request.arrived_ns <= latest_ns)?;
        self.batching += 1;
        direction.latest_bytes = key.0;
        direction.sorted.remove(key)
    }

    /// A lower priority whose oldest request has exceeded `prio_aging_expire`.
    fn dispatch_aged(&mut self, now_ns: u64) -> Option<Request> {
        if self.levels.iter().filter(|level| level.queued > 0).count() < 2 {
            return None;
        }
        let latest_ns = now_ns.checked_sub(self.prio_aging_ns)?;
        (BEST_EFFORT..PRIORITIES).find_map(|priority| self.dispatch(priority, now_ns, latest_ns))
    }

    /// Time at which the first request behind a higher priority exceeds `prio_aging_expire`.
    fn aged_ns(&mut self) -> u64 {
        let directions = self.levels.iter_mut().flat_map(|level| &mut level.directions);
        let arrived_ns = directions.filter_map(|direction| {
            let (key, _) = direction.oldest()?;
            direction.sorted.get(key).map(|request| request.arrived_ns)
        });
        arrived_ns.min().unwrap_or(u64::MAX).saturating_add(self.prio_aging_ns)
    }
}

/// Indices of the classes named in a setting.
fn named(classes: &[Class], settings: &Settings, key: &str) -> Result<Vec<usize>, SettingError> {
    let Some(value) = settings.0.get(key) else { return Ok(Vec::new()) };
    let number = |name: &str| {
        classes.iter().position(|class| class.name == name.trim()).ok_or_else(|| {
            let names: Vec<&str> = classes.iter().map(|class| class.name.as_str()).collect();
            let expected = format!("names of classes separated by commas, of {}", names.join(", "));
            settings.refused(key, expected)
        })
    };
    value.split(',').map(number).collect()
}

impl Policy for MqDeadline {
    fn arrive(&mut self, now_ns: u64, request: Request, _: &dyn ServiceModel) {
        let expires_ns = now_ns.saturating_add(self.expire_ns[index(request.op)]);
        let priority = self.level(&request);
        let level = &mut self.levels[priority];
        level.queued += 1;
        let direction = &mut level.directions[index(request.op)];
        let key = direction.sorted.insert(request);
        direction.fifo.push_back((key, expires_ns));
    }

    fn next(&mut self, now_ns: u64, _: &dyn ServiceModel) -> Decision {
        if let Some(request) = self.dispatch_aged(now_ns) {
            return Decision::Serve(request);
        }
        for priority in 0..PRIORITIES {
            if let Some(request) = self.dispatch(priority, now_ns, u64::MAX) {
                return Decision::Serve(request);
            }
            if self.levels[priority].queued > 0 {
                break;
            }
        }
        if self.waiting() == 0 {
            return Decision::Idle;
        }
        // A request of a higher priority is in service. The caller polls again after its completion.
        match self.aged_ns() {
            aged_ns if aged_ns > now_ns => Decision::WaitUntil(aged_ns),
            _ => Decision::UNTIL_COMPLETION,
        }
    }

    fn complete(&mut self, _: u64, request: &Request, _: u64) {
        let priority = self.level(request);
        let queued = &mut self.levels[priority].queued;
        *queued = queued.saturating_sub(1);
    }

    fn waiting(&self) -> usize {
        self.levels.iter().flat_map(|level| &level.directions).map(|direction| direction.sorted.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use crate::fixture::{at, device, offsets, policy, read, settings, weighted, write};
    use crate::policy::{Decision, Policy};
    use crate::registry::build;
    use crate::request::Request;

    fn next(policy: &mut dyn Policy, now_ns: u64) -> u64 {
        match policy.next(now_ns, &device(0)) {
            Decision::Serve(request) => request.offset_bytes,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_batch_goes_up_and_the_next_begins_with_the_oldest() {
        let queue = at(&[50, 90, 10, 70, 30]);
        // The first batch begins at offset 0, where nothing was served yet.
        let mut policy = policy("linux-mq-deadline", &[]);
        assert_eq!(offsets(&mut *policy, &queue, 0), [10, 30, 50, 70, 90]);
        // It is at 90 now, and still in its first batch. Then none is ahead: the oldest is next, and those ahead of it.
        assert_eq!(offsets(&mut *policy, &queue, 0), [90, 50, 70, 10, 30]);
    }

    #[test]
    fn writes_wait_for_two_batches_of_reads() {
        let mut policy = policy("linux-mq-deadline", &[("fifo_batch", "2")]);
        let mut queue = at(&[1, 2, 3, 4, 5, 6]);
        queue.extend([100, 101, 102].map(write));
        // The kernel's last direction is writes before there was any.
        assert_eq!(offsets(&mut *policy, &queue, 0), [100, 101, 1, 2, 3, 4, 102, 5, 6]);
    }

    #[test]
    fn what_has_expired_begins_the_next_batch() {
        let mut policy = policy("linux-mq-deadline", &[("fifo_batch", "1"), ("read_expire", "1")]);
        policy.arrive(0, read(50), &device(0));
        assert_eq!(next(&mut *policy, 0), 50);
        for (now_ns, offset) in [(10, 20), (20, 60), (30, 70)] {
            policy.arrive(now_ns, Request { arrived_ns: now_ns, ..read(offset) }, &device(0));
        }
        assert_eq!(next(&mut *policy, 1_000_009), 60);
        assert_eq!(next(&mut *policy, 1_000_010), 20);
        assert_eq!(next(&mut *policy, 1_000_010), 70);
    }

    #[test]
    fn idle_classes_wait_for_the_others_but_not_for_ever() {
        let settings = settings(&[("idle", "b"), ("prio_aging_expire", "1")]);
        let mut policy = build("linux-mq-deadline", &weighted(&[1.0, 1.0]), &settings).unwrap();
        let idle = |offset| Request { class: 1, ..read(offset) };
        policy.arrive(0, idle(1), &device(0));
        policy.arrive(0, read(2), &device(0));
        policy.arrive(0, read(3), &device(0));
        assert_eq!(next(&mut *policy, 0), 2);
        assert_eq!(next(&mut *policy, 0), 3);
        assert_eq!(policy.next(0, &device(0)), Decision::WaitUntil(1_000_000));
        assert_eq!(next(&mut *policy, 1_000_000), 1);
        policy.arrive(1_000_000, Request { arrived_ns: 1_000_000, ..idle(4) }, &device(0));
        policy.complete(1_000_001, &read(2), 0);
        policy.complete(1_000_001, &read(3), 0);
        assert_eq!(next(&mut *policy, 1_000_001), 4);
    }

    #[test]
    fn classes_that_there_are_not_are_refused() {
        let error =
            build("linux-mq-deadline", &weighted(&[1.0]), &settings(&[("realtime", "a,x")])).err().unwrap();
        assert_eq!(
            error.to_string(),
            "setting `realtime` is invalid (found realtime=a,x, expected names of classes separated by commas, of a)"
        );
    }
}
