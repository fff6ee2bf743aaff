//! Claimed disk of a run: claimed before the first check, until the run ends.

use std::path::Path;

use weir_host::device::{Claim, Identity, contents};

use crate::context::testbed::Disk;

/// Use of a device during a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// By the run alone.
    Own,
    /// By a server that outlives the run.
    Mounted,
}

/// A claimed disk.
pub(crate) struct Held {
    pub(crate) claim: Claim,
    /// Whether the inventory permits the loss of its data.
    pub(crate) may_overwrite: bool,
}

/// Claims a disk: no other program can use it.
///
/// # Errors
/// The disk is absent or in use.
pub(super) fn hold(path: &Path, used: Use) -> Result<Held, String> {
    let claim = match used {
        Use::Own => Claim::take(path),
        Use::Mounted => Claim::pin(path),
    };
    claim.map(|claim| Held { claim, may_overwrite: false }).map_err(|error| error.to_string())
}

/// Claims a disk of the inventory: listed by a stable name, and blank or permitted to be overwritten.
pub(super) fn hold_disk(disk: &Disk, used: Use) -> Result<Held, String> {
    if !disk.path.starts_with("/dev/disk") {
        return Err(format!(
            "{} may name another disk after a reboot. List the disk by its name below /dev/disk/by-id",
            disk.path.display()
        ));
    }
    let mut held = hold(&disk.path, used)?;
    if used == Use::Own {
        held.may_overwrite = permitted(disk, held.claim.identity())?;
        if !held.may_overwrite {
            contents::check_blank(&held.claim).map_err(|error| error.to_string())?;
        }
    }
    Ok(held)
}

fn permitted(disk: &Disk, identity: &Identity) -> Result<bool, String> {
    match &disk.overwrite {
        None => Ok(false),
        Some(text) if identity.is_named_by(text) => Ok(true),
        Some(text) => Err(format!(
            "overwrite: {text:?} does not name {}. Nothing was changed. Write the disk's serial number{} or its link name",
            identity.describe(),
            identity.serial.as_ref().map_or(String::new(), |serial| format!(" ({serial})"))
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_may_move_is_refused() {
        let disk = Disk { path: "/dev/sda".into(), overwrite: None };
        assert!(hold_disk(&disk, Use::Own).is_err_and(|text| text.contains("by-id")));
    }

    #[test]
    fn a_permission_for_another_disk_is_refused() {
        let identity = Identity {
            kernel_name: "sda".to_owned(),
            size_bytes: 1,
            serial: Some("S1".to_owned()),
            wwn: None,
            link: None,
            backing: None,
        };
        let disk =
            |overwrite: Option<&str>| Disk { path: "/x".into(), overwrite: overwrite.map(str::to_owned) };
        assert_eq!(permitted(&disk(None), &identity), Ok(false));
        assert_eq!(permitted(&disk(Some("S1")), &identity), Ok(true));
        assert!(permitted(&disk(Some("S2")), &identity).unwrap_err().contains("serial number (S1)"));
        assert!(permitted(&disk(Some("true")), &identity).is_err());
    }
}
