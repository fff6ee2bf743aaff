//! Removal of a cluster: processes, mounts, data in marked folders, record.

use std::fs;
use std::path::Path;

use weir_host::owned::{self, Owner};

use super::record::Cluster;
use crate::Error;
use crate::process;
use crate::server_storage::Holder;

/// Takes a cluster down: clients that are left, daemons, mounts of devices, what its servers put into marked folders, its own
/// folder. None being there is fine. Says what went, and what was left because weir had not made it.
///
/// # Errors
/// [`Error::Refused`] if the name is none of a cluster: nothing was touched; [`Error::Failed`] if something is still in use, or
/// its folder in the state folder bears no marker: what is left stays recorded.
pub fn down(state: &Path, name: &str) -> Result<Vec<String>, Error> {
    check_name(name)?;
    let mut gone = Vec::new();
    let folder = Cluster::folder(state, name);
    for mut process in process::all(state)? {
        // The last started first: clients before what serves them.
        if process.launch.name.starts_with(&format!("{name}.")) || process.launch.folder.starts_with(&folder)
        {
            if process.launch.mounts.is_none() {
                // Its data go with it: nothing is worth waiting for until it is written out.
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

/// Something was done before: it is no refusal any more.
fn as_failure(error: Error) -> Error {
    Error::Failed(error.to_string())
}

/// A name is a folder's: not a way to another place.
fn check_name(name: &str) -> Result<(), Error> {
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    if is_plain && !name.is_empty() && !name.starts_with('.') {
        return Ok(());
    }
    Err(Error::Refused(format!("`{name}` is not a cluster's name (expected letters, digits, - and _)")))
}

/// Removes a cluster's folder if it is marked, and never into a mount.
fn remove_folder(state: &Path, folder: &Path) -> Result<(), Error> {
    if !folder.try_exists().map_err(Error::io("cannot look at", folder))? {
        return Ok(());
    }
    let owner = Owner::of_state(state)?;
    // A process that was killed had made the folder, and nothing in it.
    if owned::check_empty(folder).is_ok() {
        owned::claim(folder, &owner, "a cluster")?;
    }
    owned::remove(folder, &owner)
}

/// Takes all clusters of a state folder down; one that fails does not keep the others.
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
