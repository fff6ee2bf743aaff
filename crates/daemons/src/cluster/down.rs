//! Removal of a cluster: processes, mounts, data in marked folders, record.

use std::fs;
use std::path::Path;

use weir_host::owned::{self, Owner};

use super::record::Cluster;
use crate::Error;
use crate::process;
use crate::server_storage::Holder;

/// Takes a cluster down: clients, daemons, mounts of devices, data in marked folders, and the cluster's own folder. Without a
/// cluster nothing happens. Returns a line for each removed part, and for each part without a marker, which is left.
///
/// # Errors
/// [`Error::Refused`] if the name is not a cluster's name: nothing was changed; [`Error::Failed`] if something is in use, or the
/// cluster's folder in the state folder has no marker: the record stays.
pub fn down(state: &Path, name: &str) -> Result<Vec<String>, Error> {
    check_name(name)?;
    let mut gone = Vec::new();
    let folder = Cluster::folder(state, name);
    for mut process in process::all(state)? {
        // The last started first: clients before servers.
        if process.launch.name.starts_with(&format!("{name}.")) || process.launch.folder.starts_with(&folder)
        {
            if process.launch.mounts.is_none() {
                // The data are removed too: writing them out would only take time.
                process.launch.stop_signal = libc::SIGKILL;
            }
            process::stop(state, &process)?;
            gone.push(format!("process {}", process.launch.name));
        }
    }
    if let Some(cluster) = Cluster::load(state, name)? {
        for server in &cluster.servers {
            let Some(storage) = &server.storage else { continue };
            let holder = Holder { state, purpose: &cluster.purpose(server) };
            let is_cleared =
                storage.clear(holder, &folder.join(&server.host).join("brick")).map_err(as_failure)?;
            if let (false, Some(path), true) = (is_cleared, storage.path(), server.data.is_some()) {
                gone.push(format!("nothing in {}, which bears no marker of this cluster", path.display()));
            }
        }
        gone.push(format!("cluster {name}"));
    }
    remove_folder(state, &folder).map_err(as_failure)?;
    let _ = fs::remove_dir(state.join("clusters"));
    Ok(gone)
}

/// A refusal after the first change is a failure.
fn as_failure(error: Error) -> Error {
    Error::Failed(error.to_string())
}

/// The name is the name of a folder and must not lead out of the parent folder.
fn check_name(name: &str) -> Result<(), Error> {
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    if is_plain && !name.is_empty() && !name.starts_with('.') {
        return Ok(());
    }
    Err(Error::Refused(format!(
        "`{name}` is not a cluster's name (expected letters, digits, `-`, `_` and `.`)"
    )))
}

/// Removes a cluster's folder if it is marked, and never into a mount.
fn remove_folder(state: &Path, folder: &Path) -> Result<(), Error> {
    if !folder.try_exists().map_err(Error::io("cannot look at", folder))? {
        return Ok(());
    }
    let owner = Owner::of_state(state)?;
    // A killed process may have made the folder and not marked it.
    if owned::check_empty(folder).is_ok() {
        owned::claim(folder, &owner, "a cluster")?;
    }
    owned::remove(folder, &owner)
}

/// Takes all clusters of a state folder down. A failure does not stop the others.
///
/// # Errors
/// As of [`down`].
pub fn down_all(state: &Path) -> Result<Vec<String>, Error> {
    let entries = fs::read_dir(state.join("clusters")).into_iter().flatten().flatten();
    let (mut gone, mut failures) = (Vec::new(), Vec::new());
    for entry in entries {
        match down(state, &entry.file_name().to_string_lossy()) {
            Ok(lines) => gone.extend(lines),
            Err(error) => failures.push(error.to_string()),
        }
    }
    let _ = fs::remove_dir(state.join("clusters"));
    if failures.is_empty() { Ok(gone) } else { Err(Error::Failed(failures.join("; "))) }
}
