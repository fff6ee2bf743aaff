//! Eligibility of requests: active leaves and times of changes.

use std::collections::{BTreeMap, VecDeque};

use super::bucket::{Rate, tokens_of};
use super::notation::{Plan, Planned};
use super::programme::{Change, Programme, Seen};
use super::tree::{NodeId, Reservation, Tree};
use crate::policy::Account;
use crate::request::{ClassId, Request};

/// Parts of a token in a token, as rates and times make them.
const PARTS: i128 = 1_000_000_000_000_000;
/// Percentage of a step with requests from which a leaf counts as backlogged.
const ALWAYS_PERCENT: u64 = 95;

/// Owner of a leaf: a class, or a client of it.
type Key = (ClassId, u32);

/// What a request without tokens waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitsFor {
    /// The tokens of its leaf or of any node above it.
    AnyTokens,
    /// The tokens of its leaf, which it has taken already (Fig. 2).
    OwnTokens,
}

/// A client of the disk.
#[derive(Debug)]
struct Leaf {
    node: NodeId,
    /// Held requests, in order of arrival.
    held: VecDeque<(u64, Request)>,
    /// The first held request has taken its tokens (`pass=own`).
    is_asleep: bool,
    /// Number of uncompleted requests, held ones included.
    open: u64,
    /// Time since which the number is zero, or not.
    since_ns: u64,
    /// Time with a request since the last step.
    asking_ns: u64,
    /// Completed and reserved tokens since the last step, in parts of tokens.
    got: i128,
    due: i128,
    /// Tokens of the last arrival: granularity of completions.
    portion: i128,
    /// End of the counted time.
    counted_ns: u64,
}

/// Next timed event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Step,
    Passes(u64, Key),
    Leaves(Key),
}

/// Holds requests back until there are tokens for them.
///
/// Events take effect at their own times, in order, independent of the times of calls.
#[derive(Debug)]
pub(super) struct Gate {
    tree: Tree,
    plan: Plan,
    /// Active nodes of the plan.
    present: Vec<Option<NodeId>>,
    leaves: BTreeMap<Key, Leaf>,
    is_by_client: bool,
    leave_ns: u64,
    waits_for: WaitsFor,
    programme: Programme,
    root: Rate,
    /// Next step of the programme; `None` before the first request.
    step_ns: Option<u64>,
    /// Whether the next step only starts counting.
    is_first_step: bool,
    root_due: i128,
    root_counted_ns: u64,
    arrivals: u64,
    held: usize,
    passed: VecDeque<Request>,
    /// Time of the next possible event.
    quiet_until_ns: u64,
}

impl Gate {
    pub(super) fn new(
        plan: Plan,
        root: Rate,
        burst_ns: u64,
        is_by_client: bool,
        leave_ns: u64,
        programme: Programme,
    ) -> Self {
        Gate {
            tree: Tree::new(root, burst_ns),
            present: vec![None; plan.nodes.len()],
            plan,
            leaves: BTreeMap::new(),
            is_by_client,
            leave_ns,
            waits_for: WaitsFor::AnyTokens,
            programme,
            root,
            step_ns: None,
            is_first_step: true,
            root_due: 0,
            root_counted_ns: 0,
            arrivals: 0,
            held: 0,
            passed: VecDeque::new(),
            quiet_until_ns: 0,
        }
    }

    /// Sets what requests without tokens wait for.
    pub(super) fn waiting_for(self, waits_for: WaitsFor) -> Self {
        Gate { waits_for, ..self }
    }

    /// Adds a request.
    pub(super) fn arrive(&mut self, now_ns: u64, request: Request) {
        self.catch_up(now_ns);
        let key = self.key(&request);
        let is_known = self.leaves.contains_key(&key);
        if !is_known {
            if self.step_ns.is_none() && self.programme.change != Change::None {
                self.step_ns = Some(now_ns.saturating_add(self.programme.from_ns));
            }
            self.join(now_ns, key);
        }
        let number = self.arrivals;
        self.arrivals += 1;
        let tokens = tokens_of(request.size_bytes);
        let Some(leaf) = self.leaves.get_mut(&key) else { return };
        if leaf.open == 0 {
            leaf.since_ns = now_ns;
        }
        leaf.open += 1;
        leaf.portion = i128::from(tokens) * PARTS;
        // Due events have happened, so it would be next. Its tokens make no other event earlier; a new leaf may.
        if is_known
            && leaf.held.is_empty()
            && let Some(supplier) = self.tree.supplier(leaf.node, tokens)
        {
            self.tree.take(supplier, tokens);
            self.passed.push_back(request);
            return;
        }
        leaf.held.push_back((number, request));
        self.held += 1;
        if self.waits_for == WaitsFor::OwnTokens {
            self.fall_asleep(key);
        }
        self.quiet_until_ns = 0;
        self.catch_up(now_ns);
    }

    /// Reports the completion of a passed request.
    pub(super) fn complete(&mut self, now_ns: u64, request: &Request) {
        self.catch_up(now_ns);
        let key = self.key(request);
        if let Some(leaf) = self.leaves.get_mut(&key) {
            leaf.count(now_ns, self.tree.rate(leaf.node));
            leaf.got += i128::from(tokens_of(request.size_bytes)) * PARTS;
            leaf.open = leaf.open.saturating_sub(1);
            if leaf.open == 0 {
                leaf.since_ns = now_ns;
                self.quiet_until_ns = self.quiet_until_ns.min(now_ns.saturating_add(self.leave_ns));
            }
        }
    }

    /// Passes eligible requests up to now.
    pub(super) fn catch_up(&mut self, now_ns: u64) {
        while self.quiet_until_ns <= now_ns {
            let next = self.next_event();
            let Some((at_ns, event)) = next.filter(|(at_ns, _)| *at_ns <= now_ns) else {
                // Filling buckets makes nothing ready earlier than computed.
                self.quiet_until_ns = next.map_or(u64::MAX, |(at_ns, _)| at_ns);
                break;
            };
            self.tree.fill(at_ns);
            match event {
                Event::Step => self.step(at_ns, now_ns),
                Event::Passes(_, key) => self.pass(key),
                Event::Leaves(key) => self.leave(at_ns, key),
            }
        }
        self.tree.fill(now_ns);
    }

    /// Removes the first passed request.
    pub(super) fn take_passed(&mut self) -> Option<Request> {
        self.passed.pop_front()
    }

    /// Number of held requests, and of passed requests not yet taken.
    pub(super) fn waiting(&self) -> usize {
        self.held + self.passed.len()
    }

    /// Time of the next event, if requests are held.
    pub(super) fn next_ns(&self) -> Option<u64> {
        (self.held > 0).then(|| self.next_event().map_or(u64::MAX, |(at_ns, _)| at_ns))
    }

    /// Tokens in the buckets of each class's leaves and of the root, at the last fill.
    pub(super) fn accounts(&self) -> Vec<Account> {
        let tokens = |node| self.tree.tokens(node) as f64;
        let mut by_class: BTreeMap<ClassId, f64> = BTreeMap::new();
        for ((class, _), leaf) in &self.leaves {
            *by_class.entry(*class).or_default() += tokens(leaf.node);
        }
        let account = |class, value| Account { name: "tokens_kb", class, value };
        std::iter::once(account(None, tokens(Tree::ROOT)))
            .chain(by_class.into_iter().map(|(class, value)| account(Some(class), value)))
            .collect()
    }

    fn key(&self, request: &Request) -> Key {
        (request.class, if self.is_by_client { request.stream } else { 0 })
    }

    fn next_event(&self) -> Option<(u64, Event)> {
        let of_leaf = |(key, leaf): (&Key, &Leaf)| match leaf.held.front() {
            Some((number, _)) if leaf.is_asleep => {
                Some((self.tree.debt_end_ns(leaf.node), Event::Passes(*number, *key)))
            }
            Some((number, request)) => {
                let at_ns = self.tree.ready_ns(leaf.node, tokens_of(request.size_bytes));
                Some((at_ns, Event::Passes(*number, *key)))
            }
            None if leaf.open == 0 => Some((self.leaves_ns(leaf), Event::Leaves(*key))),
            None => None,
        };
        let step = self.step_ns.map(|at_ns| (at_ns, Event::Step));
        self.leaves.iter().filter_map(of_leaf).chain(step).min().filter(|(at_ns, _)| *at_ns < u64::MAX)
    }

    /// Time at which an idle leaf leaves: after `leave_ms`, when it and its empty groups have no debt.
    fn leaves_ns(&self, leaf: &Leaf) -> u64 {
        let mut at_ns = leaf.since_ns.saturating_add(self.leave_ns);
        for id in self.tree.way_up(leaf.node) {
            if id == Tree::ROOT || self.tree.children(id).len() > 1 {
                break;
            }
            at_ns = at_ns.max(self.tree.debt_end_ns(id));
        }
        at_ns
    }

    fn pass(&mut self, key: Key) {
        let Some(leaf) = self.leaves.get_mut(&key) else { return };
        let Some((_, request)) = leaf.held.pop_front() else { return };
        let tokens = tokens_of(request.size_bytes);
        let has_paid = std::mem::take(&mut leaf.is_asleep);
        if !has_paid && let Some(supplier) = self.tree.supplier(leaf.node, tokens) {
            self.tree.take(supplier, tokens);
        }
        self.held -= 1;
        self.passed.push_back(request);
        if self.waits_for == WaitsFor::OwnTokens {
            self.fall_asleep(key);
        }
    }

    /// Passes a leaf's held requests that find tokens, up to the first without: it takes its tokens from its leaf.
    fn fall_asleep(&mut self, key: Key) {
        let Some(leaf) = self.leaves.get_mut(&key).filter(|leaf| !leaf.is_asleep) else { return };
        while let Some((_, request)) = leaf.held.front() {
            let tokens = tokens_of(request.size_bytes);
            let Some(supplier) = self.tree.supplier(leaf.node, tokens) else {
                self.tree.take(leaf.node, tokens);
                leaf.is_asleep = true;
                return;
            };
            self.tree.take(supplier, tokens);
            self.held -= 1;
            self.passed.extend(leaf.held.pop_front().map(|(_, request)| request));
        }
    }

    /// Adds a leaf and missing groups above it.
    fn join(&mut self, now_ns: u64, key: Key) {
        self.count_all(now_ns);
        let class = usize::from(key.0);
        while self.plan.of_class.len() <= class {
            // A class that the policy does not have.
            self.plan.of_class.push(self.plan.nodes.len());
            self.plan.nodes.push(Planned {
                name: String::new(),
                parent: None,
                reservation: Reservation::EQUAL,
            });
            self.present.push(None);
        }
        let place = self.plan.of_class[class];
        let of_class = self.enter(place);
        let node = if self.is_by_client { self.add(of_class, Reservation::EQUAL) } else { of_class };
        let leaf = Leaf {
            node,
            held: VecDeque::new(),
            is_asleep: false,
            open: 0,
            since_ns: now_ns,
            asking_ns: 0,
            got: 0,
            due: 0,
            portion: 0,
            counted_ns: now_ns,
        };
        self.leaves.insert(key, leaf);
    }

    fn enter(&mut self, place: usize) -> NodeId {
        if let Some(id) = self.present[place] {
            return id;
        }
        let Planned { parent, reservation, .. } = self.plan.nodes[place];
        let parent = parent.map_or(Tree::ROOT, |parent| self.enter(parent));
        let id = self.add(parent, reservation);
        self.present[place] = Some(id);
        id
    }

    fn add(&mut self, parent: NodeId, reservation: Reservation) -> NodeId {
        // The whole plan was found to fit, so no part of it is refused.
        let added = self.tree.add(parent, reservation);
        added.or_else(|_| self.tree.add(parent, Reservation::EQUAL)).unwrap_or(Tree::ROOT)
    }

    /// Removes a leaf and empty groups above it.
    fn leave(&mut self, now_ns: u64, key: Key) {
        self.count_all(now_ns);
        let Some(leaf) = self.leaves.remove(&key) else { return };
        let way_up: Vec<NodeId> = self.tree.way_up(leaf.node).collect();
        for id in way_up {
            if self.tree.remove(id).is_err() {
                break;
            }
            for present in self.present.iter_mut().filter(|present| **present == Some(id)) {
                *present = None;
            }
        }
    }

    /// A step of the programme.
    fn step(&mut self, at_ns: u64, now_ns: u64) {
        self.count_all(at_ns);
        let every_ns = self.programme.every_ns;
        if !std::mem::take(&mut self.is_first_step) {
            let seen = self.seen();
            let rate = self.programme.next(self.root, seen);
            self.set_root(rate);
            if seen.is_short && matches!(self.programme.change, Change::Follow { .. }) {
                // Tokens saved while the disk was too slow are bandwidth that it never had.
                self.tree.forfeit();
            }
        }
        for leaf in self.leaves.values_mut() {
            (leaf.asking_ns, leaf.got, leaf.due) = (0, 0, 0);
        }
        self.root_due = 0;
        let mut next_ns = at_ns.saturating_add(every_ns);
        if self.held == 0 && self.leaves.values().all(|leaf| leaf.open == 0) && next_ns < now_ns {
            // Without requests nothing is observed, and increasing steps add up.
            let skipped = (now_ns - next_ns) / every_ns;
            if self.programme.change == Change::Rise {
                let risen = self.programme.step.times(skipped);
                self.set_root(self.root.plus(risen).min(self.programme.most));
            }
            next_ns += skipped * every_ns;
        }
        self.step_ns = Some(next_ns);
    }

    fn set_root(&mut self, rate: Rate) {
        if rate != self.root {
            self.root = self.tree.set_root(rate);
        }
    }

    fn seen(&self) -> Seen {
        let every_ns = self.programme.every_ns;
        let asks = |leaf: &&Leaf| {
            u128::from(leaf.asking_ns) * 100 >= u128::from(every_ns) * u128::from(ALWAYS_PERCENT)
        };
        let is_short = self
            .leaves
            .values()
            .filter(asks)
            .any(|leaf| !self.programme.is_enough(leaf.got + leaf.portion, leaf.due));
        let got: i128 = self.leaves.values().map(|leaf| leaf.got).sum();
        Seen {
            is_short,
            got: Rate::of(got, every_ns),
            is_used_up: self.programme.is_enough(got, self.root_due),
        }
    }

    /// Counts reserved tokens up to a time, before a rate changes.
    fn count_all(&mut self, now_ns: u64) {
        for leaf in self.leaves.values_mut() {
            leaf.count(now_ns, self.tree.rate(leaf.node));
        }
        self.root_due += self.root.parts_in(now_ns.saturating_sub(self.root_counted_ns));
        self.root_counted_ns = self.root_counted_ns.max(now_ns);
    }
}

impl Leaf {
    fn count(&mut self, now_ns: u64, rate: Rate) {
        let since_ns = now_ns.saturating_sub(self.counted_ns);
        if self.open > 0 {
            // A client that sends the next request immediately after an answer was never idle.
            self.asking_ns += since_ns.min(now_ns.saturating_sub(self.since_ns));
        }
        self.due += rate.parts_in(since_ns);
        self.counted_ns = self.counted_ns.max(now_ns);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fixture::{of_class, weighted};

    proptest! {
        /// Without a poll no event would have been processed.
        #[test]
        fn nothing_that_is_due_is_left(
            tree in prop::sample::select(vec![None, Some("g:0.5(a:0.6,b:w3),c:90kb_s"), Some("a:w1,b:w9,c:w0.1")]),
            change in prop::sample::select(vec![Change::None, Change::Rise, Change::Follow { tolerance_percent: 5 }]),
            is_by_client: bool,
            waits_for in prop::sample::select(vec![WaitsFor::AnyTokens, WaitsFor::OwnTokens]),
            steps in prop::collection::vec((0u64..300_000_000, 0u16..3, 0u32..3, 1u32..100, any::<bool>()), 1..120),
        ) {
            let root = Rate::per_s(300);
            let plan = Plan::read(tree, &weighted(&[1.0, 2.0, 3.0]), root).unwrap();
            let programme = Programme::new(change, Rate::per_s(20), 70_000_000, 0, plan.firm, Rate::per_s(1000));
            let gate = Gate::new(plan, root, 200_000_000, is_by_client, 150_000_000, programme);
            let mut gate = gate.waiting_for(waits_for);
            let (mut now_ns, mut open) = (0, Vec::new());
            for (after_ns, class, stream, kb, is_done) in steps {
                now_ns += after_ns;
                if is_done && let Some(request) = open.pop() {
                    gate.complete(now_ns, &request);
                } else {
                    let request = of_class(class, u64::from(kb), kb * 1024);
                    gate.arrive(now_ns, Request { stream, arrived_ns: now_ns, ..request });
                }
                while let Some(request) = gate.take_passed() {
                    open.push(request);
                }
                let next_ns = gate.next_event().map_or(u64::MAX, |(at_ns, _)| at_ns);
                prop_assert!(next_ns > now_ns && gate.quiet_until_ns <= next_ns, "{now_ns} {next_ns} {}", gate.quiet_until_ns);
            }
        }
    }
}
