//! A YAML file with typed values and line numbers.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::explain::explain;
use crate::name::quoted;
use crate::problem::{Problem, Problems, nearest};
use crate::tree::Located;
use crate::unit;

/// Largest specification. Specifications are a page or two; a larger file is not one.
const LARGEST_FILE_BYTES: u64 = 1 << 20;

/// The text of a file of at most `most_bytes`. No more is read, since the reported length of a pipe or a device is 0.
///
/// # Errors
/// The problem, for a message after the file name: the file cannot be read, is larger, or is not UTF-8.
pub fn read_text(file: &Path, most_bytes: u64) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("cannot be read: {error}");
    let opened = File::open(file).map_err(failed)?;
    let size = opened.metadata().map_err(failed)?.len();
    let mut bytes = Vec::new();
    if size <= most_bytes {
        opened.take(most_bytes + 1).read_to_end(&mut bytes).map_err(failed)?;
    }
    if size > most_bytes || bytes.len() as u64 > most_bytes {
        let found = if size > most_bytes { format!("{size} bytes long") } else { "longer".to_owned() };
        return Err(format!(
            "is {found}; at most {most_bytes} bytes are read: name the right file, or shorten it"
        ));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
        format!("is not text in UTF-8 (byte {at}, in line {line}): name the right file, or convert it")
    })
}

/// A YAML file with the line of each node.
pub struct Document {
    file: PathBuf,
    tree: Located,
    value: Value,
    /// Fields that were written with a unit, and how.
    with_unit: HashMap<String, String>,
}

impl Document {
    /// Reads and parses a file.
    ///
    /// # Errors
    /// The file cannot be read, is too large, is not UTF-8 or is not YAML.
    pub fn read(file: &Path) -> Result<Self, Problems> {
        let problem =
            |message: String| Problem { file: file.to_owned(), line: None, field: String::new(), message };
        let text = read_text(file, LARGEST_FILE_BYTES).map_err(problem)?;
        Document::from_text(file, &text)
    }

    /// Parses text that came from `file`.
    ///
    /// # Errors
    /// The text is not YAML, or a unit in it is wrong or ambiguous.
    pub fn from_text(file: &Path, text: &str) -> Result<Self, Problems> {
        let mut tree: Located = serde_saphyr::from_str(text).map_err(|error| Problem {
            file: file.to_owned(),
            line: error.location().map(|location| location.line()),
            field: String::new(),
            message: in_words(
                error
                    .without_snippet()
                    .render()
                    .lines()
                    .next()
                    .unwrap_or("not YAML")
                    .trim_start_matches("error: "),
            ),
        })?;
        let read = unit::resolve(&mut tree);
        let value = tree.value();
        let mut document = Document { file: file.to_owned(), tree, value, with_unit: HashMap::new() };
        let problem = |(field, message): (String, String)| document.problem(field, message);
        let with_unit = read.map_err(|found| Problems(found.into_iter().map(problem).collect()))?;
        document.with_unit = with_unit.into_iter().collect();
        Ok(document)
    }

    /// The file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The content without positions.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// A problem with a field, placed on its line.
    pub fn problem(&self, field: impl Into<String>, message: impl Into<String>) -> Problem {
        let field = field.into();
        let path: Vec<&str> = field.split('.').filter(|step| !step.is_empty()).collect();
        let line = self.tree.line_of(&path);
        let mut message = message.into();
        if let Some(text) = self.with_unit.get(&field) {
            let _ = write!(message, " (written as {})", quoted(text));
        }
        Problem { file: self.file.clone(), line: (line > 0).then_some(line), field, message }
    }

    /// The whole document as a typed value.
    ///
    /// # Errors
    /// A field is missing, unknown or of the wrong type.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, Problems> {
        self.parse_value(&self.value)
    }

    /// As [`Document::parse`], for types with a JSON schema: all problems are found.
    ///
    /// # Errors
    /// Every field that is missing, unknown or of the wrong type.
    pub fn parse_all<T: DeserializeOwned + JsonSchema>(&self) -> Result<T, Problems> {
        self.parse_all_of(&self.value)
    }

    /// As [`Document::parse_value`], for types with a JSON schema: all problems are found.
    ///
    /// # Errors
    /// As [`Document::parse_all`].
    pub fn parse_all_of<T: DeserializeOwned + JsonSchema>(&self, value: &Value) -> Result<T, Problems> {
        self.parse_value(value).map_err(|first| {
            let found = explain(schemars::schema_for!(T).as_value(), value);
            // The parser checks more than the schema, such as the syntax of a text.
            if found.is_empty() {
                return first;
            }
            Problems(found.into_iter().map(|(field, message)| self.problem(field, message)).collect())
        })
    }

    /// A value derived from this document (for example with overrides) as a typed one.
    ///
    /// # Errors
    /// As [`Document::parse`].
    pub fn parse_value<T: DeserializeOwned>(&self, value: &Value) -> Result<T, Problems> {
        serde_path_to_error::deserialize(value).map_err(|error| {
            let mut field = dotted(error.path());
            let message = error.into_inner().to_string();
            // Point at the stray key itself rather than at the mapping that holds it.
            if let Some(name) =
                message.strip_prefix("unknown field `").and_then(|rest| rest.split('`').next())
                && !field.ends_with(name)
            {
                field = if field.is_empty() { name.to_owned() } else { format!("{field}.{name}") };
            }
            self.problem(field, with_suggestion(&message)).into()
        })
    }
}

/// The message of the YAML parser, in words with a remedy.
fn in_words(message: &str) -> String {
    let is = |text: &str| message.starts_with(text);
    if is("recursion limit exceeded") || is("budget breached: Depth") {
        return "is nested too deeply (at most 64 levels are read): remove brackets or indentation"
            .to_owned();
    }
    if is("budget breached: ") {
        let what = message["budget breached: ".len()..].split(' ').next().unwrap_or_default().to_lowercase();
        return format!(
            "has too many {what}, each use of an anchor counted: shorten it, or use fewer anchors"
        );
    }
    if let Some(rest) = message.strip_prefix("duplicate mapping key: ") {
        let key = rest.split(", set ").next().unwrap_or(rest);
        return format!("the field `{key}` stands twice: remove one of them");
    }
    if let Some(rest) = message.strip_prefix("non-finite float ") {
        let number = rest.split('`').nth(1).unwrap_or(rest);
        return format!("found `{number}`, expected a finite number");
    }
    format!("is not YAML: {message}; check brackets, quotes and indentation on this line and the one before")
}

/// `classes.0.size` from a path of the deserializer.
fn dotted(path: &serde_path_to_error::Path) -> String {
    use serde_path_to_error::Segment;
    let steps = path.iter().filter_map(|segment| match segment {
        Segment::Seq { index } => Some(index.to_string()),
        Segment::Map { key } => Some(key.clone()),
        Segment::Enum { variant } => Some(variant.clone()),
        Segment::Unknown => None,
    });
    steps.collect::<Vec<_>>().join(".")
}

/// The message of the deserializer, in words of YAML with a remedy.
fn with_suggestion(message: &str) -> String {
    if let Some((found, expected)) =
        message.strip_prefix("invalid type: ").and_then(|rest| rest.split_once(", expected "))
    {
        let hint = if expected == "a string" { "; if the text is meant, put it in quotes" } else { "" };
        return format!("found {}, expected {}{hint}", found_in_words(found), expected_in_words(expected));
    }
    if let Some((found, expected)) =
        message.strip_prefix("invalid value: ").and_then(|rest| rest.split_once(", expected "))
    {
        return format!("found {}, expected {}", found_in_words(found), expected_in_words(expected));
    }
    if let Some(field) = message.strip_prefix("missing field ") {
        return format!("{field} is missing");
    }
    let Some(rest) = message.strip_prefix("unknown ") else { return message.to_owned() };
    let mut names = rest.split('`').skip(1).step_by(2);
    let Some(found) = names.next() else { return message.to_owned() };
    let message = message.replace("unknown variant", "unknown name");
    match nearest(found, names) {
        Some(name) => format!("{message}; did you mean `{name}`?"),
        None => message,
    }
}

/// `the text "two"` of `string "two"`, and so on.
fn found_in_words(found: &str) -> String {
    match found.split_once(' ') {
        Some(("string", text)) => format!("the text {text}"),
        Some(("integer" | "boolean", value)) => value.to_owned(),
        Some(("floating", value)) => value.trim_start_matches("point ").to_owned(),
        _ => match found {
            "map" => "a mapping".to_owned(),
            "sequence" => "a list".to_owned(),
            "null" | "unit value" | "Option value" => "nothing".to_owned(),
            other => other.to_owned(),
        },
    }
}

fn expected_in_words(expected: &str) -> String {
    match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number of 0 or more".to_owned(),
        "i8" | "i16" | "i32" | "i64" => "a whole number".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        "a string" => "text".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a map" => "a mapping".to_owned(),
        other if other.starts_with("struct ") || other.starts_with("enum ") => "a mapping".to_owned(),
        other => other.to_owned(),
    }
}
