//! Interactions of a class, merged over its clients.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use weir_records::Interaction;

use super::browser::{Browser, SessionModel, Step};
use crate::stream::StreamOptions;

/// The interactions of a class in order of intended time, as if each were answered after the same time.
///
/// The same model and options give the same interactions. Memory is bounded by the number of clients. With real answers
/// use a [`Browser`] for each client instead.
pub struct SessionStream {
    model: Arc<SessionModel>,
    options: StreamOptions,
    class: Arc<str>,
    response_ns: i64,
    browsers: Vec<Browser>,
    due: BinaryHeap<Reverse<(i64, u32, Pending)>>,
    next_interaction: u64,
}

/// A pending step; client numbers in the heap are unique, so the step itself is never compared.
struct Pending(Step);

impl PartialEq for Pending {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Pending {}

impl PartialOrd for Pending {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Pending {
    fn cmp(&self, _: &Self) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}

impl SessionStream {
    /// Begins a stream in which every answer takes `response_ns`. The folder in `options` is not used.
    pub fn new(model: &Arc<SessionModel>, options: StreamOptions, response_ns: i64) -> Self {
        let mut browsers: Vec<Browser> = (0..options.clients)
            .map(|number| Browser::new(model, &options.class, options.seed, number))
            .collect();
        let due = browsers.iter_mut().zip(0..).map(|(browser, number)| {
            let step = browser.next(0);
            Reverse((step.intended_ns, number, Pending(step)))
        });
        SessionStream {
            model: Arc::clone(model),
            due: due.collect(),
            class: options.class.as_str().into(),
            response_ns,
            browsers,
            options,
            next_interaction: 0,
        }
    }
}

impl Iterator for SessionStream {
    type Item = Interaction;

    fn next(&mut self) -> Option<Interaction> {
        let Reverse((intended_ns, number, Pending(step))) = self.due.pop()?;
        if intended_ns >= self.options.duration_ns {
            // Every other client is due later still.
            self.due.clear();
            return None;
        }
        let following = self.browsers[number as usize].next(intended_ns.saturating_add(self.response_ns));
        self.due.push(Reverse((following.intended_ns, number, Pending(following))));
        self.next_interaction += 1;
        Some(Interaction {
            interaction: self.next_interaction - 1,
            class: Arc::clone(&self.class),
            client: number,
            session: step.session,
            step: step.step,
            page: Arc::clone(&self.model.table().states()[usize::from(step.state)]),
            back: step.back,
            think_ns: step.think_ns,
            intended_ns,
            warmup: intended_ns < self.options.warmup_ns,
        })
    }
}
