//! Options of a file system that a study may set: an entry of `options` in `testbeds/filesystems/NAME.yml` each.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use weir_specs::Kind;

/// The field of file system options in `factors` and `hold`.
pub(crate) const FIELD: &str = "filesystem_options";
/// Prefix of the name of a factor that is a file system option.
pub(crate) const PREFIX: &str = "filesystem_options.";

/// An option of a file system: how it is set and read back.
///
/// It is set in exactly one of three ways. With `default`: its value replaces `{NAME}` in the texts of the client or of
/// the servers. With `set`: a command on the client sets it before files are written. With `by`: a role of the playbook
/// sets it between runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FsOption {
    /// Type of its values.
    #[serde(rename = "type")]
    pub kind: Kind,
    /// Value of `{NAME}` if a study does not set it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// Whether `{NAME}` is a placeholder of the servers, which are restarted when it changes. A placeholder of the client
    /// if absent.
    #[serde(default)]
    pub of_servers: bool,
    /// Command that sets it. Placeholders: `{value}`, `{point}` (where it is mounted) and `{files}` (the run's folder).
    #[serde(default)]
    pub set: Vec<String>,
    /// The role that sets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<ByRole>,
    /// Command on the client that prints the value in force, with `{point}` and `{files}`. May be absent with `by` and
    /// `of_servers`, which check the value themselves.
    #[serde(default)]
    pub read: Vec<String>,
    /// Whether the command prints other words too, separated by commas or blanks. Each part of the value must be among
    /// them.
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
    /// The variable for the value.
    pub variable: String,
    /// Whether it runs on the servers of the file system (`weir_filesystem_servers` in the inventory). On the client if
    /// absent.
    #[serde(default)]
    pub on_servers: bool,
}

/// A level as text. `None` if it is a list, a map or null.
pub(crate) fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(yes) => Some(yes.to_string()),
        _ => None,
    }
}

/// Whether a factor is a file system option, which has no counterpart in virtual time.
pub(crate) fn is_one(factor: &str) -> bool {
    factor.starts_with(PREFIX)
}
