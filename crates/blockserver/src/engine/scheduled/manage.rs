//! Management of a running engine: classes, scheduler, service times, statistics.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use super::attribution::Attribution;
use super::class_stats::{ClassStats, Counts, HeadStats, SchedulingStats, share_out};
use super::classes::{self, ClassSpec, completed};
use super::engine::{Engine, Media, dispatcher, real_time};
use super::inner::{Answers, Pending};
use super::policy_text::PolicyText;
use crate::engine::alarm::NEVER;
use crate::stats::Stats;

impl Engine {
    /// Classes, including the one of unattributed requests.
    pub fn classes(&self) -> Vec<ClassSpec> {
        self.lock().tally.specs().cloned().collect()
    }

    /// Adds a class, or changes the one of that name.
    ///
    /// # Errors
    /// The class is invalid, or the scheduler refuses it; nothing has changed then.
    pub fn set_class(&self, class: ClassSpec) -> Result<(), String> {
        let mut wanted = self.classes();
        match wanted.iter_mut().find(|other| other.name == class.name) {
            Some(other) => *other = class,
            None => {
                // An explicit class of unattributed requests replaces the implicit one.
                if class.takes_the_rest() {
                    wanted.retain(|other| *other != ClassSpec::named(classes::OTHER));
                }
                wanted.push(class);
            }
        }
        self.set_all(&wanted, None)
    }

    /// Removes a class. Its waiting requests go to the class of unattributed requests.
    ///
    /// # Errors
    /// No class has this name, or the scheduler refuses the others; nothing has changed then.
    pub fn remove_class(&self, name: &str) -> Result<(), String> {
        let mut wanted = self.classes();
        let count = wanted.len();
        wanted.retain(|class| class.name != name);
        if wanted.len() == count {
            let known: Vec<&str> = wanted.iter().map(|class| class.name.as_str()).collect();
            return Err(format!("the server has no class `{name}` (found {})", known.join(", ")));
        }
        self.set_all(&wanted, None)
    }

    /// Replaces the scheduler.
    ///
    /// # Errors
    /// The scheduler is unknown, or refuses the classes; nothing has changed then.
    pub fn set_policy(&self, policy: &str) -> Result<(), String> {
        self.set_all(&self.classes(), Some(policy))
    }

    /// Replaces classes, and the scheduler if `policy` is set. Waiting requests go to new schedulers; none is lost.
    fn set_all(&self, wanted: &[ClassSpec], policy: Option<&str>) -> Result<(), String> {
        let size_mib = self.setup.size_bytes >> 20;
        classes::check(wanted, Some(size_mib)).map_err(|problem| {
            let (at, field) = problem.field.split_once('.').unwrap_or((&problem.field, ""));
            let name = at.parse().ok().and_then(|at: usize| wanted.get(at)).map_or("", |class| &class.name);
            format!("class `{name}`: {field} {}", problem.message)
        })?;
        let wanted = completed(wanted);
        let text =
            policy.map(PolicyText::parse).transpose().map_err(|error| format!("the policy {error}"))?;
        let mut answers = Answers::new();
        let mut guard = self.lock();
        let inner = &mut *guard;
        let text = text.unwrap_or_else(|| inner.policy.clone());
        let policies = text.build(&wanted, inner.heads().len()).map_err(|error| error.to_string())?;
        let rest = wanted.iter().position(ClassSpec::takes_the_rest).unwrap_or(0) as u16;
        let place =
            |name: &str| wanted.iter().position(|class| class.name == name).map_or(rest, |at| at as u16);
        let moves: Vec<u16> = inner.tally.specs().map(|spec| place(&spec.name)).collect();
        let class_of = |class: u16| moves.get(usize::from(class)).copied().unwrap_or(rest);
        let classes = inner.tally.classes_mut();
        let mut before: Vec<Counts> = std::mem::take(classes);
        for class in &wanted {
            let known = before.iter().position(|counts| counts.spec.name == class.name);
            let mut counts = known.map_or_else(|| Counts::new(class), |at| before.swap_remove(at));
            counts.set(class);
            counts.queue = 0;
            classes.push(counts);
        }
        for Pending { class, .. } in inner.pending.iter_mut().flatten() {
            *class = class_of(*class);
            classes[usize::from(*class)].queue += 1;
        }
        inner.attribution = Attribution::new(&wanted);
        inner.policy = text;
        if let Some(policy) = policy {
            policy.clone_into(&mut inner.policy_text);
        }
        // While models are off nothing waits, and real devices get requests in order of arrival.
        let is_timed = self.timed.load(Ordering::Relaxed);
        if is_timed || matches!(self.setup.media, Media::Modelled(_)) {
            let now_ns = self.now_ns();
            inner.dispatcher.replace_policies(now_ns, policies, &real_time(&wanted), &class_of);
        }
        let wakes = self.follow(inner, self.now_ns(), &mut answers);
        drop(guard);
        self.send_all(&mut answers, wakes);
        Ok(())
    }

    /// Turns models and schedulers off or on. Off: with models, outstanding requests complete now, and later ones
    /// immediately; real devices get requests in order of arrival. On: models and schedulers begin in their initial
    /// state.
    pub fn set_timing(&self, on: bool) {
        let mut answers = Answers::new();
        let mut guard = self.lock();
        let inner = &mut *guard;
        if self.timed.swap(on, Ordering::AcqRel) == on {
            return;
        }
        let specs: Vec<ClassSpec> = inner.tally.specs().cloned().collect();
        match &self.setup.media {
            Media::Modelled(_) => {
                // These classes and this policy were accepted before.
                if let Ok(fresh) =
                    dispatcher(&self.setup, &inner.policy, &specs, inner.queue_depth, inner.seed)
                {
                    inner.dispatcher = fresh;
                }
                inner.unused.clear();
                inner.done.clear();
                for pending in inner.pending.drain(..).flatten() {
                    inner.tally.answered(pending.asked.op, pending.asked.size_bytes);
                    answers.push(pending);
                }
                inner.tally.classes_mut().iter_mut().for_each(|counts| counts.queue = 0);
                inner.occupancy.empty(self.now_ns());
                // A later instant needs no ring.
                let _ = self.alarm.set(NEVER);
            }
            Media::Direct(_) => {
                let plain = PolicyText::parse("fcfs").ok();
                let text = if on { Some(inner.policy.clone()) } else { plain };
                let heads = inner.heads().len();
                if let Some(Ok(policies)) = text.map(|text| text.build(&specs, heads)) {
                    let now_ns = self.now_ns();
                    inner.dispatcher.replace_policies(now_ns, policies, &real_time(&specs), &|class| class);
                }
            }
        }
        let wakes = self.follow(inner, self.now_ns(), &mut answers);
        drop(guard);
        self.send_all(&mut answers, wakes);
    }

    /// Statistics, as of a server without a scheduler; resets them if `reset`.
    pub fn stats(&self, reset: bool) -> Stats {
        let mut inner = self.lock();
        let now_ns = self.now_ns();
        let (timing, realtime) = (self.timed.load(Ordering::Relaxed), self.alarm.is_realtime());
        let mut stats = Stats { timing, realtime, ..Stats::default() };
        inner.occupancy.show(now_ns, &mut stats);
        self.counters.show(&mut stats);
        // Reads and writes are counted by the tally, not by these counters.
        inner.tally.show(&mut stats);
        if reset {
            self.counters.reset();
            inner.tally.reset();
            let outstanding = inner.dispatcher.outstanding();
            inner.occupancy.reset(now_ns, outstanding);
        }
        stats
    }

    /// Statistics of each class, and the schedulers' accounts.
    pub fn scheduling_stats(&self) -> SchedulingStats {
        let mut inner = self.lock();
        let now_ns = self.now_ns();
        let mut classes: Vec<ClassStats> =
            inner.tally.classes_mut().iter_mut().map(|counts| counts.stats(now_ns)).collect();
        share_out(&mut classes);
        let mut heads = Vec::new();
        for head in inner.heads() {
            let mut accounts = BTreeMap::new();
            for account in head.policy().accounts() {
                let of_class = account.class.and_then(|class| classes.get_mut(usize::from(class)));
                let accounts = of_class.map_or(&mut accounts, |class| &mut class.accounts);
                *accounts.entry(account.name.to_owned()).or_default() += account.value;
            }
            let report = head.report(now_ns);
            heads.push(HeadStats {
                requests: report.requests,
                waiting: head.waiting() as u64,
                in_service: head.inside().len() as u64,
                busy_ms: report.busy_ns as f64 / 1e6,
                slack_ms: report.slack_ns.map(|ns| ns as f64 / 1e6),
                accounts,
            });
        }
        SchedulingStats {
            policy: inner.policy_text.clone(),
            uptime_s: crate::clock::now_ns().saturating_sub(self.started_ns) as f64 / 1e9,
            outstanding: inner.dispatcher.outstanding() as u64,
            classes,
            heads,
        }
    }

    /// Ends the threads: with models all requests complete first; real devices finish their outstanding requests.
    pub fn stop(&self) {
        self.set_timing(false);
        self.alarm.stop();
        if let Media::Direct(direct) = &self.setup.media {
            let _inner = self.lock();
            direct.stop();
        }
    }
}
