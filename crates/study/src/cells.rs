//! Cells of a study: every combination of the levels of its factors.

use serde_json::{Map, Value};

use crate::fs_option;
use crate::spec::{Settings, Study};

/// Name of the factor `variant`.
pub(crate) const VARIANT: &str = "variant";
/// Name of the factor of a study with both testbeds.
pub(crate) const TESTBED: &str = "testbed";
/// Prefix of the name of a factor that is the number of clients of one class.
const CLIENTS_OF: &str = "clients.";
/// The field of `factors` that has one factor for each class.
const CLIENT_COUNTS: &str = "client_counts";
/// Prefix of the name of a factor that is a parameter of admission control.
pub(crate) const ADMISSION: &str = "admission.";

/// Factors with their levels, in the order of the fields of [`Factors`](crate::Factors).
pub(crate) fn levels_by_factor(study: &Study) -> Vec<(String, Vec<Value>)> {
    match serde_json::to_value(&study.factors) {
        Ok(Value::Object(factors)) => factors
            .into_iter()
            .flat_map(|(name, levels)| match levels {
                Value::Object(variants) if name == VARIANT => {
                    vec![(name, variants.into_iter().map(|(name, _)| Value::String(name)).collect())]
                }
                Value::Array(levels) => vec![(name, levels)],
                // One factor for each class, each option, or each parameter.
                Value::Object(parts) => {
                    let prefix = match name.as_str() {
                        CLIENT_COUNTS => CLIENTS_OF,
                        fs_option::FIELD => fs_option::PREFIX,
                        _ => ADMISSION,
                    };
                    parts
                        .into_iter()
                        .filter_map(|(part, levels)| {
                            Some((format!("{prefix}{part}"), levels.as_array()?.clone()))
                        })
                        .collect()
                }
                _ => Vec::new(),
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// Every combination of one level of each factor.
pub(crate) fn cross(factors: &[(String, Vec<Value>)]) -> Vec<Map<String, Value>> {
    factors.iter().fold(vec![Map::new()], |cells, (name, levels)| {
        let with = |cell: &Map<String, Value>, level: &Value| {
            let mut cell = cell.clone();
            cell.insert(name.clone(), level.clone());
            cell
        };
        cells.iter().flat_map(|cell| levels.iter().map(move |level| with(cell, level))).collect()
    })
}

/// Whether an entry of `exclude` leaves a cell out.
pub(crate) fn is_excluded(study: &Study, cell: &Map<String, Value>) -> bool {
    study
        .exclude
        .iter()
        .any(|entry| entry.iter().all(|(name, level)| cell.get(name).is_some_and(|at| same(at, level))))
}

/// Whether two levels are equal. 1 and 1.0 are.
pub(crate) fn same(a: &Value, b: &Value) -> bool {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    }
}

/// The held settings with the levels of a cell in their place.
pub(crate) fn apply(hold: &Settings, cell: &Map<String, Value>) -> Settings {
    let mut value = serde_json::to_value(hold).unwrap_or_default();
    if let Value::Object(fields) = &mut value {
        for (name, level) in cell.iter().filter(|(name, _)| *name != VARIANT && *name != TESTBED) {
            if let Some(class) = name.strip_prefix(CLIENTS_OF) {
                fields["clients"][class] = level.clone();
            } else if let Some(option) = name.strip_prefix(fs_option::PREFIX) {
                let options = fields.entry(fs_option::FIELD).or_insert_with(|| Value::Object(Map::new()));
                options[option] = level.clone();
            } else if let Some(parameter) = name.strip_prefix(ADMISSION) {
                // Absent parameters have their defaults.
                let parameters = fields.entry("admission").or_insert_with(|| Value::Object(Map::new()));
                parameters[parameter] = level.clone();
            } else {
                fields.insert(name.clone(), level.clone());
            }
        }
    }
    // The levels have the types of the fields: this cannot fail on a checked study.
    serde_json::from_value(value).unwrap_or_else(|_| hold.clone())
}

/// The settings of each cell that is not excluded.
pub(crate) fn settings_of_cells(study: &Study) -> impl Iterator<Item = Settings> {
    let cells = cross(&levels_by_factor(study)).into_iter().filter(|cell| !is_excluded(study, cell));
    cells.map(|cell| apply(&study.hold, &cell))
}
