//! Document trees: folders of documents that a web server can serve.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use rustix::fs::syncfs;
use serde::{Deserialize, Serialize};
use weir_content::fill::Filler;
use weir_host::space;

use crate::Error;
use crate::documents::{Documents, Folders};

/// Marker file that names the documents of a folder.
const MARK: &str = "weir-documents.json";
/// Entries of an empty file system.
const LOST: &str = "lost+found";
/// Most wrong entries that are named.
const NAMED: usize = 20;

/// What [`MARK`] holds.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Mark {
    class: String,
    seed: u64,
    documents: usize,
    bytes: u64,
    folders: String,
    /// Hash of the sizes in order: it differs when the settings of the workload differ.
    sizes: String,
    complete: bool,
}

impl Mark {
    fn of(documents: &Documents, complete: bool) -> Self {
        let hash = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        let bytes = documents.sizes_bytes().iter().flat_map(|size| size.to_le_bytes());
        Mark {
            class: documents.class().to_owned(),
            seed: documents.seed(),
            documents: documents.sizes_bytes().len(),
            bytes: documents.total_bytes(),
            folders: match documents.folders() {
                Folders::One => "one".to_owned(),
                Folders::Thousands => "thousands".to_owned(),
            },
            sizes: format!("{:016x}", bytes.fold(0xcbf2_9ce4_8422_2325, hash)),
            complete,
        }
    }

    fn read(folder: &Path) -> Result<Option<Self>, Error> {
        let path = folder.join(MARK);
        match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed("cannot read", &path)(error)),
            Ok(text) => serde_json::from_slice(&text)
                .map(Some)
                .map_err(|error| Error::tree(path, format!("is not a marker file of documents: {error}"))),
        }
    }

    /// Replaces the mark as a whole.
    fn write(&self, folder: &Path) -> Result<(), Error> {
        let (path, partial) = (folder.join(MARK), folder.join(format!("{MARK}.partial")));
        let text = serde_json::to_string_pretty(self).unwrap_or_default() + "\n";
        let written = fs::write(&partial, text).and_then(|()| fs::rename(&partial, &path));
        written.map_err(failed("cannot write", &path))
    }
}

fn failed(doing: &str, path: &Path) -> impl FnOnce(io::Error) -> Error + use<> {
    Error::system(format!("{}: {doing}", path.display()))
}

/// Whether a folder was laid out, or was there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaidOut {
    /// All documents were written.
    Written,
    /// The same documents were there, whole.
    There,
}

/// Writes the documents to `folder`, which is created if absent. `progress` is called with the bytes of each. A marker
/// file names the documents and states whether the tree is complete. After a failure the files are removed. An incomplete
/// tree of an earlier crash is rewritten.
///
/// # Errors
/// The folder holds something else, or is too small; the system refuses.
pub fn lay_out(
    documents: &Documents,
    folder: &Path,
    mut progress: impl FnMut(u64),
) -> Result<LaidOut, Error> {
    let wanted = Mark::of(documents, true);
    let made = !folder.exists();
    if !made {
        match Mark::read(folder)? {
            Some(mark) if mark == wanted => return sizes_agree(documents, folder).map(|()| LaidOut::There),
            Some(mark) if mark == Mark::of(documents, false) => {}
            Some(mark) => {
                let reason = format!(
                    "holds {} documents of class {} and seed {}, in another layout; remove it, or name another folder",
                    mark.documents, mark.class, mark.seed
                );
                return Err(Error::tree(folder, reason));
            }
            None => must_be_empty(folder)?,
        }
    }
    fs::create_dir_all(folder).map_err(failed("cannot make the folder", folder))?;
    let laid_out = has_room(documents, folder).and_then(|()| write(documents, folder, &mut progress));
    if let Err(error) = laid_out {
        remove_documents(documents, folder, made);
        return Err(error);
    }
    wanted.write(folder).map(|()| LaidOut::Written)
}

fn must_be_empty(folder: &Path) -> Result<(), Error> {
    let entries = fs::read_dir(folder).map_err(failed("cannot be listed", folder))?;
    for entry in entries {
        let name = entry.map_err(failed("cannot be listed", folder))?.file_name();
        if name != LOST {
            let reason = format!("holds {}; name an empty or a new folder", name.display());
            return Err(Error::tree(folder, reason));
        }
    }
    Ok(())
}

/// Whether all documents are there in their size; their bytes are [`check`]'s.
fn sizes_agree(documents: &Documents, folder: &Path) -> Result<(), Error> {
    for (number, size) in (0..).zip(documents.sizes_bytes()) {
        let path = folder.join(documents.path(number));
        let found = fs::metadata(&path).map_err(failed("cannot be read", &path))?.len();
        if found != *size {
            let reason = format!("has {found} bytes, expected {size}; remove the folder and write it again");
            return Err(Error::tree(path, reason));
        }
    }
    Ok(())
}

fn has_room(documents: &Documents, folder: &Path) -> Result<(), Error> {
    let available =
        space::of(folder).map_err(failed("cannot tell how much space is free", folder))?.available_bytes;
    // Space of an incomplete tree counts as free: its files are overwritten.
    let there = |number| fs::metadata(folder.join(documents.path(number))).map_or(0, |file| file.len());
    let half = Mark::read(folder)?.is_some();
    let taken: u64 = if half { (0..documents.sizes_bytes().len() as u32).map(there).sum() } else { 0 };
    let need = documents.total_bytes() - taken.min(documents.total_bytes());
    if need > available {
        let reason = format!(
            "has {available} bytes free, and the documents need {need}; write fewer: --with files.count=N"
        );
        return Err(Error::tree(folder, reason));
    }
    Ok(())
}

fn write(documents: &Documents, folder: &Path, progress: &mut impl FnMut(u64)) -> Result<(), Error> {
    Mark::of(documents, false).write(folder)?;
    let mut filler = Filler::default();
    let mut last = None;
    for (number, size) in (0..).zip(documents.sizes_bytes()) {
        let within = documents.folder(number);
        if let Some(within) = &within
            && last != Some(within.clone())
        {
            let path = folder.join(within);
            fs::create_dir_all(&path).map_err(failed("cannot make the folder", &path))?;
        }
        last = within;
        let path = folder.join(documents.path(number));
        filler.file(&path, documents.key(number), *size).map_err(failed("cannot write", &path))?;
        progress(*size);
    }
    let opened = File::open(folder).map_err(failed("cannot be opened", folder))?;
    // One call for the whole file system: a call for each of many small files would take minutes.
    syncfs(&opened).map_err(|error| failed("cannot be made durable", folder)(error.into()))
}

/// Removes the written files. If a file cannot be removed, the marker remains and states that the tree is incomplete.
fn remove_documents(documents: &Documents, folder: &Path, made: bool) {
    let mut folders = BTreeSet::new();
    let mut removed = true;
    for number in 0..documents.sizes_bytes().len() as u32 {
        folders.extend(documents.folder(number));
        let gone = fs::remove_file(folder.join(documents.path(number)));
        removed &= gone.is_ok_and(|()| true) || !folder.join(documents.path(number)).exists();
    }
    for within in folders {
        // Files that were not made yet do not exist.
        let _ = fs::remove_dir(folder.join(within));
    }
    if removed {
        let _ = fs::remove_file(folder.join(format!("{MARK}.partial")));
        let _ = fs::remove_file(folder.join(MARK));
        if made {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Result of the check of a tree.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Checked {
    /// Documents that are as they should be.
    pub right: usize,
    /// Total bytes of these documents.
    pub bytes: u64,
    /// Number of wrong entries.
    pub wrong: usize,
    /// The first wrong entries, with their problems.
    pub named: Vec<String>,
}

impl Checked {
    fn wrong(&mut self, what: String) {
        self.wrong += 1;
        if self.named.len() < NAMED {
            self.named.push(what);
        }
    }
}

/// Compares every byte of a tree and finds entries that do not belong to it. A tree without a marker file, as laid out by
/// `weir run`, is compared as well.
///
/// # Errors
/// The folder cannot be read.
pub fn check(documents: &Documents, folder: &Path) -> Result<Checked, Error> {
    let mut checked = Checked::default();
    if let Some(mark) = Mark::read(folder)?
        && mark != Mark::of(documents, true)
    {
        let what = if mark == Mark::of(documents, false) { "an incomplete tree" } else { "other documents" };
        checked.wrong(format!("{MARK}: marks {what}"));
    }
    let mut known = BTreeSet::from([PathBuf::from(MARK), PathBuf::from(LOST)]);
    for (number, size) in (0..).zip(documents.sizes_bytes()) {
        let path = documents.path(number);
        known.extend(documents.folder(number).map(PathBuf::from));
        match compare(documents, number, *size, &folder.join(&path)) {
            Ok(None) => {
                checked.right += 1;
                checked.bytes += size;
            }
            Ok(Some(what)) => checked.wrong(format!("{path}: {what}")),
            Err(error) => checked.wrong(format!("{path}: {error}")),
        }
        known.insert(path.into());
    }
    for path in list(folder, Path::new("")).map_err(failed("cannot be listed", folder))? {
        if !known.contains(&path) {
            checked.wrong(format!("{}: does not belong here", path.display()));
        }
    }
    Ok(checked)
}

/// The problem of a document, if it has one.
fn compare(documents: &Documents, number: u32, size: u64, path: &Path) -> io::Result<Option<String>> {
    let mut file = File::open(path)?;
    let found = file.metadata()?.len();
    if found != size {
        return Ok(Some(format!("{found} bytes, expected {size}")));
    }
    let key = documents.key(number);
    let mut piece = vec![0; 1 << 20];
    let mut at = 0;
    loop {
        let count = file.read(&mut piece)?;
        if count == 0 {
            return Ok((at != size).then(|| format!("ends after {at} bytes")));
        }
        if !key.matches(at, &piece[..count]) {
            return Ok(Some(format!("wrong bytes at byte {at} or at most {count} after it")));
        }
        at += count as u64;
    }
}

/// Everything in a folder and in the folders within it, relative to `root`.
fn list(root: &Path, within: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root.join(within))? {
        let entry = entry?;
        let path = within.join(entry.file_name());
        if entry.file_type()?.is_dir() && entry.file_name() != LOST {
            found.extend(list(root, &path)?);
        }
        found.push(path);
    }
    Ok(found)
}
