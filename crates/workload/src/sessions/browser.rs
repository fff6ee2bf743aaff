//! Client of a web site: an endless sequence of sessions.

use std::path::Path;
use std::sync::Arc;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use weir_specs::{Problem, Problems};

use super::spec::{Begin, SessionWorkload, Sessions};
use super::table::{Next, Transitions};
use super::walk::{Moved, Walk};
use crate::seed::{Purpose, generator};

const NS_PER_MS: i64 = 1_000_000;

/// Shared data of all clients of a class.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionModel {
    sessions: Sessions,
    table: Transitions,
}

impl SessionModel {
    /// Reads the workload's table; its path is relative to `folder`.
    ///
    /// # Errors
    /// The table cannot be read, or does not suit the workload.
    pub fn open(workload: &SessionWorkload, folder: &Path) -> Result<Arc<Self>, Problems> {
        let path = folder.join(&workload.sessions.transitions);
        let table = Transitions::read(&path)?;
        let problem = |(field, message)| Problem {
            file: path.clone(),
            line: None,
            field: format!("sessions.{field} of workload {}", workload.name),
            message,
        };
        let problems = workload.sessions.problems(&table).into_iter().map(problem).collect();
        Problems(problems).or(Arc::new(SessionModel { sessions: workload.sessions.clone(), table }))
    }

    /// The table that is walked.
    pub fn table(&self) -> &Transitions {
        &self.table
    }
}

/// An interaction of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The client's session, from 0.
    pub session: u32,
    /// The interaction within the session, from 0.
    pub step: u32,
    /// State of the table.
    pub state: u16,
    /// Whether the client went back.
    pub back: bool,
    /// Pause since the answer to the last interaction.
    pub think_ns: i64,
    /// Request time: time of the last answer plus the pause.
    pub intended_ns: i64,
}

/// One client.
///
/// It has its own random numbers, independent of other clients and of the order of calls.
pub struct Browser {
    model: Arc<SessionModel>,
    rng: ChaCha8Rng,
    walk: Walk,
    session: u32,
    /// Interactions of this session so far; 0 before the first.
    steps: u32,
    /// Time from which the session may end.
    until_ns: i64,
}

impl Browser {
    /// Client `number` of `class` in a run with this seed.
    pub fn new(model: &Arc<SessionModel>, class: &str, seed: u64, number: u32) -> Self {
        Browser {
            walk: Walk::begin(&model.table),
            model: Arc::clone(model),
            rng: generator(seed, class, Purpose::Client(number)),
            session: 0,
            steps: 0,
            until_ns: i64::MAX,
        }
    }

    /// The next interaction after the answer to the last one at this instant (initially: the start of the client).
    ///
    /// As in the original programs, a client completes the current pause before it ends a session and begins the next.
    pub fn next(&mut self, answered_ns: i64) -> Step {
        let mut think_ns = 0;
        let mut back = false;
        if self.steps > 0 {
            let moved = self.walk.step(&self.model.table, &mut self.rng);
            back = moved == Moved::Back;
            let next = match moved {
                Moved::To | Moved::Stayed => Next::State(self.walk.state()),
                Moved::Back => Next::Back,
                Moved::End => Next::End,
            };
            think_ns = self.model.sessions.think.draw_ns(&self.model.table, next, &mut self.rng);
            let home = self.walk.state() == self.model.table.initial();
            let over = moved == Moved::End
                || Some(self.steps) == self.model.sessions.most_interactions
                || (home && answered_ns.saturating_add(think_ns) >= self.until_ns);
            if over {
                self.session += 1;
                self.steps = 0;
            }
        }
        if self.steps == 0 {
            think_ns += self.begin(answered_ns.saturating_add(think_ns));
            back = false;
        }
        self.steps += 1;
        Step {
            session: self.session,
            step: self.steps - 1,
            state: self.walk.state(),
            back,
            think_ns,
            intended_ns: answered_ns.saturating_add(think_ns),
        }
    }

    /// Begins a session; returns the pause before its first interaction, in ns.
    fn begin(&mut self, now_ns: i64) -> i64 {
        let sessions = &self.model.sessions;
        self.walk = Walk::begin(&self.model.table);
        self.until_ns = match &sessions.lasts {
            Some(lasts) => now_ns.saturating_add(lasts.draw_ns(&mut self.rng)),
            None => i64::MAX,
        };
        match sessions.begin {
            Begin::AtOnce => 0,
            Begin::Staggered { from_ms, to_ms } if self.session == 0 => {
                self.rng.random_range(i64::from(from_ms) * NS_PER_MS..i64::from(to_ms) * NS_PER_MS)
            }
            Begin::Staggered { .. } => {
                let home = Next::State(self.model.table.initial());
                sessions.think.draw_ns(&self.model.table, home, &mut self.rng)
            }
        }
    }
}
