//! Texts with placeholders such as `{port}`, filled only with values of a checked type.
//!
//! Texts in a configuration, a command line or a path come from a [`Value`]. A value is made of a number, an address, a
//! path, a name, a setting of a declared [`Kind`](crate::Kind), or of a template that was filled in. Its characters are
//! checked again where it is inserted: no text enters a file without this check.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;

use crate::name::quoted;

/// Values of placeholders.
pub type Values = BTreeMap<String, Value>;

/// Longest value of a placeholder, in bytes: the longest path on Linux.
const LONGEST: usize = 4096;
/// Allowed characters besides ASCII letters and digits. None of them ends a word, a line, a string or a block, starts a
/// comment, or names a variable, in a shell or in the configuration of a known daemon.
const HARMLESS: &str = "/._+@:=,-[] ";

/// Value of a placeholder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value(Content);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Content {
    /// One text of allowed characters on one line.
    Text(String),
    /// A filled template, which can have all characters of the template.
    Filled(String),
}

impl Value {
    /// A text of allowed characters.
    ///
    /// # Errors
    /// It has other characters. The message names them.
    pub(crate) fn text(text: &str) -> Result<Self, String> {
        check(text)?;
        Ok(Value(Content::Text(text.to_owned())))
    }

    /// Value of a placeholder that is set by the description itself.
    ///
    /// # Errors
    /// It has characters that are not allowed.
    pub fn constant(text: &str) -> Result<Self, String> {
        Value::text(text)
    }

    /// An absolute path without blanks, quotes, `..` and other characters with a meaning to a shell or a daemon.
    ///
    /// # Errors
    /// It is no valid path. The message names the allowed characters.
    pub fn path(path: &Path) -> Result<Self, String> {
        let shown = path.to_string_lossy();
        path_problem(&shown).map_or_else(|| Value::text(&shown), Err)
    }

    /// A whole number.
    pub fn number(number: u64) -> Self {
        Value(Content::Text(number.to_string()))
    }

    /// An address.
    pub fn address(address: IpAddr) -> Self {
        Value(Content::Text(address.to_string()))
    }

    /// An address and a port.
    pub fn socket(socket: SocketAddr) -> Self {
        Value(Content::Text(socket.to_string()))
    }

    /// Addresses with commas between them.
    pub fn addresses(addresses: &[Ipv4Addr]) -> Self {
        let texts: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        Value(Content::Text(texts.join(",")))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Content::Text(text) | Content::Filled(text) => text,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A text whose placeholders were filled in. As a [`Value`] it may have any characters, as its template had them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filled(String);

impl Filled {
    /// Appends another text.
    pub fn push(&mut self, other: &Filled) {
        self.0.push_str(&other.0);
    }

    /// The text.
    pub fn into_string(self) -> String {
        self.0
    }
}

impl From<Filled> for Value {
    fn from(filled: Filled) -> Value {
        Value(Content::Filled(filled.0))
    }
}

/// The problem of the path of a file or folder for a configuration. `None` if it is valid.
pub fn path_problem(path: &str) -> Option<String> {
    let is_path = path.len() <= LONGEST
        && path.starts_with('/')
        && path.chars().all(|c| c.is_ascii_alphanumeric() || "/._+@:=-".contains(c))
        && !path.split('/').any(|part| part == "..");
    (!is_path).then(|| {
        format!(
            "path {}: it stands in configurations and commands, so it must begin with / and have letters, digits and / . _ + @ : = - only, and no `..`",
            quoted(path)
        )
    })
}

fn check(text: &str) -> Result<(), String> {
    if text.len() > LONGEST {
        return Err(format!("{} is longer than {LONGEST} characters", quoted(text)));
    }
    if let Some(odd) = text.chars().find(|c| !c.is_ascii_alphanumeric() && !HARMLESS.contains(*c)) {
        return Err(format!(
            "{} has the character {odd:?}, which may not get into a configuration",
            quoted(text)
        ));
    }
    // A program would take it for an option.
    if text.starts_with('-') && text.parse::<i64>().is_err() {
        return Err(format!("{} begins with `-`", quoted(text)));
    }
    if text != text.trim() {
        return Err(format!("{} has blanks around it", quoted(text)));
    }
    Ok(())
}

/// Fills in every placeholder: a name of lower-case letters, digits and `_` between braces. Other braces stay unchanged.
/// Values are not searched for placeholders.
///
/// # Errors
/// A placeholder without a value (the message names it and the known ones), or with characters that are not allowed.
pub fn fill(text: &str, values: &Values) -> Result<Filled, String> {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        filled.push_str(&rest[..open]);
        rest = &rest[open..];
        match placeholder(rest) {
            Some(name) => {
                let value = values.get(name).ok_or_else(|| {
                    let known: Vec<&str> = values.keys().map(String::as_str).collect();
                    format!("{{{name}}} stands for nothing; there are {}", known.join(", "))
                })?;
                if let Content::Text(text) = &value.0 {
                    check(text).map_err(|problem| format!("{{{name}}}: {problem}"))?;
                }
                filled.push_str(value.as_str());
                rest = &rest[name.len() + 2..];
            }
            None => {
                filled.push('{');
                rest = &rest[1..];
            }
        }
    }
    filled.push_str(rest);
    Ok(Filled(filled))
}

/// The placeholders of a text, in order, with repetitions.
pub fn placeholders(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices('{').filter_map(|(at, _)| placeholder(&text[at..]))
}

/// The name at the beginning of a text that begins with a brace.
fn placeholder(text: &str) -> Option<&str> {
    let name = &text[1..text.find('}')?];
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    (name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(is_name)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(pairs: &[(&str, &str)]) -> Values {
        pairs.iter().map(|(name, text)| ((*name).to_owned(), Value::text(text).unwrap())).collect()
    }

    #[test]
    fn placeholders_are_filled_and_other_braces_stay() {
        let values = values(&[("port", "80"), ("run_2", "/x")]);
        let filled = fill("http { listen {port}; }\n{}{run_2}{Port}", &values).unwrap();
        assert_eq!(filled.into_string(), "http { listen 80; }\n{}/x{Port}");
        assert!(
            fill("{user}", &values).unwrap_err().contains("{user} stands for nothing; there are port, run_2")
        );
        assert_eq!(placeholders("{ a {port} {Port} {run_2}{").collect::<Vec<_>>(), ["port", "run_2"]);
    }

    #[test]
    fn a_text_that_has_a_meaning_is_no_value() {
        for text in [
            "on; server { listen 0.0.0.0:8080; }",
            "{run}",
            "a\nb",
            "a\rb",
            "a\0b",
            "a\tb",
            "\"",
            "'",
            "\\",
            "$(id)",
            "`id`",
            "# x",
            "%include",
            "a|b",
            "a&b",
            "a<b",
            "*",
            "~",
            "!",
            "\u{e9}",
            "\u{2028}",
            "-x",
            "--config",
            " a",
            "a ",
        ] {
            assert!(Value::text(text).is_err(), "{text:?}");
        }
        assert!(Value::text(&"a".repeat(1 << 20)).unwrap_err().len() < 300);
        assert_eq!(Value::text("-1").unwrap().as_str(), "-1");
    }

    #[test]
    fn a_value_that_was_made_past_the_check_does_not_get_into_a_text() {
        let smuggled = Value(Content::Text("on; server {}".to_owned()));
        let values: Values = [("sendfile".to_owned(), smuggled)].into();
        let refused = fill("sendfile {sendfile};", &values).unwrap_err();
        assert!(refused.starts_with("{sendfile}: ") && refused.contains("';'"), "{refused}");
    }

    #[test]
    fn paths_lead_nowhere_else() {
        assert_eq!(Value::path(Path::new("/run/weir/x-1.run")).unwrap().as_str(), "/run/weir/x-1.run");
        for path in
            ["run", "", "-o", "/a b", "/a;b", "/a/../b", "/a\n", "/a'b", "/a\"b", "/a,b", "/{run}", "/\u{e9}"]
        {
            assert!(Value::path(Path::new(path)).is_err(), "{path:?}");
        }
    }
}
