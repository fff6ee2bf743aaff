//! File systems that are mounted before a run: the run has its own folder there, and touches nothing else.

use std::fs::File;
use std::path::Path;

use crate::Error;
use crate::context::journal::Journal;
use crate::context::run_context::RunContext;
use crate::files::walk;
use crate::filesystem::mount_point::MountPoint;
use crate::filesystem::{network, owned_folder};

/// Makes the run's folder.
///
/// # Errors
/// The testbed does not list the file system, another one is mounted there, a folder of that name exists, or the study varies
/// a setting that this run cannot set.
pub(crate) fn point(context: &RunContext<'_>, journal: &mut Journal) -> Result<MountPoint, Error> {
    let RunContext { run, testbed, options, filesystem, .. } = *context;
    let name = &filesystem.name;
    let of_servers = run.levels.contains_key("server_memory_mib").then_some("server_memory_mib");
    if let Some(factor) = network::factor_of_disks(run).or(of_servers) {
        return Err(Error::Refused(format!(
            "{name} is mounted before the run, and the run cannot set its servers. Leave `{factor}` out of the study's factors"
        )));
    }
    let path = testbed.mounts.get(name).ok_or_else(|| {
        Error::Refused(format!(
            "{name} must be mounted before the run. Use its role, or give its mount point in the inventory (weir_mounts: {{{name}: /mnt/{name}}})"
        ))
    })?;
    let wanted = filesystem.mount_type.as_deref().unwrap_or_default();
    let found = weir_host::mounts::at(path)?.ok_or_else(|| {
        Error::Refused(format!("{}: nothing is mounted there (expected {name}, {wanted})", path.display()))
    })?;
    if !filesystem.is_of_type(&found.fs_type) {
        return Err(Error::Refused(format!(
            "{}: wrong file system (found {}, expected {name}, {wanted})",
            path.display(),
            found.fs_type
        )));
    }
    let own = options.own_name(run);
    if let Some(other) = owned_folder::another_of_run(path, &own, &options.state)? {
        return Err(Error::Refused(format!(
            "{}: the run's folder exists: another host carries out the same run, or was killed before undo. Look at the folder, then remove it",
            other.display()
        )));
    }
    let (files, owner) = owned_folder::of_run(path, &own, &options.state, journal)?;
    let device = run.classes.first().map(|class| class.device.clone()).unwrap_or_default();
    Ok(MountPoint { device, source: found.source, path: path.clone(), files, owner: Some(owner) })
}

/// Writes files back, and drops their pages on this host. The servers' caches are not known.
///
/// # Errors
/// A file cannot be opened or written back.
pub(crate) fn drop_pages(files: &Path) -> Result<(), Error> {
    walk::each_file(files, &mut |path| File::open(path)?.sync_all())?;
    walk::forget_pages(files)
}
