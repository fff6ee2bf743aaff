//! File systems that are mounted before a run: it has a folder of its own there, and nothing else of them is touched.

use std::fs::File;
use std::path::Path;

use weir_study::{FileSystem, Run};

use crate::Error;
use crate::carry_out::Options;
use crate::journal::Journal;
use crate::prepare::MountPoint;
use crate::testbed::Testbed;
use crate::{networked, tree};

/// The file system of a run on this test bed: where the inventory says that one of the network is mounted, it is used as it
/// is, and no servers are started for it.
pub(crate) fn on(filesystem: FileSystem, testbed: &Testbed) -> FileSystem {
    let is_given = filesystem.network.is_some() && testbed.mounts.contains_key(&filesystem.name);
    if is_given { filesystem.given() } else { filesystem }
}

/// Makes the run's folder.
///
/// # Errors
/// The test bed does not say where the file system is, another one is mounted there, a folder of that name is there, or the
/// study would set what is not the run's to set.
pub(crate) fn point(
    run: &Run,
    testbed: &Testbed,
    options: &Options,
    filesystem: &FileSystem,
    journal: &mut Journal,
) -> Result<MountPoint, Error> {
    let name = &filesystem.name;
    let of_servers = run.levels.contains_key("server_memory_mib").then_some("server_memory_mib");
    if let Some(factor) = networked::factor_of_disks(run).or(of_servers) {
        return Err(Error::Refused(format!(
            "{name} is mounted before the run, which cannot set its servers: leave `{factor}` out of the study's factors"
        )));
    }
    let path = testbed.mounts.get(name).ok_or_else(|| {
        Error::Refused(format!(
            "{name} is to be mounted before the run: have its role mount it, or say in the inventory where it is (weir_mounts: {{{name}: /mnt/{name}}})"
        ))
    })?;
    let wanted = filesystem.mount_type.as_deref().unwrap_or_default();
    let found = weir_host::mounts::at(path).ok_or_else(|| {
        Error::Refused(format!("{}: nothing is mounted there; {name} ({wanted}) should be", path.display()))
    })?;
    if !filesystem.is_of_type(&found.fs_type) {
        return Err(Error::Refused(format!(
            "{}: {} is mounted there; {name} ({wanted}) should be",
            path.display(),
            found.fs_type
        )));
    }
    let own = options.own_name(run);
    if let Some(other) = tree::another_of_run(path, &own, &options.state)? {
        return Err(Error::Refused(format!(
            "{}: is there already: another host carries out the same run, or one died before it was undone; look at it, then remove it",
            other.display()
        )));
    }
    let (files, owner) = tree::of_run(path, &own, &options.state, journal)?;
    let device = run.classes.first().map(|class| class.device.clone()).unwrap_or_default();
    Ok(MountPoint { device, source: found.source, path: path.clone(), files, owner: Some(owner) })
}

/// What was written reaches the servers, and this host keeps no page of it. What the servers keep is not known.
///
/// # Errors
/// A file cannot be opened or written back.
pub(crate) fn forget(files: &Path) -> Result<(), Error> {
    tree::each_file(files, &mut |path| File::open(path)?.sync_all())?;
    tree::forget_pages(files)
}
