//! Linux's BFQ: Budget Fair Queueing.
//!
//! After the kernel's Documentation/block/bfq-iosched.rst, P. Valente and M. Andreolini (SYSTOR 2012), and the behaviour
//! of block/bfq-iosched.c (5.x and 6.x) with `low_latency=0`. Left out: weight raising and what detects interactive and
//! soft real-time processes, merging of requests and of cooperating queues, injection, burst handling, peak-rate
//! estimation (`max_budget` is a setting, as a user of the kernel may set it), waiting for a second small request while
//! the device is idle, the back-shifting of tags after a wait, and groups in groups. Every process is taken to be I/O bound.

use std::collections::BTreeMap;

use super::bfq_device::Device;
use super::bfq_queue::{Expiry, Queue, is_sync};
use super::bfq_tree::Tree;
use crate::entry::Entry;
use crate::model::ServiceModel;
use crate::policy::{Decision, Policy};
use crate::request::{Class, ClassId, Request};
use crate::settings::{SettingError, Settings};
use crate::share::Weight;

const NAME: &str = "linux-bfq";

/// Factor of sectors of asynchronous writes while all weights are equal.
const ASYNC_CHARGE_FACTOR: u64 = 3;

pub(crate) const ENTRY: Entry = Entry {
    name: NAME,
    label: "BFQ",
    about: "model of Linux's BFQ without its low-latency heuristics: streams take turns of a budget of sectors, by \
            weight (Valente and Andreolini 2012)",
    promises: "not work conserving while slice_idle > 0: the device may idle up to slice_idle for the next request of a \
               stream; sectors of two backlogged streams, divided by weight, differ by at most two budgets of each",
    settings: &[
        ("slice_idle", "ms that the device idles for a stream's next request; 0: no idling; default 8"),
        ("rotational", "yes or no: whether the device is rotational; default yes"),
        ("max_budget", "maximum number of 512-byte sectors per turn; default 16384"),
        ("timeout_sync", "maximum ms per turn; default 125"),
        (
            "queues",
            "unit with a queue of its own. stream: each stream of a class; class: each class; default stream",
        ),
        (
            "writes",
            "sync: the sender waits for its writes (direct I/O); async: it does not (page cache); default sync",
        ),
    ],
    build: |classes, settings| Ok(Box::new(Bfq::new(classes, settings)?)),
};

/// Maximum idling for a seeky queue.
const SEEK_IDLE_NS: u64 = 2_000_000;

/// Class, stream, and whether synchronous. The asynchronous writes of a class have one queue.
type Name = (ClassId, u32, bool);

/// The queue in service.
#[derive(Debug)]
struct Current {
    queue: usize,
    begun_ns: u64,
    /// End of idling while the queue is empty.
    idle_until_ns: Option<u64>,
}

#[derive(Debug)]
struct Bfq {
    device: Device,
    max_budget: u64,
    timeout_ns: u64,
    by_stream: bool,
    writes_sync: bool,
    async_charge_factor: u64,
    weights: Vec<Weight>,
    names: BTreeMap<Name, usize>,
    queues: Vec<Queue>,
    tree: Tree,
    current: Option<Current>,
    /// End of the last dispatched request.
    head_bytes: u64,
    waiting: usize,
}

impl Bfq {
    fn new(classes: &[Class], settings: &Settings) -> Result<Self, SettingError> {
        let weights = Weight::of(NAME, classes)?;
        let symmetric = weights.windows(2).all(|pair| pair[0] == pair[1]);
        Ok(Bfq {
            device: Device::new(
                settings.ms("slice_idle", 8.0)?,
                settings.word("rotational", &["yes", "no"])? == "yes",
            ),
            max_budget: settings.count("max_budget", 16_384, 1, 1 << 32)?,
            timeout_ns: settings.ms("timeout_sync", 125.0)?.max(1),
            by_stream: settings.word("queues", &["stream", "class"])? == "stream",
            writes_sync: settings.word("writes", &["sync", "async"])? == "sync",
            async_charge_factor: if symmetric { ASYNC_CHARGE_FACTOR } else { 1 },
            weights,
            names: BTreeMap::new(),
            queues: Vec::new(),
            tree: Tree::default(),
            current: None,
            head_bytes: 0,
            waiting: 0,
        })
    }

    fn name(&self, request: &Request) -> Name {
        let sync = is_sync(request.op, self.writes_sync);
        let stream = if self.by_stream && sync { request.stream } else { 0 };
        (request.class, stream, sync)
    }

    fn queue_of(&mut self, request: &Request) -> usize {
        let name = self.name(request);
        if let Some(index) = self.names.get(&name) {
            return *index;
        }
        let (class, _, sync) = name;
        let weight = self.weights.get(usize::from(class)).copied().unwrap_or(Weight::ONE);
        let charge_factor = if sync { 1 } else { self.async_charge_factor };
        self.names.insert(name, self.queues.len());
        self.queues.push(Queue::new(weight, sync, charge_factor, (self.max_budget * 2 / 3).max(1)));
        self.queues.len() - 1
    }

    fn is_current(&self, index: usize) -> bool {
        self.current.as_ref().is_some_and(|current| current.queue == index)
    }

    /// Assigns a queue its next budget with its tags.
    fn enqueue(&mut self, index: usize) {
        let queue = &mut self.queues[index];
        queue.budget = queue.max_budget.max(queue.next().map_or(1, |key| queue.charge(key)));
        queue.finish = queue.start.saturating_add(queue.pace.times(queue.budget));
        self.tree.insert(index, queue.start, queue.finish);
    }

    /// Ends the service of the current queue.
    fn expire(&mut self, now_ns: u64, expiry: Expiry) {
        let Some(Current { queue: index, begun_ns, .. }) = self.current.take() else { return };
        let queue = &mut self.queues[index];
        let left = queue.budget.saturating_sub(queue.service);
        if expiry == Expiry::Timeout && left >= queue.budget / 3 {
            // A slow queue: it is charged its time instead of its small service.
            let time_ns = now_ns.saturating_sub(begun_ns).min(self.timeout_ns);
            let sectors = u128::from(self.max_budget) * u128::from(time_ns) / u128::from(self.timeout_ns);
            let owed = u64::try_from(sectors).unwrap_or(u64::MAX).saturating_sub(queue.service);
            queue.service += owed;
            self.tree.served(owed);
        }
        queue.learn(expiry, self.max_budget);
        // Its actual service, not its budget, determines its next start.
        queue.start = queue.start.saturating_add(queue.pace.times(queue.service));
        queue.finish = queue.start;
        if queue.requests.is_empty() {
            self.tree.leave(queue.weight);
        } else {
            self.enqueue(index);
        }
    }

    /// Whether the device should idle for a queue's next request: for throughput, or to keep the shares by weight.
    fn is_worth_idling(&self, queue: &Queue) -> bool {
        let Device { slice_idle_ns, rotational, queues, .. } = self.device;
        if slice_idle_ns == 0 || !queue.sync {
            return false;
        }
        let streams = !queue.seeks() && queue.thinking.is_short(slice_idle_ns);
        let faster = if rotational { !queues || streams } else { !queues && streams };
        faster || self.tree.is_asymmetric() || self.tree.has_one()
    }

    /// Maximum idling for a queue: short if it seeks.
    fn idle_ns(&self, queue: &Queue) -> u64 {
        if queue.seeks() && !self.tree.is_asymmetric() {
            self.device.slice_idle_ns.min(SEEK_IDLE_NS)
        } else {
            self.device.slice_idle_ns
        }
    }

    /// The current queue has no request: the device waits for it, or its service ends.
    fn wait_for_current(&mut self, now_ns: u64) -> Option<Decision> {
        let Current { queue, idle_until_ns, .. } = *self.current.as_ref()?;
        let queue = &self.queues[queue];
        match idle_until_ns {
            Some(until_ns) if until_ns > now_ns => return Some(Decision::WaitUntil(until_ns)),
            Some(_) => self.expire(now_ns, Expiry::TooIdle),
            None if queue.in_service > 0 && self.is_worth_idling(queue) => {
                return Some(Decision::UNTIL_COMPLETION);
            }
            None => self.expire(now_ns, Expiry::Empty),
        }
        None
    }

    /// A queue became active: it preempts the current one if that has less weight, or if the device would not idle for that.
    fn preempt(&mut self, now_ns: u64, by: Weight) {
        let Some(Current { queue, .. }) = &self.current else { return };
        let queue = &self.queues[*queue];
        if by > queue.weight || !self.is_worth_idling(queue) {
            self.expire(now_ns, Expiry::Preempted);
        }
    }

    /// Serves the current queue, or ends its service.
    fn serve_current(&mut self, now_ns: u64) -> Option<Decision> {
        let Current { queue: index, begun_ns, .. } = *self.current.as_ref()?;
        let queue = &mut self.queues[index];
        let Some(key) = queue.next() else { return self.wait_for_current(now_ns) };
        let timeout = now_ns.saturating_sub(begun_ns) >= self.timeout_ns;
        let charge = queue.charge(key);
        if queue.service == 0 {
            // The first request is always served: each turn makes progress.
            queue.budget = queue.budget.max(charge);
        } else if timeout {
            self.expire(now_ns, Expiry::Timeout);
            return None;
        } else if queue.service.saturating_add(charge) > queue.budget {
            self.expire(now_ns, Expiry::Exhausted);
            return None;
        }
        let request = queue.take(now_ns)?;
        self.head_bytes = request.end_bytes();
        self.device.issued();
        self.tree.served(charge);
        self.waiting -= 1;
        Some(Decision::Serve(request))
    }
}

impl Policy for Bfq {
    fn arrive(&mut self, now_ns: u64, request: Request, _: &dyn ServiceModel) {
        let index = self.queue_of(&request);
        let is_current = self.is_current(index);
        let queue = &mut self.queues[index];
        let was_idle = queue.requests.is_empty();
        queue.arrive(now_ns, request, &self.device, self.head_bytes);
        self.waiting += 1;
        if is_current {
            if let Some(current) = &mut self.current {
                current.idle_until_ns = None;
            }
        } else if was_idle {
            queue.start = queue.finish.max(self.tree.virtual_now());
            let weight = queue.weight;
            self.tree.join(weight);
            self.enqueue(index);
            self.preempt(now_ns, weight);
        }
    }

    fn next(&mut self, now_ns: u64, _: &dyn ServiceModel) -> Decision {
        if self.waiting == 0 {
            return Decision::Idle;
        }
        loop {
            if self.current.is_none() {
                let Some(index) = self.tree.pick() else { return Decision::Idle };
                self.queues[index].begin();
                self.current = Some(Current { queue: index, begun_ns: now_ns, idle_until_ns: None });
            }
            if let Some(decision) = self.serve_current(now_ns) {
                return decision;
            }
        }
    }

    fn complete(&mut self, now_ns: u64, request: &Request, _: u64) {
        let index = self.queue_of(request);
        let queue = &mut self.queues[index];
        let outstanding = queue.in_service + queue.requests.len() as u64;
        let starved = queue.thinking.is_short(self.device.slice_idle_ns) && outstanding < 3;
        queue.in_service = queue.in_service.saturating_sub(1);
        queue.thinking.completed(now_ns);
        self.device.completed(self.waiting as u64, starved);
        let queue = &self.queues[index];
        if queue.in_service == 0
            && queue.next().is_none()
            && self.is_current(index)
            && self.is_worth_idling(queue)
        {
            let until_ns = now_ns.saturating_add(self.idle_ns(queue));
            if let Some(current) = &mut self.current {
                current.idle_until_ns = Some(until_ns);
            }
        }
    }

    fn waiting(&self) -> usize {
        self.waiting
    }
}

#[cfg(test)]
mod tests {
    use crate::fixture::{device, of_class, policy, policy_for, tags, weighted};
    use crate::policy::Decision;
    use crate::request::Request;

    /// `n` requests of four sectors of a class.
    fn requests(class: u16, n: u64) -> Vec<Request> {
        (0..n).map(|i| of_class(class, 100_000 * (u64::from(class) + 1) + 2048 * i, 2048)).collect()
    }

    #[test]
    fn budgets_by_weight() {
        // The first budget is two thirds of 12 sectors: two requests. It is exhausted, and the next is 12: three. With
        // weight 2, class b has twice the sectors of a in the same virtual time.
        let both: Vec<_> = requests(0, 30).into_iter().chain(requests(1, 30)).collect();
        let mut policy =
            policy_for("linux-bfq", &weighted(&[1.0, 2.0]), &[("max_budget", "12"), ("slice_idle", "0")]);
        let order = tags(&mut *policy, &both);
        let of_b = |n: usize| order[..n].iter().filter(|tag| **tag >= 200_000).count();
        for n in [9, 18, 27, 36] {
            assert!(of_b(n).abs_diff(2 * n / 3) <= 3, "{} of {n}: {order:?}", of_b(n));
        }
        // A turn is three requests in a row.
        assert!(
            order[12..24].windows(2).filter(|pair| pair[0].abs_diff(pair[1]) > 50_000).count() <= 4,
            "{order:?}"
        );
    }

    #[test]
    fn the_device_waits_for_the_next_of_the_stream() {
        let near = of_class(0, 1000, 512);
        let next = of_class(0, 2000, 512);
        let far = of_class(1, 900_000, 512);
        for (slice_idle, idles) in [("8", true), ("0", false)] {
            let mut policy = policy("linux-bfq", &[("slice_idle", slice_idle)]);
            let device = device(0);
            policy.arrive(0, near, &device);
            policy.arrive(0, far, &device);
            assert_eq!(policy.next(0, &device), Decision::Serve(near));
            policy.complete(1_000_000, &near, 0);
            if idles {
                assert_eq!(policy.next(1_000_000, &device), Decision::WaitUntil(9_000_000));
                policy.arrive(2_000_000, next, &device);
                assert_eq!(policy.next(2_000_000, &device), Decision::Serve(next));
                assert_eq!(policy.next(2_000_000, &device), Decision::UNTIL_COMPLETION);
                policy.complete(3_000_000, &next, 2_000_000);
                assert_eq!(policy.next(11_000_000, &device), Decision::Serve(far));
            } else {
                assert_eq!(policy.next(1_000_000, &device), Decision::Serve(far));
            }
        }
    }

    #[test]
    fn a_slow_stream_pays_for_its_time() {
        // Class a needs 100 ms for a sector. After its time is over it owes the whole budget, and b is served as much.
        let settings = [("max_budget", "8"), ("slice_idle", "0")];
        let mut policy = policy("linux-bfq", &settings);
        let device = device(0);
        let sector = |class, n: u64| of_class(class, 10_000 * (u64::from(class) + 1) + 512 * n, 512);
        for n in 0..8 {
            policy.arrive(0, sector(0, n), &device);
            policy.arrive(0, sector(1, n), &device);
        }
        let mut now_ns = 0;
        let mut order = Vec::new();
        while let Decision::Serve(request) = policy.next(now_ns, &device) {
            order.push(request.class);
            let begun_ns = now_ns;
            now_ns += if request.class == 0 { 100_000_000 } else { 1_000_000 };
            policy.complete(now_ns, &request, begun_ns);
        }
        assert_eq!(order, [0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0]);
    }
}
