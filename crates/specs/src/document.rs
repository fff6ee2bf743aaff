//! A YAML file with typed values and line numbers.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::problem::{Problem, Problems, nearest};
use crate::tree::Located;

/// A specification is a page or two; whatever is larger was not meant to be one.
const LARGEST_FILE_BYTES: u64 = 1 << 20;

/// The text of a file of at most `most_bytes`. No more is read, whatever the file's length is said to be: a pipe or a device
/// says 0.
///
/// # Errors
/// What is wrong, to be said behind the file's name: it cannot be read, is larger, or is not UTF-8.
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

/// A YAML file and where everything in it stands.
pub struct Document {
    file: PathBuf,
    tree: Located,
    value: Value,
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
    /// The text is not YAML.
    pub fn from_text(file: &Path, text: &str) -> Result<Self, Problems> {
        let tree: Located = serde_saphyr::from_str(text).map_err(|error| Problem {
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
        let value = tree.value();
        Ok(Document { file: file.to_owned(), tree, value })
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
        Problem { file: self.file.clone(), line: (line > 0).then_some(line), field, message: message.into() }
    }

    /// The whole document as a typed value.
    ///
    /// # Errors
    /// A field is missing, unknown or of the wrong type.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, Problems> {
        self.parse_value(&self.value)
    }

    /// A value derived from this document (with overrides applied, say) as a typed one.
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

/// What the parser says of a document that is far too large or deep, as a person can act on it.
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
    message.to_owned()
}

/// `classes.0.size` from a path of serde's.
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

/// Adds what to do about it: the nearest allowed name to serde's "unknown field `x`, expected one of `a`, `b`", or quotes
/// around a word such as `null`, `off` or `7` that YAML does not take for text.
fn with_suggestion(message: &str) -> String {
    if message.starts_with("invalid type: ") && message.ends_with("expected a string") {
        return format!("{message}; if that is the text you mean, put it in quotes");
    }
    let Some(rest) = message.strip_prefix("unknown ") else { return message.to_owned() };
    let mut names = rest.split('`').skip(1).step_by(2);
    let Some(found) = names.next() else { return message.to_owned() };
    match nearest(found, names) {
        Some(name) => format!("{message}; did you mean `{name}`?"),
        None => message.to_owned(),
    }
}
