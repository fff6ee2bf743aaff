//! Options of a file system that a study may set: an entry of `options` in `testbeds/filesystems/NAME.yml` each.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use weir_specs::Kind;

/// The field of a study, in `factors` and `hold`.
pub(crate) const FIELD: &str = "filesystem_options";
/// Begins the name of a factor that is one of them.
pub(crate) const PREFIX: &str = "filesystem_options.";

/// One thing of a file system that a study may set, and how it is set and read back.
///
/// Exactly one of three sets it: where it has a `default`, it stands for `{NAME}` in the texts of its client, or of its
/// servers; where it has `set`, that command does, on the client, before a file is written; where it has `by`, a role of the
/// playbook does, between runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FsOption {
    /// The values that it takes.
    #[serde(rename = "type")]
    pub kind: Kind,
    /// What stands for `{NAME}` where a study says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// Whether `{NAME}` is a placeholder of the servers, which are started anew where it changes; else of the client.
    #[serde(default)]
    pub of_servers: bool,
    /// Command that sets it. Placeholders: `{value}`, `{point}` (where it is mounted) and `{files}` (the run's folder).
    #[serde(default)]
    pub set: Vec<String>,
    /// The role that sets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<ByRole>,
    /// Command on the client that prints what is in force, with `{point}` and `{files}`; of `by` and `of_servers` it may be
    /// absent: then whoever set it has looked.
    #[serde(default)]
    pub read: Vec<String>,
    /// Whether that prints more, separated by commas or blanks, and each part of the value is to be among it.
    #[serde(default)]
    pub among: bool,
}

/// A role that sets an option.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ByRole {
    /// Its name.
    pub role: String,
    /// Its file of tasks.
    pub tasks: String,
    /// The variable that has the value.
    pub variable: String,
    /// Whether it is played on the file system's servers (`weir_filesystem_servers` in the inventory); else on the client.
    #[serde(default)]
    pub on_servers: bool,
}

/// A level as a text; `None` if it is a list, a map or nothing.
pub(crate) fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(yes) => Some(yes.to_string()),
        _ => None,
    }
}

/// Whether nothing in virtual time stands for a factor since it is one of these.
pub(crate) fn is_one(factor: &str) -> bool {
    factor.starts_with(PREFIX)
}
