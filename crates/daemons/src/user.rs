//! Unprivileged users that daemons run as.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::Error;

/// A user of this host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// Name.
    pub name: String,
    /// Number.
    pub uid: u32,
    /// Number of its first group.
    pub gid: u32,
}

impl User {
    /// Finds a user in `/etc/passwd`, where packages add the users of their servers.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn find(name: &str) -> Result<Self, Error> {
        let path = Path::new("/etc/passwd");
        let table = fs::read_to_string(path).map_err(Error::io("cannot read", path))?;
        in_table(&table, name).ok_or_else(|| {
            Error::Refused(format!("this host has no user `{name}`. Install the package that makes it"))
        })
    }

    /// Checks by mode that the user may enter every folder above a path, except `but`, which is opened to the user later.
    ///
    /// # Errors
    /// One may not be entered; the text names it and the remedy.
    pub(crate) fn reaches(&self, path: &Path, but: &Path) -> Result<(), Error> {
        for folder in path.ancestors().skip(1).filter(|folder| *folder != but) {
            let Ok(found) = fs::metadata(folder) else { continue };
            let bit = match (found.uid() == self.uid, found.gid() == self.gid) {
                (true, _) => 0o100,
                (false, true) => 0o010,
                (false, false) => 0o001,
            };
            if found.mode() & bit == 0 {
                return Err(Error::Refused(format!(
                    "user {} cannot enter {} (mode {:o}) on the way to {}. Run chmod o+x on it, or name another folder",
                    self.name,
                    folder.display(),
                    found.mode() & 0o7777,
                    path.display()
                )));
            }
        }
        Ok(())
    }

    /// Makes the user the owner of a path.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(crate) fn own(&self, path: &Path) -> Result<(), Error> {
        std::os::unix::fs::chown(path, Some(self.uid), Some(self.gid))
            .map_err(Error::io("cannot give away", path))
    }
}

fn in_table(table: &str, name: &str) -> Option<User> {
    table.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let [found, _, uid, gid, ..] = fields[..] else { return None };
        (found == name)
            .then(|| Some(User { name: name.to_owned(), uid: uid.parse().ok()?, gid: gid.parse().ok()? }))?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_closed_to_the_user_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let closed = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        fs::set_permissions(&folder, closed).unwrap();
        let stranger = User { name: "stranger".to_owned(), uid: 4_000_001, gid: 4_000_001 };
        let inner = folder.path().join("inner");
        let refused = stranger.reaches(&inner, Path::new("/nonexistent")).unwrap_err().to_string();
        assert!(
            refused.contains(&format!("cannot enter {} (mode 700)", folder.path().display())),
            "{refused}"
        );
        assert!(stranger.reaches(folder.path(), Path::new("/nonexistent")).is_ok());
        assert!(stranger.reaches(&inner, folder.path()).is_ok());
    }

    #[test]
    fn a_user_is_found_by_its_whole_name() {
        let table = "root:x:0:0::/:/bin/sh\npostgres2:x:7:8:::\npostgres:x:105:112:,,,:/var:/bin/sh\n";
        let found = in_table(table, "postgres").unwrap();
        assert_eq!((found.uid, found.gid), (105, 112));
        assert_eq!(in_table(table, "post"), None);
    }
}
