//! The state folder of a command: whole paths, and only folders that are weir's.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, FileType};
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use clap::builder::{PathBufValueParser, TypedValueParser as _};
use weir_host::owned::Owner;

use crate::exit::bad_input;

/// Names that weir and its playbooks write in a state folder; others have a known ending: [`kind`].
const NAMES: [&str; 26] = [
    ".weir-lock",
    "apache-root",
    "cgroups",
    "clusters",
    "coordination.token",
    "devices",
    "hosts",
    "id",
    "io-controller.json",
    "journal",
    "kernel",
    "mariadb-data",
    // Former name of coordination.token.
    "meeting.token",
    "mnt",
    "network.json",
    "nginx-root",
    "owner.json",
    "postgresql-data",
    "processes",
    "queues",
    "scheduler",
    "services",
    "snapshots",
    "specs",
    "testbed.json",
    "tracing",
];

/// State folder of a command.
#[derive(clap::Args)]
pub struct StateArgs {
    /// State folder: the record of devices, mounts, processes and settings to undo
    #[arg(long = "state", value_name = "DIR", default_value = "/run/weir", global = true)]
    #[arg(value_parser = PathBufValueParser::new().try_map(whole))]
    folder: PathBuf,
}

impl StateArgs {
    /// The folder, for a command that only reads.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder, for a command that writes or removes something there.
    ///
    /// # Errors
    /// It has files that are not weir's, or other users may write there. Nothing was changed.
    pub fn own(&self) -> anyhow::Result<&Path> {
        check(&self.folder).map_err(bad_input)?;
        Ok(&self.folder)
    }

    /// The same, and marks it as a state folder from here on.
    ///
    /// # Errors
    /// As of [`StateArgs::own`]; or it cannot be written.
    pub fn adopt(&self) -> anyhow::Result<&Path> {
        let folder = self.own()?;
        Owner::of_state(folder)?;
        Ok(folder)
    }
}

/// A path from the root, without links and `..` as far as it is there: records are read from other folders, and
/// the kernel's table
/// of mounts knows no others.
///
/// # Errors
/// It leads through a folder that is not there and back.
pub fn whole(path: PathBuf) -> Result<PathBuf, String> {
    let path = std::path::absolute(&path).map_err(|error| error.to_string())?;
    let mut rest: Vec<OsString> = Vec::new();
    let mut at = path.as_path();
    loop {
        match at.canonicalize() {
            Ok(mut real) => {
                real.extend(rest.iter().rev());
                return Ok(real);
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            // It cannot be read: the first use reports why.
            Err(_) => return Ok(path),
        }
        let (Some(name), Some(above)) = (at.file_name(), at.parent()) else {
            return Err(format!("{} is not there; name the folder without `..`", at.display()));
        };
        rest.push(name.to_owned());
        at = above;
    }
}

/// Whether weir may write and remove in a folder: it is not there, is empty, bears the id of a state folder, or
/// holds nothing but
/// what an earlier weir wrote in one. Touches nothing.
fn check(folder: &Path) -> Result<(), String> {
    let place = folder.display();
    let found = match fs::metadata(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        found => found.map_err(|error| format!("cannot look at {place}: {error}"))?,
    };
    if !found.is_dir() {
        return Err(format!("{place}: is no folder. Name one with --state"));
    }
    let user = rustix::process::geteuid().as_raw();
    if found.uid() != 0 && found.uid() != user {
        return Err(format!(
            "{place}: belongs to another user (found uid {}, expected 0 or {user}), who could change what weir undoes: chown root {place}, or name another folder with --state",
            found.uid()
        ));
    }
    if found.mode() & 0o002 != 0 {
        return Err(format!(
            "{place}: all users may write there (mode {:o}), and could change what weir undoes: chmod o-w {place}, or name another folder with --state",
            found.mode() & 0o7777
        ));
    }
    if Owner::find(folder).map_err(|error| error.to_string())?.is_some() {
        return Ok(());
    }
    check_names(folder)
}

/// Kind of a name in a state folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It is a state folder.
    Sure,
    /// It is none of weir's.
    Foreign,
    /// Nothing: weir writes such ones beside others.
    Open,
}

fn check_names(folder: &Path) -> Result<(), String> {
    let place = folder.display();
    let failed = |error: std::io::Error| format!("cannot read {place}: {error}");
    let (mut kinds, mut unknown) = (Vec::new(), BTreeSet::new());
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let kind = kind(&entry.path(), &name, entry.file_type().map_err(failed)?);
        if kind != Kind::Sure {
            unknown.insert(name);
        }
        kinds.push(kind);
    }
    let is_weirs = kinds.contains(&Kind::Sure) && !kinds.contains(&Kind::Foreign);
    if kinds.is_empty() || is_weirs {
        return Ok(());
    }
    let some: Vec<String> = unknown.iter().take(3).map(|name| format!("{name:?}")).collect();
    Err(format!(
        "{place}: is no state folder of weir (found {}{}, expected an empty folder, or one with a file `id`). It is left as it is: name a folder that is empty or not there, such as --state /run/weir",
        some.join(", "),
        if unknown.len() > some.len() { ", ..." } else { "" }
    ))
}

fn kind(path: &Path, name: &str, file_type: FileType) -> Kind {
    if NAMES.contains(&name) {
        return Kind::Sure;
    }
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    match ending {
        // A server's own record.
        "json" if weir_blockserver::State::load(path).is_ok() => Kind::Sure,
        "sock" | "nbd" if file_type.is_socket() => Kind::Open,
        "mnt" if file_type.is_dir() => Kind::Open,
        "log" | "new" | "partial" if file_type.is_file() => Kind::Open,
        _ => Kind::Foreign,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn place() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    #[test]
    fn a_path_becomes_whole_and_links_and_dots_are_followed() {
        let place = place();
        let root = place.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("real/inner")).unwrap();
        std::os::unix::fs::symlink(root.join("real/inner"), root.join("link")).unwrap();
        let found = whole(root.join("link/../new/state")).unwrap();
        assert_eq!(found, root.join("real/new/state"));
        assert_eq!(whole("state".into()).unwrap(), std::env::current_dir().unwrap().join("state"));
        assert!(whole(root.join("nonesuch/../state")).unwrap_err().contains("nonesuch"));
    }

    #[test]
    fn a_folder_with_files_of_others_is_refused_by_name() {
        let place = place();
        check(place.path()).unwrap();
        check(&place.path().join("nonesuch")).unwrap();
        for name in ["photos", "package.json", "notes.log", ".bashrc"] {
            fs::write(place.path().join(name), "{}").unwrap();
            let refused = check(place.path()).unwrap_err();
            assert!(refused.contains(&format!("{name:?}")) && refused.contains("--state"), "{refused}");
            fs::remove_file(place.path().join(name)).unwrap();
        }
        // Nor does one name of weir's make it a state folder.
        for name in ["devices", "photos"] {
            fs::create_dir(place.path().join(name)).unwrap();
        }
        assert!(check(place.path()).unwrap_err().contains("photos"));
        assert!(check(Path::new("/")).is_err() && check(Path::new("/etc/passwd")).is_err());
    }

    #[test]
    fn a_state_folder_of_an_earlier_weir_is_taken() {
        let place = place();
        for name in ["owner.json", "testbed.json", "network.json", "nginx.log"] {
            fs::write(place.path().join(name), "{}").unwrap();
        }
        for name in ["journal", "devices", "services", "clusters", "snapshots", "mnt", "specs"] {
            fs::create_dir(place.path().join(name)).unwrap();
        }
        check(place.path()).unwrap();
    }

    #[test]
    fn one_with_an_id_is_weirs_whatever_else_it_holds_unless_others_may_write() {
        let place = place();
        Owner::of_state(place.path()).unwrap();
        fs::write(place.path().join("of-a-later-version"), "").unwrap();
        check(place.path()).unwrap();
        for mode in [0o777, 0o1777] {
            fs::set_permissions(place.path(), fs::Permissions::from_mode(mode)).unwrap();
            let refused = check(place.path()).unwrap_err();
            assert!(refused.contains("chmod o-w"), "{refused}");
        }
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(place.path().join("id"), "of my own").unwrap();
        assert!(check(place.path()).unwrap_err().contains("is no id of a state folder"));
        if std::os::unix::fs::chown(place.path(), Some(12345), None).is_ok() {
            assert!(check(place.path()).unwrap_err().contains("found uid 12345"));
        }
    }
}
