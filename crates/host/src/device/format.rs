//! Making a file system on a disk that is held, and giving the disk back blank afterwards.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::claim::{Claim, STDIN};
use super::contents::{self, check_blank, make_blank, signatures};
use super::identity::Identity;
use crate::Error;

/// Stands in the arguments of `mkfs` for the UUID that it is told to give.
const UUID: &str = "{uuid}";

/// What weir writes to a disk: recorded before it is written, so that it can be told from what others write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// The disk.
    pub device: Identity,
    /// The path by which it was named.
    pub listed: PathBuf,
    /// What tells that the content is weir's.
    pub mark: Mark,
}

/// What tells that the content of a disk is weir's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// A file system, or a member of an array, with this UUID, which this run chose at random.
    Uuid(String),
    /// No file system, but this token in a label at the end of the disk.
    Label(String),
}

/// What became of a disk that weir had written to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GivenBack {
    /// It was weir's, and is blank now.
    Blanked,
    /// Nothing of weir's was on it, or it is gone: there was nothing to do.
    Nothing,
    /// Another disk, or data that weir did not write: unchanged. The text says why.
    Left(String),
    /// It could not be looked at now, such as while it is in use; it may be tried again.
    Failed(String),
}

impl Written {
    /// Record of the mark that will be written to a disk.
    #[must_use]
    pub fn on(claim: &Claim, mark: Mark) -> Self {
        Written { device: claim.identity().clone(), listed: claim.listed().to_owned(), mark }
    }

    /// Makes the disk blank if disk and mark are provably those of the record.
    #[must_use]
    pub fn give_back(&self) -> GivenBack {
        // A removed disk needs nothing; a link or node that leads to another disk is checked below.
        if !self.listed.exists() {
            return GivenBack::Nothing;
        }
        let name = self.device.describe();
        match Identity::at(&self.listed) {
            Err(Error::Io { source, .. }) if source.raw_os_error() == Some(libc::ENXIO) => {
                return GivenBack::Nothing;
            }
            Err(error) => return GivenBack::Left(error.to_string()),
            Ok(now) => {
                if let Some(difference) = self.device.difference(&now) {
                    return GivenBack::Left(format!(
                        "{name} is another device now: its {difference}. It is left as it is"
                    ));
                }
            }
        }
        let claim = match Claim::take(&self.listed) {
            Ok(claim) => claim,
            Err(error) => return GivenBack::Failed(error.to_string()),
        };
        if let Some(difference) = self.device.difference(claim.identity()) {
            return GivenBack::Left(format!(
                "{name} is another device now: its {difference}. It is left as it is"
            ));
        }
        self.give_back_held(&claim).unwrap_or_else(|error| GivenBack::Failed(error.to_string()))
    }

    /// As [`Written::give_back`], of a disk that is held already.
    ///
    /// # Errors
    /// It cannot be read or written.
    pub fn give_back_held(&self, claim: &Claim) -> Result<GivenBack, Error> {
        let name = self.device.describe();
        let found = signatures(claim)?;
        let (Mark::Uuid(token) | Mark::Label(token)) = &self.mark;
        let is_ours = match &self.mark {
            // Nothing else may be there: a partition table beside it was made by another program.
            Mark::Uuid(uuid) if !found.is_empty() => {
                found.iter().all(|signature| signature.uuid.as_ref() == Some(uuid))
            }
            // Without a signature it may have been given back half, before a crash.
            _ => found.is_empty() && contents::has_label(claim, token)?,
        };
        if is_ours {
            make_blank(claim, token)?;
            return Ok(GivenBack::Blanked);
        }
        if !found.is_empty() {
            let kinds: Vec<String> = found
                .iter()
                .map(|signature| match &signature.uuid {
                    Some(uuid) => format!("{} {uuid}", signature.kind),
                    None => signature.kind.clone(),
                })
                .collect();
            return Ok(GivenBack::Left(format!(
                "{name} carries {}, which this weir did not make. It is left as it is",
                kinds.join(", ")
            )));
        }
        match check_blank(claim) {
            Ok(()) => Ok(GivenBack::Nothing),
            Err(Error::Refused(_)) => Ok(GivenBack::Left(format!(
                "{name} holds data without a mark of weir: what a killed mkfs left, or somebody's. It is left as it is"
            ))),
            Err(error) => Err(error),
        }
    }
}

/// A random UUID (version 4), from the kernel.
///
/// # Errors
/// `/proc` is not there.
pub fn random_uuid() -> Result<String, Error> {
    let path = Path::new("/proc/sys/kernel/random/uuid");
    Ok(fs::read_to_string(path).map_err(Error::io("cannot read", path))?.trim().to_owned())
}

/// Makes a file system: `words` is the command without the device, with `{uuid}` where it takes the UUID to give. The disk is
/// looked at once more immediately before; the exclusive claim is lent to `mkfs`, and not held afterwards: the mount takes it.
///
/// Returns the UUID that is on the disk afterwards.
///
/// # Errors
/// [`Error::Refused`] if it is not held, has changed, or has a signature although it must be blank (`may_overwrite`
/// is false): nothing was touched. [`Error::Failed`] if `mkfs` fails, or made something else.
pub fn make_file_system(
    claim: &mut Claim,
    words: &[String],
    uuid: &str,
    may_overwrite: bool,
) -> Result<String, Error> {
    let Some((program, arguments)) = words.split_first() else {
        return Err(Error::Failed("there is no command that makes the file system".to_owned()));
    };
    check_before_writing(claim, may_overwrite)?;
    let mut command = claim.command(program)?;
    command.args(arguments.iter().map(|argument| argument.replace(UUID, uuid))).arg(STDIN);
    claim.lend();
    let output = command.output().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            Error::Failed(format!("{program}: not installed; install the package that brings it"))
        }
        _ => Error::Failed(format!("{program}: {error}")),
    })?;
    let name = claim.identity().describe();
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        return Err(Error::Failed(format!(
            "{program} on {name} failed ({}): {}",
            output.status,
            words.trim()
        )));
    }
    let made = signatures(claim)?;
    let takes_uuid = arguments.iter().any(|argument| argument.contains(UUID));
    match made.as_slice() {
        [made] if !takes_uuid || made.uuid.as_deref() == Some(uuid) => {
            Ok(made.uuid.clone().unwrap_or_default())
        }
        others => {
            let found: Vec<&str> = others.iter().map(|found| found.kind.as_str()).collect();
            Err(Error::Failed(format!(
                "{program} on {name} left {} there, not one file system",
                found.join(", ")
            )))
        }
    }
}

/// Last check before a disk is written: it is held, it is the same disk, and it has no signature unless that may be lost.
///
/// # Errors
/// [`Error::Refused`] with the failed check; nothing was changed.
pub fn check_before_writing(claim: &Claim, may_overwrite: bool) -> Result<(), Error> {
    if !claim.is_exclusive() {
        return Err(Error::Failed(format!("{} is not held", claim.identity().describe())));
    }
    claim.verify()?;
    let found = signatures(claim)?;
    match found.first() {
        Some(signature) if !may_overwrite => Err(Error::Refused(format!(
            "{} carries {} since it was checked. Nothing on it was changed",
            claim.identity().describe(),
            signature.kind
        ))),
        _ => Ok(()),
    }
}
