//! The specification of a workload of sessions: `workloads/NAME.yml` with the field `sessions`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use weir_specs::{Document, Problems};

use crate::spec::Workload;

/// A recipe for sessions. Each client follows it on its own, one session after another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionWorkload {
    /// Its name: the file's name without `.yml`.
    pub name: String,
    /// Description in one sentence.
    pub description: String,
    /// Source of its parameters.
    pub source: String,
    /// Model of a client's walk between interactions.
    pub sessions: Sessions,
}

/// Model of a client's walk between interactions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sessions {
    /// The table of transitions, relative to the workload's own folder: a file of `workloads/tables`, or an original
    /// transition table of the RUBiS or RUBBoS client (TAB-separated, with the extension `.txt`).
    pub transitions: PathBuf,
    /// Pause between an answer and the next interaction.
    pub think: Think,
    /// How a session begins.
    #[serde(default)]
    pub begin: Begin,
    /// Minimum length of a session: after it the session ends when it would return to its first interaction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lasts: Option<Lasts>,
    /// Interactions after which a session ends in any case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_interactions: Option<u32>,
}

/// Pause between an answer and the next interaction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Think {
    /// Negative exponential: `-mean_ms * ln(U)`, U uniform in (0, 1].
    Exponential {
        /// Mean before the limit.
        mean_ms: f64,
        /// The limit.
        longest_ms: f64,
        /// What becomes of a draw beyond the limit.
        #[serde(default)]
        beyond: Beyond,
    },
    /// The table's waiting time for the next interaction.
    WaitingTimes {
        /// Factor on all of them.
        scale: f64,
    },
    /// Always the same.
    Fixed {
        /// In ms.
        ms: f64,
    },
}

/// What becomes of a draw beyond the limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Beyond {
    /// It is the limit, as TPC-W has it (clause 5.3.2.1).
    #[default]
    Longest,
    /// No pause, as in the clients of RUBiS and RUBBoS, which discard such draws. Differs in 4.5 of 100,000 pauses.
    Zero,
}

/// How a session begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Begin {
    /// Immediately after the end of the previous one; the first one at the start.
    #[default]
    AtOnce,
    /// After a pause: the first one after a uniform draw from a range (clients are not in step), later ones after a think
    /// time.
    Staggered {
        /// Least, in ms.
        from_ms: u32,
        /// Below this, in ms.
        to_ms: u32,
    },
}

/// How long a session lasts at least: negative exponential, cut off.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lasts {
    /// Mean before the limit, in seconds.
    pub mean_s: f64,
    /// The limit, in seconds.
    pub longest_s: f64,
}

/// Content of a file in `workloads`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum AnyWorkload {
    /// Requests to files or a device.
    Requests(Box<Workload>),
    /// Sessions of a web site.
    Sessions(SessionWorkload),
}

impl AnyWorkload {
    /// A checked workload of either kind from its document; one of sessions has the field `sessions`.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn from_document(document: &Document) -> Result<Self, Problems> {
        if SessionWorkload::is_in(document) {
            Ok(AnyWorkload::Sessions(SessionWorkload::from_document(document)?))
        } else {
            Ok(AnyWorkload::Requests(Box::new(Workload::from_document(document)?)))
        }
    }

    /// Its description.
    pub fn description(&self) -> &str {
        match self {
            AnyWorkload::Requests(workload) => &workload.description,
            AnyWorkload::Sessions(workload) => &workload.description,
        }
    }

    /// The workload, if it is one of requests.
    pub fn requests(&self) -> Option<&Workload> {
        match self {
            AnyWorkload::Requests(workload) => Some(workload),
            AnyWorkload::Sessions(_) => None,
        }
    }

    /// The workload, if it is one of sessions.
    pub fn sessions(&self) -> Option<&SessionWorkload> {
        match self {
            AnyWorkload::Requests(_) => None,
            AnyWorkload::Sessions(workload) => Some(workload),
        }
    }

    /// Takes away what only describes it.
    pub fn forget_words(&mut self) {
        let (description, source) = match self {
            AnyWorkload::Requests(workload) => (&mut workload.description, &mut workload.source),
            AnyWorkload::Sessions(workload) => (&mut workload.description, &mut workload.source),
        };
        description.clear();
        source.clear();
    }

    /// The file that it sends or walks, if there is one; as the specification has it, relative to its folder.
    pub fn recording(&mut self) -> Option<&mut PathBuf> {
        match self {
            AnyWorkload::Requests(workload) => workload.recording(),
            AnyWorkload::Sessions(workload) => Some(&mut workload.sessions.transitions),
        }
    }
}

impl SessionWorkload {
    /// Whether a document holds a workload of sessions.
    pub fn is_in(document: &Document) -> bool {
        document.value().get("sessions").is_some()
    }

    /// A checked workload from its document; its table is read, too.
    ///
    /// # Errors
    /// All that is wrong with it or with its table.
    pub fn from_document(document: &Document) -> Result<Self, Problems> {
        let workload: SessionWorkload = document.parse_all()?;
        let stem = document.file().file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let mut problems = Problems::default();
        if workload.name != stem {
            let message =
                format!("is `{}`, but the file is called `{stem}.yml`: make them the same", workload.name);
            problems.0.push(document.problem("name", message));
        }
        let folder = document.file().parent().unwrap_or(std::path::Path::new("."));
        match super::Transitions::read(&folder.join(&workload.sessions.transitions)) {
            Ok(table) => {
                let found = workload.sessions.problems(&table);
                problems.0.extend(
                    found
                        .into_iter()
                        .map(|(field, message)| document.problem(format!("sessions.{field}"), message)),
                );
            }
            Err(found) => problems.0.extend(found.0),
        }
        problems.or(workload)
    }

    /// This workload with some fields replaced, checked again. `folder` is what its table's path is relative to.
    ///
    /// Problems refer to `field` of `document`, which has the overrides.
    ///
    /// # Errors
    /// An override names no field of the workload, or makes it invalid.
    pub fn with_overrides(
        &self,
        overrides: &BTreeMap<String, Value>,
        folder: &Path,
        document: &Document,
        field: &str,
    ) -> Result<Self, Problems> {
        let at = |name: &str, message: String| document.problem(format!("{field}.{name}"), message);
        let mut value = serde_json::to_value(self)
            .map_err(|error| Problems::from(document.problem(field, error.to_string())))?;
        crate::apply_overrides(&mut value, overrides).map_err(|(name, message)| at(&name, message))?;
        let workload: SessionWorkload = document.parse_all_of(&value).map_err(|problems| {
            Problems(problems.0.into_iter().map(|found| at(&found.field, found.message)).collect())
        })?;
        let table = super::Transitions::read(&folder.join(&workload.sessions.transitions))?;
        let found = workload.sessions.problems(&table).into_iter();
        let placed = found.map(|(name, message)| at(&format!("sessions.{name}"), message)).collect();
        Problems(placed).or(workload)
    }
}

impl Sessions {
    /// Field and message of each problem, with the table loaded.
    pub(super) fn problems(&self, table: &super::Transitions) -> Vec<(&'static str, String)> {
        let mut problems = Vec::new();
        let mut within = |field, value: f64, low: f64, high: f64| {
            if !(low..=high).contains(&value) {
                problems.push((field, format!("is {value}; it must be from {low} to {high}")));
            }
        };
        match self.think {
            Think::Exponential { mean_ms, longest_ms, .. } => {
                within("think.exponential.mean_ms", mean_ms, 1e-3, 1e9);
                within("think.exponential.longest_ms", longest_ms, mean_ms, 1e9);
            }
            Think::WaitingTimes { scale } => within("think.waiting_times.scale", scale, 1e-3, 1e6),
            Think::Fixed { ms } => within("think.fixed.ms", ms, 1e-3, 1e9),
        }
        if let Some(lasts) = self.lasts {
            within("lasts.mean_s", lasts.mean_s, 1e-3, 1e6);
            within("lasts.longest_s", lasts.longest_s, 1e-3, 1e6);
        }
        if let (Think::WaitingTimes { .. }, Some(state)) = (&self.think, table.without_waiting_time()) {
            problems.push((
                "think",
                format!("the table gives no waiting time for {state}: add it, or use exponential"),
            ));
        }
        if let Begin::Staggered { from_ms, to_ms } = self.begin
            && from_ms >= to_ms
        {
            problems.push(("begin.staggered", format!("is from {from_ms} to {to_ms}; it must be a range")));
        }
        if self.most_interactions == Some(0) {
            problems.push(("most_interactions", "is 0; a session has at least one".into()));
        }
        if self.most_interactions.is_none() && self.lasts.is_none() && !table.ends() {
            problems.push((
                "transitions",
                "has no end, so a session would never be over: give lasts or most_interactions".into(),
            ));
        }
        problems
    }
}
