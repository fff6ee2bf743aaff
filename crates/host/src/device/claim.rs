//! Exclusive use of a disk, from the check to the end.

use std::fs::{self, File};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::identity::Identity;
use super::users;
use crate::Error;

/// udev and blkid open a disk for a moment after whatever was written to it.
const PASSING_USERS: Duration = Duration::from_secs(3);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A whole disk that this process holds.
///
/// The kernel gives an exclusive open (`O_EXCL`) to one holder: a mount in any namespace, swap, md, dm, ZFS, bcache and
/// `mkfs` take the same claim. A second, plain descriptor stays open for as long as this lives, so that the node cannot come to
/// mean another disk and a loop device cannot be given another file.
#[derive(Debug)]
pub struct Claim {
    identity: Identity,
    listed: PathBuf,
    number: u64,
    pinned: File,
    exclusive: Option<File>,
}

impl Claim {
    /// Holds the disk that a path leads to.
    ///
    /// # Errors
    /// [`Error::Refused`] if it is no whole disk, or anybody else uses it or a part of it: the text says who.
    pub fn take(path: &Path) -> Result<Self, Error> {
        let mut claim = Self::pin(path)?;
        claim.exclude()?;
        Ok(claim)
    }

    /// Keeps the disk that a path leads to from becoming another one, but does not exclude others: for devices that a server
    /// has mounted.
    ///
    /// # Errors
    /// [`Error::Refused`] if it is no whole disk.
    pub fn pin(path: &Path) -> Result<Self, Error> {
        let found = fs::metadata(path).map_err(Error::io("cannot look at", path))?;
        if !found.file_type().is_block_device() {
            return Err(Error::Refused(format!("{}: is no block device", path.display())));
        }
        let pinned = File::open(path).map_err(Error::io("cannot open", path))?;
        let number = pinned.metadata().map_err(Error::io("cannot look at", path))?.rdev();
        let identity = Identity::of(&pinned, path)?;
        Ok(Claim { identity, listed: path.to_owned(), number, pinned, exclusive: None })
    }

    /// Takes the exclusive claim, or takes it again after [`Claim::lend`].
    ///
    /// # Errors
    /// [`Error::Refused`] if another program uses the disk.
    pub fn exclude(&mut self) -> Result<(), Error> {
        let began = Instant::now();
        while self.exclusive.is_none() {
            let refused = match self.try_exclude() {
                Ok(file) => match users::find(&self.identity.kernel_name) {
                    None => {
                        self.exclusive = Some(file);
                        break;
                    }
                    Some(user) => user,
                },
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                    users::find(&self.identity.kernel_name)
                        .unwrap_or_else(|| "another program holds it".to_owned())
                }
                Err(error) => return Err(Error::io("cannot open", &self.listed)(error)),
            };
            if began.elapsed() > PASSING_USERS {
                return Err(Error::Refused(format!(
                    "{} is in use: {refused}. Nothing on it was changed; end that use, or list another disk",
                    self.identity.describe()
                )));
            }
            sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    /// Opens the node again: an exclusive open through `/proc` of the pinned descriptor would do, too, but needs `/proc`.
    fn try_exclude(&self) -> std::io::Result<File> {
        let file = File::options().read(true).write(true).custom_flags(libc::O_EXCL).open(&self.listed)?;
        if file.metadata()?.rdev() == self.number {
            Ok(file)
        } else {
            Err(std::io::Error::from_raw_os_error(libc::ENODEV))
        }
    }

    /// Identity of the disk.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The path by which it was opened.
    #[must_use]
    pub fn listed(&self) -> &Path {
        &self.listed
    }

    /// The disk itself, whatever its node leads to by now; for writing only while the exclusive claim is held.
    #[must_use]
    pub fn file(&self) -> &File {
        self.exclusive.as_ref().unwrap_or(&self.pinned)
    }

    /// Whether the exclusive claim is held.
    #[must_use]
    pub fn is_exclusive(&self) -> bool {
        self.exclusive.is_some()
    }

    /// Gives up the exclusive claim, for a program that takes it itself (`mkfs`, `mount`, `mdadm`): the kernel allows one holder at a
    /// time. They refuse a disk that another program claimed in between.
    pub fn lend(&mut self) {
        self.exclusive = None;
    }

    /// Checks that the disk has the same serial number, WWN, size and backing file as when it was opened.
    ///
    /// # Errors
    /// [`Error::Refused`] with the difference.
    pub fn verify(&self) -> Result<(), Error> {
        let now = Identity::of(&self.pinned, &self.listed)?;
        match self.identity.difference(&now) {
            None => Ok(()),
            Some(what) => Err(Error::Refused(format!(
                "{} is not the device that it was: {what}",
                self.identity.describe()
            ))),
        }
    }

    /// A command that works on this disk as its standard input, by the path `/proc/self/fd/0`: whatever node or link leads
    /// elsewhere by now, it is the disk that is held.
    ///
    /// # Errors
    /// The descriptor cannot be duplicated.
    pub fn command(&self, program: &str) -> Result<Command, Error> {
        let disk = self.pinned.try_clone().map_err(Error::io("cannot hold", &self.listed))?;
        let mut command = Command::new(program);
        command.stdin(Stdio::from(disk)).env("LC_ALL", "C");
        Ok(command)
    }
}

/// The path of the disk in a [`Claim::command`].
// Not `/dev/stdin`, which only udev makes.
pub(super) const STDIN: &str = "/proc/self/fd/0";
