//! Catalog of workloads: one YAML file each.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use weir_specs::{Document, Problem, Problems, files_by_name, one_of};
use weir_trace::frame_sizes;

use crate::sessions::{AnyWorkload, SessionWorkload};
use crate::spec::{Arrivals, FrameSource, Sizes, Workload};
use crate::validate;

/// The folder of tables that workloads read.
const TABLES: &str = "tables";

/// The folder of workload specifications.
pub struct Catalog {
    folder: PathBuf,
    /// Workloads of requests.
    files: BTreeMap<String, PathBuf>,
    /// Workloads of sessions.
    sessions: BTreeMap<String, PathBuf>,
}

impl Catalog {
    /// Lists the `*.yml` files in a folder and below it, without tables.
    ///
    /// # Errors
    /// The folder cannot be read, or two files have one name.
    pub fn open(folder: &Path) -> Result<Self, Problems> {
        Self::of_files(folder, files_by_name(folder, &[TABLES])?)
    }

    /// As [`Catalog::open`], with the files of a library where the folder has none of their name.
    ///
    /// # Errors
    /// A folder cannot be read, or two files in it have one name.
    pub fn open_with(folder: &Path, library: &Path) -> Result<Self, Problems> {
        let mut found = files_by_name(library, &[TABLES])?;
        found.extend(files_by_name(folder, &[TABLES])?);
        Self::of_files(folder, found)
    }

    fn of_files(folder: &Path, found: BTreeMap<String, PathBuf>) -> Result<Self, Problems> {
        let (mut files, mut sessions) = (BTreeMap::new(), BTreeMap::new());
        for (name, path) in found {
            // A file that cannot be read is reported when it is loaded.
            let of_sessions = Document::read(&path).is_ok_and(|document| SessionWorkload::is_in(&document));
            let kind = if of_sessions { &mut sessions } else { &mut files };
            kind.insert(name, path);
        }
        Ok(Catalog { folder: folder.to_owned(), files, sessions })
    }

    /// File of a workload of either kind; none if unknown.
    pub fn file(&self, name: &str) -> Option<&Path> {
        self.files.get(name).or_else(|| self.sessions.get(name)).map(PathBuf::as_path)
    }

    /// The folder of a workload's file: paths within the workload are relative to it.
    pub fn folder_of(&self, name: &str) -> &Path {
        self.file(name).and_then(Path::parent).unwrap_or(&self.folder)
    }

    /// Names of the workloads of requests, sorted: those for studies.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// Names of the workloads of sessions, sorted.
    pub fn session_names(&self) -> impl Iterator<Item = &str> {
        self.sessions.keys().map(String::as_str)
    }

    /// Reason why a workload cannot be sent to a device or a simulated server; `None` if it can, or is unknown.
    pub fn no_requests(&self, name: &str) -> Option<String> {
        self.sessions.contains_key(name).then(|| {
            format!(
                "`{name}` is a workload of sessions: its interactions ask a web site, and what they ask of a disk is \
                 decided by the database behind it. It cannot be replayed to a device or simulated; \
                 `weir generate {name}` writes its interactions"
            )
        })
    }

    /// Reads and checks a workload by name.
    ///
    /// # Errors
    /// The name is unknown (the text has the nearest), or the file has problems.
    pub fn load(&self, name: &str) -> Result<Workload, Problems> {
        let document = self.document(name)?;
        let workload = Workload::from_document(&document)?;
        Ok(workload)
    }

    /// Reads and checks a workload of either kind by name.
    ///
    /// # Errors
    /// Same as [`Catalog::load`].
    pub fn load_any(&self, name: &str) -> Result<AnyWorkload, Problems> {
        match self.sessions.get(name) {
            Some(path) => AnyWorkload::from_document(&Document::read(path)?),
            None => Ok(AnyWorkload::Requests(Box::new(self.load(name)?))),
        }
    }

    /// The document of a workload of requests by name, unchecked.
    ///
    /// # Errors
    /// The name is unknown, or the file is no YAML.
    pub fn document(&self, name: &str) -> Result<Document, Problems> {
        let Some(path) = self.files.get(name) else {
            let message = self.no_requests(name).unwrap_or_else(|| {
                one_of("workload", name, self.files.keys().chain(self.sessions.keys()).map(String::as_str))
            });
            return Err(
                Problem { file: self.folder.clone(), line: None, field: String::new(), message }.into()
            );
        };
        Document::read(path)
    }
}

impl Workload {
    /// A checked workload from its document.
    ///
    /// # Errors
    /// All problems of the workload.
    pub fn from_document(document: &Document) -> Result<Self, Problems> {
        let workload: Workload = document.parse_all()?;
        let mut problems = validate::check(&workload, document, "");
        let stem = document.file().file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        if workload.name != stem {
            let message =
                format!("is `{}`, but the file is called `{stem}.yml`: make them the same", workload.name);
            problems.0.push(document.problem("name", message));
        }
        problems.or(workload)
    }

    /// Path of its recording, if any, as in the specification, relative to its folder.
    pub fn recording(&mut self) -> Option<&mut PathBuf> {
        if let Arrivals::Recorded(recording) = &mut self.arrivals {
            return Some(&mut recording.path);
        }
        match &mut self.sizes {
            Sizes::Frames(frames) => match &mut frames.source {
                FrameSource::File { path, .. } => Some(path),
                FrameSource::Synthetic(_) | FrameSource::Movies(_) => None,
            },
            _ => None,
        }
    }

    /// Checks that its recording can be read; the path is relative to `folder`.
    ///
    /// # Errors
    /// Field of the recording, and reason why it cannot be read.
    pub fn look_for_recording(&self, folder: &Path) -> Result<(), (&'static str, String)> {
        if let Arrivals::Recorded(recording) = &self.arrivals {
            return recording.look(folder).map_err(|message| ("arrivals.recorded.path", message));
        }
        if let Sizes::Frames(frames) = &self.sizes
            && let FrameSource::File { path, .. } = &frames.source
        {
            let read = frame_sizes::read(&folder.join(path));
            return read.map(drop).map_err(|error| ("sizes.frames.source.file.path", error.to_string()));
        }
        Ok(())
    }

    /// This workload with some fields replaced, checked again.
    ///
    /// Problems are reported in `document` below `field`, the place of the overrides.
    ///
    /// # Errors
    /// An override names an unknown field, or makes the workload invalid.
    pub fn with_overrides(
        &self,
        overrides: &BTreeMap<String, Value>,
        document: &Document,
        field: &str,
    ) -> Result<Self, Problems> {
        let mut value = serde_json::to_value(self)
            .map_err(|error| Problems::from(document.problem(field, error.to_string())))?;
        apply_overrides(&mut value, overrides)
            .map_err(|(name, message)| document.problem(format!("{field}.{name}"), message))?;
        let workload: Workload = document.parse_all_of(&value).map_err(|problems| {
            // Shape errors are placed at paths of the workload, which do not exist in this document.
            Problems(
                problems
                    .0
                    .into_iter()
                    .map(|p| document.problem(format!("{field}.{}", p.field), p.message))
                    .collect(),
            )
        })?;
        validate::check(&workload, document, field).or(workload)
    }
}

/// Replaces the values at dotted paths; a path must exist already.
///
/// # Errors
/// Unknown path, and reason.
pub fn apply_overrides(
    value: &mut Value,
    overrides: &BTreeMap<String, Value>,
) -> Result<(), (String, String)> {
    for (path, replacement) in overrides {
        let mut at = &mut *value;
        for step in path.split('.') {
            let Value::Object(fields) = at else {
                return Err((path.clone(), format!("`{step}`: there is nothing below this field")));
            };
            if !fields.contains_key(step) {
                return Err((path.clone(), one_of("field", step, fields.keys().map(String::as_str))));
            }
            at = &mut fields[step];
        }
        *at = replacement.clone();
    }
    Ok(())
}
