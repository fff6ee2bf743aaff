//! Data of a site: the snapshot copied to the run's file system before each run.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use weir_study::{Run, RunService};

use super::database::hot_folder;
use super::kept::Kept;
use crate::Error;
use crate::context::child_processes;
use crate::context::journal::{Change, Journal};
use crate::files::free_space::free_bytes;
use crate::files::walk::{each_file, forget_pages};

/// Data of a site in place.
pub(crate) struct Laid {
    /// Name of the service.
    pub(crate) name: String,
    /// The data folder.
    pub(crate) data: PathBuf,
    /// Size of the data folder, in bytes on the disk.
    pub(crate) data_bytes: u64,
    /// The tmpfs with tables in memory.
    pub(crate) hot: Option<PathBuf>,
    /// Its size, in bytes.
    pub(crate) hot_bytes: u64,
    /// Snapshot of which the data are a copy.
    pub(crate) kept: Kept,
}

/// Copies a site's snapshot to the file system of its classes. `target` gives the run's folder on the file system of a device.
///
/// # Errors
/// There is too little space, or its classes are on different file systems.
pub(crate) fn lay_out(
    run: &Run,
    service: &RunService,
    kept: Kept,
    state: &Path,
    target: impl Fn(&str) -> PathBuf,
    journal: &mut Journal,
) -> Result<Laid, Error> {
    let mut roots: Vec<PathBuf> = run.visitors(&service.name).map(|class| target(&class.device)).collect();
    roots.dedup();
    let [root] = roots.as_slice() else {
        return Err(Error::Refused(format!(
            "site {}: its classes are on different file systems. Use architecture `integrated`",
            service.name
        )));
    };
    // A class's folder has no dot in its name.
    let data = root.join(format!("{}.database", service.name));
    let from = kept.folder.join("data");
    let data_bytes = bytes_on_disk(&from)?;
    let free_bytes = free_bytes(root)?;
    if data_bytes > free_bytes {
        return Err(Error::Failed(format!(
            "site {}: too little space for its data ({} MiB; {} has {} MiB free). Raise storage.size_mib",
            service.name,
            data_bytes.div_ceil(1 << 20),
            root.display(),
            free_bytes >> 20
        )));
    }
    weir_daemons::lay_out(&from, &data)?;
    // The run's memory limit is for its own files.
    forget_pages(&from)?;
    let (mut hot, mut hot_bytes) = (None, 0);
    let from = kept.folder.join("hot");
    if from.is_dir() {
        let path = hot_folder(state, service);
        hot_bytes = bytes_on_disk(&from)?;
        fs::create_dir_all(&path).map_err(Error::io("cannot make", &path))?;
        journal.note(Change::Folder(path.clone()))?;
        let source = format!("weir-hot-{}", service.name);
        journal.note(Change::Mounted { point: path.clone(), source: source.clone().into() })?;
        // The database writes new versions of changed rows, and keeps old ones for a while.
        let options = format!("size={},mode=0700,noatime", 2 * hot_bytes + (64 << 20));
        child_processes::run(
            Command::new("mount").args(["-t", "tmpfs", "-o", &options, &source]).arg(&path),
        )?;
        weir_daemons::lay_out(&from, &path)?;
        forget_pages(&from)?;
        hot = Some(path);
    }
    Ok(Laid { name: service.name.clone(), data, data_bytes, hot, hot_bytes, kept })
}

/// Bytes written by copying a folder, without holes.
fn bytes_on_disk(folder: &Path) -> Result<u64, Error> {
    let mut sum = 0;
    each_file(folder, &mut |path| {
        let found = fs::metadata(path)?;
        sum += found.len().min(found.blocks() * 512);
        Ok(())
    })?;
    Ok(sum)
}
