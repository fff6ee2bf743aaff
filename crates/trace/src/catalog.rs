//! Catalog of public traces: `traces/catalog.yml`.

use std::collections::BTreeMap;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_specs::{Document, Problem, Problems, one_of};

const BUILT_IN: &str = include_str!("../../../traces/catalog.yml");

/// A list of traces.
#[derive(Debug, Clone, PartialEq)]
pub struct Catalog {
    entries: Vec<Entry>,
}

/// A published trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Name in the catalog.
    pub name: String,
    /// Recorded system, place and time.
    pub about: String,
    /// Page with the description or the download.
    pub home: String,
    /// Size of the download.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// Name of its format in [`crate::FORMATS`]; absent if no format reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// Options of its format.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
    /// Terms of use.
    pub licence: String,
    /// Citation.
    pub citation: String,
    /// How to get it.
    pub get: Get,
    /// Similar workload without a download.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stand_in: Option<String>,
}

/// How to get a trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Get {
    /// Download it.
    Fetch {
        /// Address of the file.
        url: String,
        /// SHA-256 of the file, in hexadecimal, where it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sha256: Option<String>,
    },
    /// A page hands it out after a licence has been accepted or a form been filled in.
    Form {
        /// The page.
        page: String,
    },
    /// The owner must be asked; the text has the contact.
    Request(String),
}

impl Get {
    /// In a word.
    pub fn word(&self) -> &'static str {
        match self {
            Get::Fetch { .. } => "fetch",
            Get::Form { .. } => "form",
            Get::Request(_) => "request",
        }
    }
}

impl Entry {
    /// Name of the file that a download makes: the last part of the address.
    pub fn file_name(&self) -> Option<&str> {
        match &self.get {
            Get::Fetch { url, .. } => url.rsplit('/').next(),
            _ => None,
        }
    }
}

impl Catalog {
    /// The list that comes with this crate.
    ///
    /// # Errors
    /// It has problems; a test sees that it has none.
    pub fn built_in() -> Result<Self, Problems> {
        Self::from_document(&Document::from_text(Path::new("traces/catalog.yml"), BUILT_IN)?)
    }

    /// Reads a catalog from a file, such as that of a mirror.
    ///
    /// # Errors
    /// The file cannot be read or has problems.
    pub fn read(path: &Path) -> Result<Self, Problems> {
        Self::from_document(&Document::read(path)?)
    }

    fn from_document(document: &Document) -> Result<Self, Problems> {
        let entries: Vec<Entry> = document.parse()?;
        let mut problems = Problems::default();
        for (index, entry) in entries.iter().enumerate() {
            let mut problem = |field: &str, message: String| {
                problems.0.push(document.problem(format!("{index}.{field}"), message));
            };
            if entries[..index].iter().any(|other| other.name == entry.name) {
                problem("name", format!("duplicate name `{}`", entry.name));
            }
            if let Get::Fetch { url, sha256 } = &entry.get {
                if !(url.starts_with("https://") || url.starts_with("http://")) {
                    problem(
                        "get.fetch.url",
                        format!("is {url}; expected http or https. Use form for other pages"),
                    );
                }
                // It becomes the name of a file.
                let name = entry.file_name().unwrap_or_default();
                if name.is_empty() || name.starts_with('.') || name.contains(['?', '#', '%', '\\']) {
                    problem("get.fetch.url", format!("must end in a file name (found {name:?})"));
                }
                if let Some(sum) = sha256
                    && (sum.len() != 64
                        || !sum.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')))
                {
                    problem("get.fetch.sha256", format!("is {sum:?}, expected 64 digits of 0-9 and a-f"));
                }
            }
        }
        problems.or(Catalog { entries })
    }

    /// All traces, in the order of the file.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// A trace by name.
    ///
    /// # Errors
    /// There is none of that name; the text names the nearest.
    pub fn find(&self, name: &str) -> Result<&Entry, Problem> {
        self.entries.iter().find(|entry| entry.name == name).ok_or_else(|| Problem {
            file: "traces/catalog.yml".into(),
            line: None,
            field: String::new(),
            message: one_of("trace", name, self.entries.iter().map(|entry| entry.name.as_str())),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> String {
        let document = Document::from_text(Path::new("catalog.yml"), text).unwrap();
        Catalog::from_document(&document).unwrap_err().to_string()
    }

    #[test]
    fn the_built_in_list_is_sound_and_says_how_to_get_each_trace() {
        let catalog = Catalog::built_in().unwrap_or_else(|problems| panic!("{problems}"));
        let count = |word| catalog.entries().iter().filter(|entry| entry.get.word() == word).count();
        assert!(count("fetch") >= 12 && count("form") >= 8 && count("request") >= 4);
        assert!(matches!(catalog.find("hp-cello-1992").unwrap().get, Get::Request(_)));
        let error = catalog.find("hplajw-weak").unwrap_err().to_string();
        assert!(error.contains("did you mean `hplajw-week`?"), "{error}");
    }

    #[test]
    fn every_format_it_names_is_read_here() {
        let known: Vec<&str> = crate::FORMATS.iter().map(|format| format.name).collect();
        for entry in Catalog::built_in().unwrap().entries() {
            let format = entry.format.as_deref();
            assert!(format.is_none_or(|name| known.contains(&name)), "{}: {format:?}", entry.name);
        }
    }

    #[test]
    fn what_is_wrong_with_a_list_is_named() {
        let entry = "- name: a\n  about: b\n  home: c\n  licence: d\n  citation: e\n  get:\n    fetch: {url: 'ftp://host/file'}\n";
        assert!(problems(entry).contains("expected http or https"));
        assert!(problems(&entry.replace("ftp://host/file", "http://host/")).contains("end in a file name"));
        assert!(problems(&entry.replace("ftp://host/file", "http://host/..")).contains("end in a file name"));
        assert!(problems(&entry.replace("file'", "file', sha256: abc")).contains("64 digits"));
        assert!(problems(&format!("{entry}{entry}")).contains("duplicate name `a`"));
    }
}
