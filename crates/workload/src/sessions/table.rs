//! Transition tables: `workloads/tables/NAME.yml`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use weir_specs::{Document, Problem, Problems, one_of};

use super::original;

/// The name of going back in a table of probabilities.
pub(super) const BACK: &str = "Back";
/// The name of the end of a session in a table of probabilities.
pub(super) const END: &str = "End";
/// Thresholds are compared with a whole number drawn from 1 to this (TPC-W 5.2.2).
pub(super) const LARGEST_THRESHOLD: u16 = 9999;
/// Sites have dozens of kinds of interactions; numbers of states are `u16`.
const MOST_STATES: usize = 1000;

/// Target of a transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Next {
    /// To a state, by its number.
    State(u16),
    /// To the previous state.
    Back,
    /// Out of the site.
    End,
}

/// Transitions between interactions, with probabilities.
///
/// There are two kinds, each with the walk of its original programs:
///
/// * *thresholds* (TPC-W 5.2.2): a whole number from 1 to 9999 is drawn; the first arc whose threshold is not below it is
///   taken;
/// * *probabilities* (RUBiS, RUBBoS): U is drawn from [0, 1); arcs are summed up in the order of the states, then `Back`
///   and `End`; the first is taken at which U is below the sum. Sums are not 1, by design: above 1 the last arcs are cut
///   off, below 1 the client may keep its state. Sums are 32-bit floats, as in the original.
#[derive(Debug, Clone, PartialEq)]
pub struct Transitions {
    name: String,
    states: Vec<Arc<str>>,
    initial: u16,
    pub(super) arcs: Arcs,
    /// In ms, by state, then `Back` and `End`.
    waiting_ms: Vec<Option<u32>>,
}

/// The arcs out of each state, in the order in which they are tried.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Arcs {
    Thresholds(Vec<Vec<(u16, u16)>>),
    Probabilities(Vec<Vec<(Next, f32)>>),
}

/// A transition table: `workloads/tables/NAME.yml`. It has `thresholds` or `probabilities`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct File {
    /// Its name: the file's name without `.yml`.
    name: String,
    /// Description in one line.
    #[serde(rename = "description")]
    _description: String,
    /// Where its numbers come from.
    #[serde(rename = "source")]
    _source: String,
    /// Terms of use.
    #[serde(rename = "licence")]
    _licence: String,
    /// Citation.
    #[serde(rename = "citation")]
    _citation: String,
    /// The interaction that begins a session.
    initial: String,
    /// All interactions.
    states: Vec<String>,
    /// By interaction and next interaction: the threshold, from 1 to 9999 (TPC-W 5.2.2).
    #[serde(default)]
    thresholds: Option<BTreeMap<String, BTreeMap<String, u16>>>,
    /// By interaction and next interaction, `Back` or `End`: the probability.
    #[serde(default)]
    probabilities: Option<BTreeMap<String, BTreeMap<String, f32>>>,
    /// Waiting time before each interaction, in ms.
    #[serde(default)]
    waiting_ms: BTreeMap<String, u32>,
}

impl JsonSchema for Transitions {
    fn schema_name() -> Cow<'static, str> {
        "Transitions".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        File::json_schema(generator)
    }
}

/// A table in any form, by names.
pub(super) struct Parts {
    pub(super) name: String,
    pub(super) initial: String,
    pub(super) states: Vec<String>,
    pub(super) arcs: NamedArcs,
    pub(super) waiting_ms: BTreeMap<String, u32>,
}

/// Arcs by names: from, then to.
pub(super) enum NamedArcs {
    Thresholds(BTreeMap<String, BTreeMap<String, u16>>),
    Probabilities(BTreeMap<String, BTreeMap<String, f32>>),
}

impl Transitions {
    /// Reads a table: YAML, or a RUBiS or RUBBoS client's own file where it ends in `.txt`.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn read(path: &Path) -> Result<Self, Problems> {
        if path.extension().is_some_and(|extension| extension == "txt") {
            let problem =
                |line, message| Problem { file: path.to_owned(), line, field: String::new(), message };
            let parts = original::read(path).map_err(|(line, message)| problem(line, message))?;
            return Transitions::build(parts).map_err(|found| {
                Problems(found.into_iter().map(|(_, message)| problem(None, message)).collect())
            });
        }
        let document = Document::read(path)?;
        let file: File = document.parse()?;
        let arcs = match (file.thresholds, file.probabilities) {
            (Some(thresholds), None) => NamedArcs::Thresholds(thresholds),
            (None, Some(probabilities)) => NamedArcs::Probabilities(probabilities),
            _ => return Err(document.problem("", "give either thresholds or probabilities").into()),
        };
        let parts = Parts {
            name: file.name,
            initial: file.initial,
            states: file.states,
            arcs,
            waiting_ms: file.waiting_ms,
        };
        Transitions::build(parts).map_err(|found| {
            Problems(found.into_iter().map(|(field, message)| document.problem(field, message)).collect())
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Names of the states, by number.
    pub fn states(&self) -> &[Arc<str>] {
        &self.states
    }

    /// The state in which a session begins.
    pub fn initial(&self) -> u16 {
        self.initial
    }

    /// Whether a walk of it can end the session.
    pub fn ends(&self) -> bool {
        self.reached().iter().any(|from| self.targets(*from).any(|next| next == Next::End))
    }

    /// Probability of an arc in the table.
    ///
    /// For thresholds it is exact. For probabilities it is the value in the table, even if a walk in the order of the
    /// table cuts it off.
    pub fn probability(&self, from: u16, to: Next) -> f64 {
        match &self.arcs {
            Arcs::Thresholds(rows) => {
                let mut below = 0;
                for (state, threshold) in rows.get(usize::from(from)).into_iter().flatten() {
                    if Next::State(*state) == to {
                        return f64::from(threshold - below) / f64::from(LARGEST_THRESHOLD);
                    }
                    below = *threshold;
                }
                0.0
            }
            Arcs::Probabilities(rows) => {
                let row = rows.get(usize::from(from)).into_iter().flatten();
                row.filter(|(next, _)| *next == to).map(|(_, share)| f64::from(*share)).sum()
            }
        }
    }

    /// Waiting time before `next`, in ms, if the table has one.
    pub fn waiting_ms(&self, next: Next) -> Option<u32> {
        let place = match next {
            Next::State(state) => usize::from(state),
            Next::Back => self.states.len(),
            Next::End => self.states.len() + 1,
        };
        self.waiting_ms.get(place).copied().flatten()
    }

    /// The first state that can be reached and has no waiting time above 0.
    pub(super) fn without_waiting_time(&self) -> Option<&str> {
        let without = |state: &&u16| self.waiting_ms(Next::State(**state)).unwrap_or(0) == 0;
        self.reached().iter().find(without).map(|state| &*self.states[usize::from(*state)])
    }

    /// Whether a client can go back from a state.
    pub(super) fn can_go_back(&self, from: u16) -> bool {
        match &self.arcs {
            Arcs::Thresholds(_) => false,
            Arcs::Probabilities(rows) => {
                rows[usize::from(from)].iter().any(|(next, share)| *next == Next::Back && *share > 0.0)
            }
        }
    }

    /// Targets of the arcs out of a state.
    fn targets(&self, from: u16) -> Box<dyn Iterator<Item = Next> + '_> {
        match &self.arcs {
            Arcs::Thresholds(rows) => {
                Box::new(rows[usize::from(from)].iter().map(|(to, _)| Next::State(*to)))
            }
            Arcs::Probabilities(rows) => {
                Box::new(rows[usize::from(from)].iter().filter(|(_, share)| *share > 0.0).map(|(to, _)| *to))
            }
        }
    }

    /// The states that can be reached from the initial one, in the order in which they are found.
    fn reached(&self) -> Vec<u16> {
        let mut reached = vec![self.initial];
        let mut at = 0;
        while at < reached.len() {
            for next in self.targets(reached[at]) {
                if let Next::State(state) = next
                    && !reached.contains(&state)
                {
                    reached.push(state);
                }
            }
            at += 1;
        }
        reached
    }

    /// Numbers for names, and all that is wrong: field and message.
    pub(super) fn build(parts: Parts) -> Result<Self, Vec<(String, String)>> {
        let mut problems: Vec<(String, String)> = Vec::new();
        let names = &parts.states;
        if names.is_empty() || names.len() > MOST_STATES {
            let message = format!("there are {} states; a table has 1 to {MOST_STATES}", names.len());
            return Err(vec![("states".into(), message)]);
        }
        for (index, name) in names.iter().enumerate() {
            if names[..index].contains(name) || [BACK, END].contains(&name.as_str()) {
                problems.push((format!("states.{index}"), format!("`{name}` is taken: choose another name")));
            }
        }
        // At most MOST_STATES, so that a number fits.
        let number = |name: &str| names.iter().position(|known| known == name).map(|place| place as u16);
        let known = || names.iter().map(String::as_str);
        let mut from = |field: &str, name: &str| {
            let found = number(name);
            if found.is_none() {
                problems.push((format!("{field}.{name}"), one_of("state", name, known())));
            }
            found.map(usize::from)
        };
        let mut waiting_ms = vec![None; names.len() + 2];
        // `Back` and `End` have no waiting time unless the table has one.
        waiting_ms[names.len()..].fill(Some(0));
        for (name, ms) in &parts.waiting_ms {
            let place = match name.as_str() {
                BACK => Some(names.len()),
                END => Some(names.len() + 1),
                _ => from("waiting_ms", name),
            };
            if let Some(place) = place {
                waiting_ms[place] = Some(*ms);
            }
        }
        let arcs = match parts.arcs {
            NamedArcs::Thresholds(rows) => {
                let mut arcs = vec![Vec::new(); names.len()];
                for (name, row) in &rows {
                    let Some(place) = from("thresholds", name) else { continue };
                    for (to, threshold) in row {
                        if let Some(to) = from(&format!("thresholds.{name}"), to) {
                            arcs[place].push((to as u16, *threshold));
                        }
                    }
                    arcs[place].sort_unstable();
                }
                Arcs::Thresholds(arcs)
            }
            NamedArcs::Probabilities(rows) => {
                let mut arcs = vec![Vec::new(); names.len()];
                for (name, row) in &rows {
                    let Some(place) = from("probabilities", name) else { continue };
                    for (to, share) in row {
                        let next = match to.as_str() {
                            BACK => Some(Next::Back),
                            END => Some(Next::End),
                            _ => from(&format!("probabilities.{name}"), to).map(|to| Next::State(to as u16)),
                        };
                        arcs[place].extend(next.map(|next| (next, *share)));
                    }
                    // States come first, then Back, then End: the order of `Next`.
                    arcs[place].sort_unstable_by_key(|(next, _)| *next);
                }
                Arcs::Probabilities(arcs)
            }
        };
        let Some(initial) = number(&parts.initial) else {
            problems.push(("initial".into(), one_of("state", &parts.initial, known())));
            return Err(problems);
        };
        if !problems.is_empty() {
            return Err(problems);
        }
        let states = names.iter().map(|name| Arc::from(name.as_str())).collect();
        let table = Transitions { name: parts.name, states, initial, arcs, waiting_ms };
        let problems = table.problems();
        if problems.is_empty() { Ok(table) } else { Err(problems) }
    }

    /// A problem of the numbers.
    fn problems(&self) -> Vec<(String, String)> {
        let mut problems = Vec::new();
        let name = |state: usize| &*self.states[state];
        match &self.arcs {
            Arcs::Thresholds(rows) => {
                for (from, row) in rows.iter().enumerate().filter(|(_, row)| !row.is_empty()) {
                    let rising = row.windows(2).all(|pair| pair[0].1 < pair[1].1);
                    let last = row.last().map_or(0, |arc| arc.1);
                    if row[0].1 == 0 || !rising || last != LARGEST_THRESHOLD {
                        let message = format!(
                            "must rise in the order of the states, from 1 or more to {LARGEST_THRESHOLD}; \
                             leave out what cannot happen"
                        );
                        problems.push((format!("thresholds.{}", name(from)), message));
                    }
                }
            }
            Arcs::Probabilities(rows) => {
                for (from, row) in rows.iter().enumerate() {
                    let field = format!("probabilities.{}", name(from));
                    if row.iter().any(|(_, share)| !(0.0..=1.0).contains(share)) {
                        problems.push((field.clone(), "has a probability that is not from 0 to 1".into()));
                    }
                    if from == usize::from(self.initial) && self.can_go_back(self.initial) {
                        problems
                            .push((field, "a session begins here: there is nowhere to go Back to".into()));
                    }
                }
            }
        }
        if !self.targets(self.initial).any(|next| matches!(next, Next::State(_))) {
            problems.push(("initial".into(), "leads to no other state".into()));
        }
        for state in self.reached() {
            if self.targets(state).next().is_none() {
                let name = name(usize::from(state));
                problems.push(("states".into(), format!("`{name}` can be reached and has no way out")));
            }
        }
        problems
    }
}
