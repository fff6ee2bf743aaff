//! Settings of daemons and file systems: types and allowed values.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::name::{name_problem, quoted};
use crate::problem::one_of;
use crate::template::{Value, path_problem};

/// Suffixes of sizes and their values in bytes. GlusterFS and others write KB for KiB.
const UNITS: [(&str, u64); 4] = [("TB", 1 << 40), ("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)];
/// Suffixes of durations and their values in seconds.
const TIMES: [(&str, u64); 4] = [("s", 1), ("m", 60), ("h", 3600), ("d", 86_400)];

/// A value that a study or a user can set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// Description in one line.
    pub about: String,
    /// Type of its values.
    #[serde(rename = "type")]
    pub kind: Kind,
    /// Default value. If absent, it must be set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

/// Type of the values of a setting.
///
/// Only `text` allows characters with a meaning to a shell or to the configuration of a daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Kind {
    /// A whole number.
    Integer {
        /// Smallest value.
        from: i64,
        /// Largest value.
        to: i64,
        /// Unit, such as MiB.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unit: Option<String>,
    },
    /// A number of bytes, such as 128MB (KB, MB, GB, TB: powers of 1024).
    Size {
        /// Smallest value, in bytes.
        from_bytes: u64,
        /// Largest value, in bytes.
        to_bytes: u64,
    },
    /// A time, such as 60s (s, m, h, d).
    Duration {
        /// Smallest value, in seconds.
        from_s: u64,
        /// Largest value, in seconds.
        to_s: u64,
    },
    /// One of these words.
    OneOf(Vec<String>),
    /// `on` or `off`.
    OnOff,
    /// An IPv4 address with a prefix length, such as 10.78.0.1/24.
    Network,
    /// An IPv4 address and a port, such as 127.0.0.1:8080.
    Endpoint,
    /// Absolute path of a file of the host. A study cannot set it.
    File,
    /// Letters, digits, `-` and `_`, at most 40.
    Name,
    /// A word of the given characters.
    Word {
        /// The characters.
        characters: String,
        /// Largest number of characters.
        longest: usize,
        /// An example.
        like: String,
    },
    /// Either a single word, or parts NAME or NAME=VALUE, each at most once, with a separator between them.
    Parts {
        /// Separator of the parts: one character.
        separator: String,
        /// Single words.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        alone: Vec<String>,
        /// The parts by name, with the type of their values. null: no value.
        parts: BTreeMap<String, Option<Kind>>,
        /// An example.
        like: String,
    },
    /// A text of the given characters that a role of the playbook parses and never copies into a configuration.
    Text {
        /// The characters besides letters and digits.
        characters: String,
        /// Largest number of characters.
        longest: usize,
        /// An example.
        like: String,
    },
}

impl Kind {
    /// The problem of a value. `None` if it is valid. The text follows the name of the field.
    pub fn problem(&self, value: &str) -> Option<String> {
        if let Kind::OneOf(known) = self
            && known.iter().any(|known| known == value)
        {
            return None;
        }
        (!self.takes(value)).then(|| match self {
            Kind::OneOf(known)
                if value.len() <= 80 && value.chars().all(|c| c.is_ascii_graphic() || c == ' ') =>
            {
                one_of("value", value, known.iter().map(String::as_str))
            }
            _ => format!("is {}; it must be {}", quoted(value), self.describe()),
        })
    }

    /// A value for a configuration.
    ///
    /// # Errors
    /// The value is invalid. The text follows the name of the field.
    pub fn value(&self, text: &str) -> Result<Value, String> {
        match self.problem(text) {
            Some(problem) => Err(problem),
            None => Value::text(text),
        }
    }

    fn takes(&self, value: &str) -> bool {
        match self {
            Kind::Integer { from, to, .. } => {
                number(value).is_some_and(|number| (*from..=*to).contains(&number))
            }
            Kind::Size { from_bytes, to_bytes } => {
                with_unit(value, &UNITS).is_some_and(|bytes| (*from_bytes..=*to_bytes).contains(&bytes))
            }
            Kind::Duration { from_s, to_s } => {
                with_unit(value, &TIMES).is_some_and(|seconds| (*from_s..=*to_s).contains(&seconds))
            }
            Kind::OneOf(known) => known.iter().any(|known| known == value),
            Kind::OnOff => value == "on" || value == "off",
            Kind::Network => is_network(value),
            Kind::Endpoint => is_endpoint(value),
            Kind::File => path_problem(value).is_none(),
            Kind::Name => name_problem(value).is_none(),
            Kind::Word { characters, longest, .. } => {
                (1..=*longest).contains(&value.len())
                    && !value.starts_with('-')
                    && value.chars().all(|c| characters.contains(c))
            }
            Kind::Text { characters, longest, .. } => {
                (1..=*longest).contains(&value.len())
                    && value == value.trim()
                    && !value.starts_with('-')
                    && value.chars().all(|c| c.is_ascii_alphanumeric() || characters.contains(c))
            }
            Kind::Parts { separator, alone, parts, .. } => {
                if alone.iter().any(|word| word == value) {
                    return true;
                }
                let found: Vec<&str> = value.split(separator.as_str()).collect();
                let names: Vec<&str> = found.iter().map(|part| name_of(part)).collect();
                (0..found.len()).all(|at| is_part(found[at], parts) && !names[..at].contains(&names[at]))
            }
        }
    }

    /// Whether a study can set it. It cannot set files of the host.
    pub fn is_of_studies(&self) -> bool {
        *self != Kind::File
    }

    /// The valid values, in words.
    pub fn describe(&self) -> String {
        match self {
            Kind::Integer { from, to, unit: None } => format!("a whole number from {from} to {to}"),
            Kind::Integer { from, to, unit: Some(unit) } => {
                format!("a whole number of {unit}, without the unit, from {from} to {to}")
            }
            Kind::Size { from_bytes, to_bytes } => {
                format!("a size such as 128MB, from {from_bytes} to {to_bytes} bytes")
            }
            Kind::Duration { from_s, to_s } => format!("a time such as 60s, from {from_s} to {to_s} seconds"),
            Kind::OneOf(known) => format!("one of {}", known.join(", ")),
            Kind::OnOff => "on or off".to_owned(),
            Kind::Network => "an IPv4 address and a prefix length, such as 10.78.0.1/24".to_owned(),
            Kind::Endpoint => "an IPv4 address and a port, such as 127.0.0.1:8080".to_owned(),
            Kind::File => {
                "the absolute path of a file, of letters, digits and / . _ + @ : = - only, without `..`"
                    .to_owned()
            }
            Kind::Name => "a name of 1 to 40 letters, digits, - and _".to_owned(),
            Kind::Word { characters, longest, like } => {
                format!("1 to {longest} of the characters {characters}, such as {like}")
            }
            Kind::Text { characters, longest, like } => {
                format!("1 to {longest} letters, digits and characters of `{characters}`, such as {like}")
            }
            Kind::Parts { separator, alone, parts, like } => {
                let each = parts.iter().map(|(name, kind)| match kind {
                    None => name.clone(),
                    Some(kind) => format!("{name}=({})", kind.describe()),
                });
                let between = if separator == " " { "blanks" } else { separator };
                let all = each.collect::<Vec<_>>().join(", ");
                let words = alone.iter().map(|word| format!("{word}, or ")).collect::<String>();
                format!("{words}some of these, each once, with {between} between them, such as {like}: {all}")
            }
        }
    }

    /// The JSON Schema of its values, as texts.
    pub fn schema(&self) -> serde_json::Value {
        match self {
            Kind::OneOf(known) => json!({"type": "string", "enum": known}),
            Kind::OnOff => json!({"type": "string", "enum": ["on", "off"]}),
            Kind::Integer { .. } => {
                json!({"type": "string", "pattern": "^-?[0-9]+$", "description": self.describe()})
            }
            _ => json!({"type": "string", "description": self.describe()}),
        }
    }
}

/// A whole number in canonical form: no `+`, no leading zeros, no blanks.
fn number(text: &str) -> Option<i64> {
    let number: i64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

/// A whole number that is not negative, followed by a unit.
fn with_unit(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let (digits, factor) =
        units.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)))?;
    u64::try_from(number(digits)?).ok()?.checked_mul(factor)
}

fn is_network(text: &str) -> bool {
    text.split_once('/').is_some_and(|(address, length)| {
        address.parse::<std::net::Ipv4Addr>().is_ok()
            && number(length).is_some_and(|length| (0..=32).contains(&length))
    })
}

fn is_endpoint(text: &str) -> bool {
    text.parse::<std::net::SocketAddrV4>().is_ok_and(|found| found.port() > 0 && found.to_string() == text)
}

fn name_of(part: &str) -> &str {
    part.split_once('=').map_or(part, |(name, _)| name)
}

fn is_part(part: &str, known: &BTreeMap<String, Option<Kind>>) -> bool {
    match (part.split_once('='), known.get(name_of(part))) {
        (None, Some(None)) => true,
        (Some((_, value)), Some(Some(kind))) => kind.takes(value),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> Kind {
        serde_json::from_str(text).unwrap()
    }

    /// `(type, values that it takes, values that it does not)`.
    const CASES: [(&str, &[&str], &[&str]); 10] = [
        (
            r#"{"integer": {"from": -1, "to": 64}}"#,
            &["-1", "0", "64"],
            &["65", "-2", "four", "", "1.5", "0x10", "+1", "01", " 1", "1 ", "-0"],
        ),
        (
            r#"{"size": {"from_bytes": 0, "to_bytes": 1099511627776}}"#,
            &["0MB", "128MB", "1TB", "64KB"],
            &["2TB", "128", "MB", "-1MB", "1 MB", "1mb", "1MiB", "99999999999999999999TB", "9999999999999TB"],
        ),
        (
            r#"{"duration": {"from_s": 1, "to_s": 3600}}"#,
            &["1s", "60m", "1h"],
            &["0s", "2h", "1", "1w", "1.5s"],
        ),
        (r#"{"one_of": ["fifo", "tbf"]}"#, &["fifo", "tbf"], &["tfb", "", "fifo\n", "FIFO"]),
        (r#""on_off""#, &["on", "off"], &["On", "true", "on; server { listen 0.0.0.0:8080; }"]),
        (r#""network""#, &["10.78.0.1/24"], &["10.78.0.1", "10.78.0.1/33", "::1/64", "10.78.0.1/024", "a/1"]),
        (
            r#""endpoint""#,
            &["127.0.0.1:80"],
            &["127.0.0.1", "127.0.0.1:0", "127.0.0.1:080", "[::1]:80", "h:80"],
        ),
        (r#""file""#, &["/srv/x.img"], &["x.img", "/srv/../etc/shadow", "/a,b", "json:{}"]),
        (
            r#"{"parts": {"separator": ",", "like": "hard", "parts": {"hard": null, "rsize": {"integer": {"from": 1, "to": 9}}}}}"#,
            &["hard", "rsize=9", "rsize=1,hard"],
            &[
                "",
                "hard,",
                "hard,hard",
                "rsize",
                "hard=1",
                "rsize=10",
                "exec",
                "rsize=1,exec",
                "rsize=1,rsize=2",
            ],
        ),
        (
            r#"{"word": {"characters": "0123456789abcdef:", "longest": 17, "like": "52:54"}}"#,
            &["52:54:00:77:00:01"],
            &["", "x", "52:54,mac=1", "52:54:00:77:00:01:1"],
        ),
    ];

    #[test]
    fn values_are_held_to_what_is_declared() {
        for (text, right, wrong) in CASES {
            let kind = kind(text);
            for value in right {
                assert_eq!(kind.problem(value), None, "{text}");
                assert_eq!(kind.value(value).unwrap().as_str(), *value);
            }
            for value in wrong {
                let problem = kind.problem(value).unwrap_or_else(|| panic!("{text} takes {value:?}"));
                assert!(!problem.contains('\n') && kind.value(value).is_err(), "{problem}");
            }
        }
    }

    #[test]
    fn an_error_says_what_may_be_set() {
        let numbers = kind(r#"{"integer": {"from": 1, "to": 9, "unit": "MiB"}}"#);
        let said = numbers.problem("ten").unwrap();
        assert_eq!(said, "is `ten`; it must be a whole number of MiB, without the unit, from 1 to 9");
        let words = kind(r#"{"one_of": ["fifo", "tbf"]}"#);
        assert!(words.problem("tfb").unwrap().contains("did you mean `tbf`?"));
    }

    #[test]
    fn a_text_for_a_role_gets_into_no_configuration() {
        let rules = kind(r#"{"text": {"characters": " ;=", "longest": 40, "like": "a"}}"#);
        assert_eq!(rules.problem("bulk rate=1; x rate=2"), None);
        assert!(rules.value("bulk rate=1; x rate=2").is_err());
        assert!(rules.problem("bulk rate=$(id)").is_some());
    }
}
