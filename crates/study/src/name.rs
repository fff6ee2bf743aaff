//! Names that become part of a path: of runs, studies, classes, devices and services.
//!
//! They are checked where a run is parsed. No name in a plan or in `run.json` can lead out of its folder.

use serde::{Deserialize, Deserializer, de};
use weir_specs::name_problem;

/// Reads a name, with an error that names the field.
fn plain<'de, D: Deserializer<'de>>(field: &str, from: D) -> Result<String, D::Error> {
    let name = String::deserialize(from)?;
    match name_problem(&name) {
        None => Ok(name),
        Some(problem) => Err(de::Error::custom(format!(
            "{field}: {problem}. Plan the study again: weir plan STUDY --json"
        ))),
    }
}

/// Functions for `#[serde(deserialize_with)]`, each with the name of its field.
macro_rules! fields {
    ($($function:ident: $field:literal;)+) => {$(
        pub(crate) fn $function<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
            plain($field, from)
        }
    )+};
}

fields! {
    id: "id";
    study: "study";
    class: "classes.name";
    device: "devices.name";
    asked_device: "classes.device";
    service: "services.name";
}
