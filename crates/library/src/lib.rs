//! Studies and workloads that weir ships, embedded in the binary.
//!
//! Each version writes them once to a cache folder of the user. A project overrides them by name.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// The folder of the library, with `studies/` and `workloads/`, below a cache folder; writes it if it is not there.
///
/// The folder is renamed into place when it is complete. Its files are read-only: an edited copy belongs in a project.
///
/// # Errors
/// The cache folder cannot be written.
pub fn unpack(cache: &Path) -> io::Result<PathBuf> {
    let folder = cache.join(format!("library-{SUM}"));
    if folder.is_dir() {
        return Ok(folder);
    }
    fs::create_dir_all(cache)?;
    let partial = tempfile::Builder::new().prefix(".library-").tempdir_in(cache)?;
    for (name, content) in FILES {
        let path = partial.path().join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&path, content)?;
        fs::set_permissions(&path, Permissions::from_mode(0o444))?;
    }
    fs::set_permissions(partial.path(), Permissions::from_mode(0o755))?;
    match fs::rename(partial.path(), &folder) {
        Ok(()) => {
            // It has its name: there is nothing to remove.
            let _ = partial.keep();
            Ok(folder)
        }
        // Another process was faster.
        Err(_) if folder.is_dir() => Ok(folder),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_written_once_and_whole() {
        let cache = tempfile::tempdir().unwrap();
        let folder = unpack(cache.path()).unwrap();
        assert_eq!(unpack(cache.path()).unwrap(), folder);
        assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 1, "nothing partial is left");
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        assert!(FILES.len() > 80, "{}", FILES.len());
        for (name, content) in FILES {
            assert_eq!(fs::read(folder.join(name)).unwrap(), *content, "{name}");
            assert_eq!(fs::read(root.join(name)).unwrap(), *content, "{name}");
        }
        assert!(folder.join("studies/quick.yml").is_file() && folder.join("workloads/tables").is_dir());
    }
}
