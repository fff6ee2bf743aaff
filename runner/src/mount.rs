//! Making, mounting, checking and unmounting file systems.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use weir_studies::FileSystem;

use crate::Error;

/// One line of `/proc/self/mountinfo`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mounted {
    pub(crate) point: PathBuf,
    pub(crate) fs_type: String,
    pub(crate) source: PathBuf,
}

/// Everything that is mounted, in order.
pub(crate) fn mounts() -> Vec<Mounted> {
    parse(&fs::read_to_string("/proc/self/mountinfo").unwrap_or_default())
}

fn parse(mountinfo: &str) -> Vec<Mounted> {
    let line = |line: &str| {
        let (left, right) = line.split_once(" - ")?;
        let mut right = right.split(' ');
        Some(Mounted {
            point: unescape(left.split(' ').nth(4)?),
            fs_type: right.next()?.to_owned(),
            source: unescape(right.next()?),
        })
    };
    mountinfo.lines().filter_map(line).collect()
}

/// The kernel writes blanks and backslashes in paths as `\040`.
fn unescape(text: &str) -> PathBuf {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let octal = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(code) if byte == b'\\' => {
                bytes.push(code);
                rest = &after[3..];
            }
            _ => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    PathBuf::from(String::from_utf8_lossy(&bytes).into_owned())
}

/// What is mounted at exactly this point (the topmost, if there are several).
pub(crate) fn mounted_at(point: &Path) -> Option<Mounted> {
    mounts().into_iter().rev().find(|mount| mount.point == point)
}

/// Makes a file system on a device.
pub(crate) fn make(filesystem: &FileSystem, device: &Path) -> Result<(), Error> {
    let Some((program, arguments)) = filesystem.make.split_first() else { return Ok(()) };
    run(Command::new(program).args(arguments).arg(device))
}

/// Mounts a file system and checks that it is the one that was wanted.
pub(crate) fn mount(
    filesystem: &FileSystem,
    source: &Path,
    point: &Path,
    size_mib: u64,
) -> Result<(), Error> {
    let Some(kind) = &filesystem.mount_type else { return Ok(()) };
    let mut options = filesystem.mount_options.clone();
    if !filesystem.on_device {
        options = format!("{options},size={size_mib}m");
    }
    run(Command::new("mount").args(["-t", kind, "-o", &options]).arg(source).arg(point))?;
    check(filesystem, source, point).map_err(Error::Failed)
}

/// Whether what is mounted is what should be: a mount that failed quietly would measure the file system below.
pub(crate) fn check(filesystem: &FileSystem, source: &Path, point: &Path) -> Result<(), String> {
    let Some(wanted) = &filesystem.mount_type else { return Ok(()) };
    match mounted_at(point) {
        None => Err(format!("{}: nothing is mounted; {wanted} should be", point.display())),
        Some(found) if !filesystem.is_of_type(&found.fs_type) => {
            Err(format!("{}: {} is mounted; {wanted} should be", point.display(), found.fs_type))
        }
        Some(found) if filesystem.on_device && found.source != source => {
            let (found, wanted) = (found.source.display(), source.display());
            Err(format!("{}: {found} is mounted; {wanted} should be", point.display()))
        }
        Some(_) => Ok(()),
    }
}

/// Unmounts; nothing being mounted is fine. A busy mount is given a moment: a dying process may hold it.
pub(crate) fn unmount(point: &Path) -> Result<(), String> {
    let mut last = String::new();
    for attempt in 0..20 {
        if mounted_at(point).is_none() {
            return Ok(());
        }
        if attempt > 0 {
            sleep(Duration::from_millis(100));
        }
        match Command::new("umount").arg(point).output() {
            Ok(output) => last = String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            Err(error) => last = error.to_string(),
        }
    }
    if mounted_at(point).is_none() { Ok(()) } else { Err(last) }
}

/// Runs a command to its end; its words become the error.
pub(crate) fn run(command: &mut Command) -> Result<(), Error> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            Error::Failed(format!("{name}: not installed; install the package that brings it"))
        }
        _ => Error::Failed(format!("{name}: {error}")),
    })?;
    if output.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&output.stderr);
    Err(Error::Failed(format!("{name} failed ({}): {}", output.status, words.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mountinfo_is_read_with_its_escapes_and_optional_fields() {
        let text = "36 35 98:0 /mnt1 /mnt/a\\040b rw,noatime master:1 shared:2 - ext4 /dev/loop3 rw,errors=continue\n\
                    37 35 0:21 / /proc rw - proc proc rw\nnonsense\n";
        let found = parse(text);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].point, PathBuf::from("/mnt/a b"));
        assert_eq!((found[0].fs_type.as_str(), found[0].source.to_str()), ("ext4", Some("/dev/loop3")));
    }

    #[test]
    fn what_is_not_mounted_is_unmounted_already() {
        assert_eq!(unmount(Path::new("/nonexistent")), Ok(()));
    }

    #[test]
    fn a_command_that_is_absent_or_fails_says_so() {
        assert!(run(&mut Command::new("mkfs.nonesuch")).unwrap_err().to_string().contains("not installed"));
        assert!(run(&mut Command::new("false")).unwrap_err().to_string().contains("failed"));
    }
}
