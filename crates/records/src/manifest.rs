//! Manifest of a run's folder (`manifest.json`): size and SHA-256 of every file.
//!
//! It is written last. A folder whose files differ from it is damaged. It does not list itself, since it has its own checksum,
//! `metrics.json`, which the analysis derives later, and names that begin with a dot, which no reader uses.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::sealed::{hex, seal, unseal};

/// Name of the manifest in a run's folder.
pub const MANIFEST: &str = "manifest.json";
/// Name of the file of derived metrics in a run's folder.
pub const METRICS: &str = "metrics.json";
/// Version of the layout of a run's folder.
pub const RESULTS_FORMAT: u32 = 1;
/// Field of `run.json` with this version: a run with it has a manifest.
pub const RESULTS_FORMAT_FIELD: &str = "results_format";

/// Content of a run's folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Version of the layout of the folder.
    pub results_format: u32,
    /// The version of weir that wrote it.
    pub weir: String,
    /// The run.
    pub run: String,
    /// Every file, by path.
    pub files: Vec<FileEntry>,
}

/// One file of a run's folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileEntry {
    /// Its path from the run's folder, with `/`.
    pub path: String,
    /// Its size.
    pub size_bytes: u64,
    /// The SHA-256 of its content, in lower-case hexadecimal digits.
    pub sha256: String,
}

/// A damaged file or folder.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {what}", file.display())]
pub struct Damage {
    /// The file or folder.
    pub file: PathBuf,
    /// What is wrong with it.
    pub what: String,
}

impl Damage {
    /// Says what is wrong with a file.
    pub fn of(file: &Path, what: impl Into<String>) -> Self {
        Damage { file: file.to_owned(), what: what.into() }
    }
}

/// Depth of a comparison with a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Names and sizes.
    Sizes,
    /// Content too.
    Content,
}

impl Manifest {
    /// Lists the files of a folder.
    ///
    /// # Errors
    /// A file cannot be read, is neither a file nor a folder, or has a name that is not UTF-8.
    pub fn of(folder: &Path, run: &str) -> Result<Self, Damage> {
        let mut files = Vec::new();
        for path in paths_below(folder)? {
            let file = folder.join(&path);
            let (size_bytes, sha256) =
                digest(&file).map_err(|error| Damage::of(&file, format!("cannot be read ({error})")))?;
            files.push(FileEntry { path, size_bytes, sha256 });
        }
        let weir = env!("CARGO_PKG_VERSION").to_owned();
        Ok(Manifest { results_format: RESULTS_FORMAT, weir, run: run.to_owned(), files })
    }

    /// The text of `manifest.json`.
    ///
    /// # Errors
    /// Never, with the fields that there are.
    pub fn text(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(|object| seal(&object))
    }

    /// Reads the manifest of a folder; `None` if it has none.
    ///
    /// # Errors
    /// The manifest is damaged, or of an unknown version.
    pub fn read(folder: &Path) -> Result<Option<Self>, Damage> {
        let file = folder.join(MANIFEST);
        let text = match fs::read(&file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read.map_err(|error| Damage::of(&file, format!("cannot be read ({error})")))?,
        };
        let (object, _) = std::str::from_utf8(&text)
            .ok()
            .and_then(unseal)
            .ok_or_else(|| Damage::of(&file, "is damaged: its checksum does not match its content"))?;
        // Version first: another layout may have other fields.
        let whole: serde_json::Value = serde_json::from_str(&object)
            .map_err(|error| Damage::of(&file, format!("is no JSON ({error})")))?;
        let found = &whole[RESULTS_FORMAT_FIELD];
        if found.as_u64() != Some(u64::from(RESULTS_FORMAT)) {
            let what = format!("{RESULTS_FORMAT_FIELD} is {found}; this version reads {RESULTS_FORMAT}");
            return Err(Damage::of(&file, what));
        }
        let manifest: Manifest = serde_json::from_value(whole)
            .map_err(|error| Damage::of(&file, format!("is no manifest ({error})")))?;
        match manifest.files.iter().find(|entry| !is_plain(&entry.path)) {
            Some(entry) => {
                Err(Damage::of(&file, format!("lists {:?}, a path out of its folder", entry.path)))
            }
            None => Ok(Some(manifest)),
        }
    }

    /// Differences between a folder and its manifest: missing or unlisted files, other sizes, other content.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn compare(&self, folder: &Path, depth: Depth) -> Result<Vec<Damage>, Damage> {
        let mut found = paths_below(folder)?;
        let mut differences = Vec::new();
        for entry in &self.files {
            let file = folder.join(&entry.path);
            let Some(at) = found.iter().position(|path| *path == entry.path) else {
                differences.push(Damage::of(&file, "is missing"));
                continue;
            };
            found.swap_remove(at);
            if let Some(what) = entry.difference(&file, depth) {
                differences.push(Damage::of(&file, what));
            }
        }
        found.sort();
        for path in found {
            differences.push(Damage::of(&folder.join(path), "is not listed in the run's manifest.json"));
        }
        Ok(differences)
    }
}

impl FileEntry {
    fn difference(&self, file: &Path, depth: Depth) -> Option<String> {
        let cannot = |error: io::Error| format!("cannot be read ({error})");
        let size_bytes = match fs::symlink_metadata(file) {
            Err(error) => return Some(cannot(error)),
            Ok(found) => found.len(),
        };
        if size_bytes != self.size_bytes {
            return Some(format!("is damaged: it has {size_bytes} bytes, not {}", self.size_bytes));
        }
        if depth == Depth::Sizes {
            return None;
        }
        match digest(file) {
            Err(error) => Some(cannot(error)),
            Ok((_, sha256)) if sha256 != self.sha256 => {
                Some("is damaged: its SHA-256 is not that in manifest.json".to_owned())
            }
            Ok(_) => None,
        }
    }
}

/// Whether a path is within its folder and may be listed.
fn is_plain(path: &str) -> bool {
    let whole = Path::new(path);
    !path.is_empty()
        && whole.components().all(|part| matches!(part, Component::Normal(_)))
        && whole.components().collect::<PathBuf>().as_os_str() == path
}

/// Paths of all files below a folder that a manifest lists, sorted.
fn paths_below(folder: &Path) -> Result<Vec<String>, Damage> {
    let mut paths = Vec::new();
    let mut folders = vec![(folder.to_owned(), String::new())];
    while let Some((next, before)) = folders.pop() {
        let cannot = |error: io::Error| Damage::of(&next, format!("cannot be read ({error})"));
        for entry in fs::read_dir(&next).map_err(cannot)? {
            let entry = entry.map_err(cannot)?;
            let name = entry
                .file_name()
                .into_string()
                .map_err(|name| Damage::of(&next.join(name), "has a name that is not UTF-8"))?;
            if name.starts_with('.') || (before.is_empty() && (name == MANIFEST || name == METRICS)) {
                continue;
            }
            let kind = entry.file_type().map_err(cannot)?;
            if kind.is_dir() {
                folders.push((entry.path(), format!("{before}{name}/")));
            } else if kind.is_file() {
                paths.push(format!("{before}{name}"));
            } else {
                return Err(Damage::of(&entry.path(), "is neither a file nor a folder"));
            }
        }
    }
    paths.sort();
    Ok(paths)
}

/// Size and SHA-256 of a file.
fn digest(file: &Path) -> io::Result<(u64, String)> {
    let mut open = File::open(file)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 18];
    let mut size_bytes = 0;
    loop {
        match open.read(&mut buffer)? {
            0 => return Ok((size_bytes, hex(&hash.finalize()))),
            read => {
                hash.update(&buffer[..read]);
                size_bytes += read as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed() -> (tempfile::TempDir, Manifest) {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir_all(place.path().join("logs/inner")).unwrap();
        for (name, text) in
            [("run.json", "{}"), ("logs/inner/a.log", "said"), (".weir-owner", "x"), (METRICS, "y")]
        {
            fs::write(place.path().join(name), text).unwrap();
        }
        let manifest = Manifest::of(place.path(), "abc").unwrap();
        fs::write(place.path().join(MANIFEST), manifest.text().unwrap()).unwrap();
        (place, manifest)
    }

    fn differences(place: &Path) -> Vec<String> {
        let manifest = Manifest::read(place).unwrap().unwrap();
        let found = manifest.compare(place, Depth::Content).unwrap();
        found.iter().map(|damage| damage.to_string().replace(&*place.to_string_lossy(), "")).collect()
    }

    #[test]
    fn a_manifest_lists_every_file_but_itself_and_what_is_derived() {
        let (place, manifest) = sealed();
        let paths: Vec<&str> = manifest.files.iter().map(|entry| entry.path.as_str()).collect();
        assert_eq!(paths, ["logs/inner/a.log", "run.json"]);
        assert_eq!(manifest.files[0].size_bytes, 4);
        // `printf said | sha256sum`
        assert_eq!(&manifest.files[0].sha256[..16], "fb46c79b7eb7af17");
        assert_eq!(Manifest::read(place.path()).unwrap(), Some(manifest));
        assert_eq!(differences(place.path()), [""; 0]);
        assert_eq!(Manifest::read(&place.path().join("logs")).unwrap(), None);
    }

    #[test]
    fn other_content_other_sizes_missing_and_unknown_files_are_told() {
        let (place, manifest) = sealed();
        fs::write(place.path().join("run.json"), "{]").unwrap();
        assert_eq!(manifest.compare(place.path(), Depth::Sizes).unwrap(), []);
        assert_eq!(
            differences(place.path()),
            ["/run.json: is damaged: its SHA-256 is not that in manifest.json"]
        );
        fs::write(place.path().join("run.json"), "{ }").unwrap();
        fs::remove_file(place.path().join("logs/inner/a.log")).unwrap();
        fs::write(place.path().join("block.parquet"), "").unwrap();
        assert_eq!(
            differences(place.path()),
            [
                "/logs/inner/a.log: is missing",
                "/run.json: is damaged: it has 3 bytes, not 2",
                "/block.parquet: is not listed in the run's manifest.json",
            ]
        );
    }

    #[test]
    fn a_damaged_manifest_is_told() {
        let (place, _) = sealed();
        let file = place.path().join(MANIFEST);
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, text.replace("run.json", "rum.json")).unwrap();
        assert!(Manifest::read(place.path()).unwrap_err().to_string().contains("checksum"));
        fs::write(&file, seal(&text.replace("run.json", "../a"))).unwrap();
        assert!(Manifest::read(place.path()).is_err());
    }

    #[test]
    fn paths_out_of_the_folder_are_refused() {
        for path in ["", "/etc/passwd", "../a", "a/../b", "./a", "a//b", "a/"] {
            assert!(!is_plain(path), "{path}");
        }
        assert!(is_plain("logs/a.log"));
    }
}
