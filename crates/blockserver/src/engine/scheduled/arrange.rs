//! Change of scheduler, classes and queue depth in one step, as a study does before each run.

use std::sync::atomic::Ordering;

use serde::{Deserialize, Serialize};

use super::attribution::Attribution;
use super::class_stats::Counts;
use super::classes::{self, ClassSpec, completed};
use super::engine::{Engine, Media, dispatcher};
use super::policy_text::PolicyText;
use crate::clock::now_ns;
use crate::engine::alarm::NEVER;

/// Maximum queue depth of a head: that of a loop device.
const MOST_DEPTH: u32 = 128;
/// Maximum distance of an epoch; models pause until the epoch.
const MOST_AHEAD_NS: u64 = 60_000_000_000;

/// Arrangement of a server with a scheduler: everything that determines its order of the same requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arrangement {
    /// A policy and its settings: `NAME key=value ...`.
    pub policy: String,
    /// Requests that each head has at the same time.
    pub queue_depth: u32,
    /// Seed of the models' random numbers (plus n for head n); for disks whose profile has `rotation: random`.
    pub seed: u64,
    /// The classes. When read back, they include the class of unattributed requests.
    pub classes: Vec<ClassSpec>,
}

impl Arrangement {
    /// As read back: with the class of unattributed requests.
    #[must_use]
    pub fn completed(&self) -> Self {
        Arrangement { classes: completed(&self.classes), ..self.clone() }
    }
}

impl Engine {
    /// Replaces scheduler, classes and queue depth, and resets models and statistics.
    ///
    /// # Errors
    /// The arrangement is wrong, or requests are outstanding; nothing has changed then.
    pub fn arrange(&self, wanted: &Arrangement) -> Result<(), String> {
        let size_mib = self.setup.size_bytes >> 20;
        classes::check(&wanted.classes, Some(size_mib))
            .map_err(|problem| format!("classes.{} {}", problem.field, problem.message))?;
        if !(1..=MOST_DEPTH).contains(&wanted.queue_depth) {
            return Err(format!("queue_depth is {} (expected 1 to {MOST_DEPTH})", wanted.queue_depth));
        }
        let text = PolicyText::parse(&wanted.policy).map_err(|error| format!("the policy {error}"))?;
        let all = completed(&wanted.classes);
        let mut guard = self.lock();
        let inner = &mut *guard;
        nothing_is_under_way(inner.dispatcher.outstanding())?;
        // Checked also while service times are off: errors are reported here.
        let fresh = dispatcher(&self.setup, &text, &all, wanted.queue_depth, wanted.seed)?;
        *inner.tally.classes_mut() = all.iter().map(Counts::new).collect();
        inner.attribution = Attribution::new(&all);
        wanted.policy.clone_into(&mut inner.policy_text);
        inner.policy = text;
        (inner.queue_depth, inner.seed) = (wanted.queue_depth, wanted.seed);
        inner.pending.clear();
        inner.unused.clear();
        // While schedulers are off, a real device gets requests in order of arrival.
        let is_on = self.timed.load(Ordering::Relaxed);
        let plain = PolicyText::parse("fcfs").ok().filter(|_| !is_on && self.is_real());
        inner.dispatcher = match plain {
            Some(plain) => dispatcher(&self.setup, &plain, &all, wanted.queue_depth, wanted.seed)?,
            None => fresh,
        };
        Ok(())
    }

    /// Active scheduler, classes and queue depth.
    pub fn arrangement(&self) -> Arrangement {
        let inner = self.lock();
        Arrangement {
            policy: inner.policy_text.clone(),
            queue_depth: inner.queue_depth,
            seed: inner.seed,
            classes: inner.tally.specs().cloned().collect(),
        }
    }

    /// Sets time 0 of models and schedulers to an instant of CLOCK_MONOTONIC, with the initial state as in virtual time: rotation
    /// and time-based scheduling then agree with it. Class statistics are reset.
    ///
    /// # Errors
    /// Service times are off, requests are outstanding, or the instant is not near; nothing has changed then.
    pub fn begin_at(&self, at_ns: u64) -> Result<(), String> {
        let mut guard = self.lock();
        let inner = &mut *guard;
        if !self.timed.load(Ordering::Relaxed) {
            return Err("models and schedulers are off. Turn timing on first".to_owned());
        }
        let (earliest_ns, latest_ns) = (self.started_ns, now_ns().saturating_add(MOST_AHEAD_NS));
        if !(earliest_ns..=latest_ns).contains(&at_ns) {
            return Err(format!(
                "at_ns is {at_ns} (expected an instant of CLOCK_MONOTONIC from {earliest_ns} to {latest_ns})"
            ));
        }
        nothing_is_under_way(inner.dispatcher.outstanding())?;
        let specs: Vec<ClassSpec> = inner.tally.specs().cloned().collect();
        inner.dispatcher = dispatcher(&self.setup, &inner.policy, &specs, inner.queue_depth, inner.seed)?;
        inner.tally.reset_classes();
        // Its knowledge of processes has former times.
        inner.attribution = Attribution::new(&specs);
        inner.pending.clear();
        inner.unused.clear();
        self.epoch_ns.store(at_ns, Ordering::Release);
        // A later instant needs no ring.
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
        count => Err(format!("{count} requests are outstanding. Arrange the server while it is idle")),
    }
}
