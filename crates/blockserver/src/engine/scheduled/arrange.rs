//! Scheduler, classes and queue depth set at once, as a study does before each run.

use std::sync::atomic::Ordering;

use serde::{Deserialize, Serialize};

use super::attribution::Attribution;
use super::class_stats::Counts;
use super::classes::{self, ClassSpec, completed};
use super::engine::{Engine, Media, dispatcher};
use super::policy_text::PolicyText;
use crate::clock::now_ns;
use crate::engine::alarm::NEVER;

/// Most requests that a head can be given at once: a loop device has no more.
const MOST_DEPTH: u32 = 128;
/// A beginning farther away than this was not meant: until then the models would stand still.
const MOST_AHEAD_NS: u64 = 60_000_000_000;

/// All that decides what a server with a policy does with the same requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arrangement {
    /// A policy and its settings: `NAME key=value ...`.
    pub policy: String,
    /// Requests that each head is given at once.
    pub queue_depth: u32,
    /// Of what models draw at random, head n with n more; for disks whose profile says `rotation: random`.
    pub seed: u64,
    /// The classes. When it is read back, the one that takes the rest is among them.
    pub classes: Vec<ClassSpec>,
}

impl Arrangement {
    /// As it is read back: with the class that takes the rest.
    #[must_use]
    pub fn completed(&self) -> Self {
        Arrangement { classes: completed(&self.classes), ..self.clone() }
    }
}

impl Engine {
    /// Puts policy, classes and queue depth in place of those that are there, models and accounts in their first state.
    ///
    /// # Errors
    /// What is wrong with it, or requests are under way; nothing has changed then.
    pub fn arrange(&self, wanted: &Arrangement) -> Result<(), String> {
        let size_mib = self.setup.size_bytes >> 20;
        classes::check(&wanted.classes, Some(size_mib))
            .map_err(|problem| format!("classes.{} {}", problem.field, problem.message))?;
        if !(1..=MOST_DEPTH).contains(&wanted.queue_depth) {
            return Err(format!("queue_depth is {}; it must be from 1 to {MOST_DEPTH}", wanted.queue_depth));
        }
        let text = PolicyText::parse(&wanted.policy).map_err(|error| format!("the policy {error}"))?;
        let all = completed(&wanted.classes);
        let mut guard = self.lock();
        let inner = &mut *guard;
        nothing_is_under_way(inner.dispatcher.outstanding())?;
        // Also where another is in place as long as the models are off: what is refused, is refused here.
        let fresh = dispatcher(&self.setup, &text, &all, wanted.queue_depth, wanted.seed)?;
        *inner.tally.classes_mut() = all.iter().map(Counts::new).collect();
        inner.attribution = Attribution::new(&all);
        wanted.policy.clone_into(&mut inner.policy_text);
        inner.policy = text;
        (inner.queue_depth, inner.seed) = (wanted.queue_depth, wanted.seed);
        inner.pending.clear();
        inner.unused.clear();
        // A real device is asked in order of arrival as long as the policy is off.
        let is_on = self.timed.load(Ordering::Relaxed);
        let plain = PolicyText::parse("fcfs").ok().filter(|_| !is_on && self.is_real());
        inner.dispatcher = match plain {
            Some(plain) => dispatcher(&self.setup, &plain, &all, wanted.queue_depth, wanted.seed)?,
            None => fresh,
        };
        Ok(())
    }

    /// What is in force.
    pub fn arrangement(&self) -> Arrangement {
        let inner = self.lock();
        Arrangement {
            policy: inner.policy_text.clone(),
            queue_depth: inner.queue_depth,
            seed: inner.seed,
            classes: inner.tally.specs().cloned().collect(),
        }
    }

    /// Makes an instant of CLOCK_MONOTONIC the models' and policies' time 0, at which they are in their first state, as in
    /// virtual time: rotation, and what policies do by the clock, then agree with it. Classes are counted anew.
    ///
    /// # Errors
    /// They are off, requests are under way, or the instant is not near; nothing has changed then.
    pub fn begin_at(&self, at_ns: u64) -> Result<(), String> {
        let mut guard = self.lock();
        let inner = &mut *guard;
        if !self.timed.load(Ordering::Relaxed) {
            return Err("models and policies are off; switch timing on first".to_owned());
        }
        let (earliest_ns, latest_ns) = (self.started_ns, now_ns().saturating_add(MOST_AHEAD_NS));
        if !(earliest_ns..=latest_ns).contains(&at_ns) {
            return Err(format!(
                "at_ns is {at_ns}; it must be an instant of CLOCK_MONOTONIC from {earliest_ns} to {latest_ns}"
            ));
        }
        nothing_is_under_way(inner.dispatcher.outstanding())?;
        let specs: Vec<ClassSpec> = inner.tally.specs().cloned().collect();
        inner.dispatcher = dispatcher(&self.setup, &inner.policy, &specs, inner.queue_depth, inner.seed)?;
        inner.tally.reset_classes();
        // What it knows of processes has times of the clock until now.
        inner.attribution = Attribution::new(&specs);
        inner.pending.clear();
        inner.unused.clear();
        self.epoch_ns.store(at_ns, Ordering::Release);
        // A later time needs no ring.
        let _ = self.alarm.set(NEVER);
        Ok(())
    }

    fn is_real(&self) -> bool {
        matches!(self.setup.media, Media::Direct(_))
    }
}

fn nothing_is_under_way(outstanding: usize) -> Result<(), String> {
    match outstanding {
        0 => Ok(()),
        count => Err(format!("{count} requests are under way; do it while nobody asks")),
    }
}
