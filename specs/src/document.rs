//! A YAML file that is read once, turned into typed values, and asked for lines.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::problem::{Problem, Problems, nearest};
use crate::tree::Located;

/// A specification is a page or two; whatever is larger was not meant to be one.
const LARGEST_FILE_BYTES: u64 = 1 << 20;

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
        let size =
            std::fs::metadata(file).map_err(|error| problem(format!("cannot be read: {error}")))?.len();
        if size > LARGEST_FILE_BYTES {
            return Err(problem(format!(
                "is {size} bytes long; a specification has at most {LARGEST_FILE_BYTES}"
            ))
            .into());
        }
        let text =
            std::fs::read_to_string(file).map_err(|error| problem(format!("cannot be read: {error}")))?;
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
            message: error
                .without_snippet()
                .render()
                .lines()
                .next()
                .unwrap_or("not YAML")
                .trim_start_matches("error: ")
                .to_owned(),
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
