//! Walk over a transition table.

use rand::{Rng, RngExt};

use super::table::{Arcs, LARGEST_THRESHOLD, Next, Transitions};

/// Result of a step of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moved {
    /// To another state, or to the same state by its own arc.
    To,
    /// Back to the previous state.
    Back,
    /// No move: the sum of the arcs was not reached, and the same interaction follows again.
    Stayed,
    /// Out of the site.
    End,
}

/// Position of a client in a table, with its path.
#[derive(Debug, Clone)]
pub struct Walk {
    state: u16,
    history: Vec<u16>,
}

impl Walk {
    /// At the beginning of a session.
    pub fn begin(table: &Transitions) -> Self {
        Walk { state: table.initial(), history: Vec::new() }
    }

    /// Current state; after [`Moved::End`] the last one.
    pub fn state(&self) -> u16 {
        self.state
    }

    /// Takes a step.
    ///
    /// The way back is kept as the clients of RUBiS and RUBBoS keep it: a state from which one cannot go back clears it,
    /// any other adds the state that one came from, also where that is the same state.
    pub fn step(&mut self, table: &Transitions, rng: &mut impl Rng) -> Moved {
        let next = match &table.arcs {
            Arcs::Thresholds(rows) => {
                let drawn = rng.random_range(1..=LARGEST_THRESHOLD);
                let arc = rows[usize::from(self.state)].iter().find(|(_, threshold)| *threshold >= drawn);
                arc.map(|(to, _)| Next::State(*to))
            }
            Arcs::Probabilities(rows) => {
                let drawn: f32 = rng.random();
                let mut sum = 0.0;
                let arc = rows[usize::from(self.state)].iter().find(|(_, share)| {
                    sum += share;
                    drawn < sum
                });
                arc.map(|(to, _)| *to)
            }
        };
        match next {
            Some(Next::End) => Moved::End,
            Some(Next::Back) => match self.history.pop() {
                Some(state) => {
                    self.state = state;
                    Moved::Back
                }
                // A state that can go back is entered from another, so a return is always possible.
                None => Moved::Stayed,
            },
            Some(Next::State(state)) => {
                self.enter(table, state);
                Moved::To
            }
            None => {
                self.enter(table, self.state);
                Moved::Stayed
            }
        }
    }

    fn enter(&mut self, table: &Transitions, state: u16) {
        if table.can_go_back(state) {
            self.history.push(self.state);
        } else {
            self.history.clear();
        }
        self.state = state;
    }
}
