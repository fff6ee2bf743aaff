//! Disks of the inventory made into one, striped: md RAID 0, by mdadm(8).

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use crate::Error;
use crate::journal::{Change, Journal};
use crate::mount;

/// Stripe units that md takes are multiples of this.
const UNIT_KIB: u64 = 4;

/// What can be known to be impossible before anything is touched.
///
/// # Errors
/// As text: the number of disks or the stripe unit cannot be.
pub(crate) fn check(members: usize, heads: u32, stripe_unit_kib: u64) -> Result<(), String> {
    if members != heads as usize || members < 2 {
        return Err(format!(
            "the inventory lists {members} members for it; list {} (the study's heads), or none and it is modelled",
            heads.max(2)
        ));
    }
    if stripe_unit_kib == 0 || !stripe_unit_kib.is_multiple_of(UNIT_KIB) {
        return Err(format!(
            "a stripe unit of {stripe_unit_kib} KiB cannot be had from md; set storage.stripe_unit_kib to a multiple of {UNIT_KIB}"
        ));
    }
    Ok(())
}

/// Where the array of a device of the study appears.
pub(crate) fn node(name: &str) -> PathBuf {
    Path::new("/dev/md").join(format!("weir-{name}"))
}

/// Makes the array. All that was on its members is lost; the journal knows how to take it apart.
///
/// # Errors
/// mdadm is not installed, or the kernel has no RAID 0.
pub(crate) fn assemble(
    node: &Path,
    members: &[PathBuf],
    stripe_unit_kib: u64,
    journal: &mut Journal,
) -> Result<(), Error> {
    // Undone from the last to the first: stopped, then wiped.
    for member in members {
        journal.note(Change::Formatted(member.clone()))?;
    }
    journal.note(Change::Assembled(node.to_owned()))?;
    mount::run(&mut create(node, members, stripe_unit_kib))
}

fn create(node: &Path, members: &[PathBuf], stripe_unit_kib: u64) -> Command {
    let mut command = Command::new("mdadm");
    // --run: the inventory has said that what is on the members may be lost. any: not to be assembled at boot as this
    // host's own.
    command
        .args(["--create", "--run", "--quiet", "--metadata=1.2", "--homehost=any", "--level=0"])
        .arg(format!("--chunk={stripe_unit_kib}K"))
        .arg(format!("--raid-devices={}", members.len()))
        .arg(node)
        .args(members);
    command
}

/// Sets the read-ahead of an array; everything else that a queue has is its members'.
///
/// # Errors
/// The kernel does not accept it.
pub(crate) fn read_ahead(node: &Path, kib: u64, journal: &mut Journal) -> Result<(), Error> {
    let name = node.file_name().unwrap_or_default();
    journal.set(&Path::new("/sys/block").join(name).join("queue/read_ahead_kb"), &kib.to_string())
}

/// Takes an array apart; none being there is fine. A busy one is given a moment.
pub(crate) fn stop(node: &Path) -> Result<(), String> {
    let mut last = String::new();
    for attempt in 0..20 {
        if !node.exists() {
            return Ok(());
        }
        if attempt > 0 {
            sleep(Duration::from_millis(100));
        }
        match Command::new("mdadm").args(["--stop", "--quiet"]).arg(node).output() {
            Ok(output) if output.status.success() => return Ok(()),
            Ok(output) => last = String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            Err(error) => last = format!("mdadm: {error}"),
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_md_cannot_do_is_refused_with_the_remedy() {
        assert_eq!(check(2, 2, 64), Ok(()));
        assert!(check(1, 1, 64).unwrap_err().contains("list 2"));
        assert!(check(2, 4, 64).unwrap_err().contains("list 4 (the study's heads)"));
        assert!(check(2, 2, 6).unwrap_err().contains("multiple of 4"));
    }

    #[test]
    fn the_command_names_the_stripe_unit_and_every_member_in_order() {
        let members = ["/dev/disk/by-id/a", "/dev/disk/by-id/b"].map(PathBuf::from);
        let command = create(&node("shared"), &members, 64);
        let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        assert!(words.contains(&"--level=0".to_owned()) && words.contains(&"--chunk=64K".to_owned()));
        assert!(
            words.ends_with(
                &["--raid-devices=2", "/dev/md/weir-shared", "/dev/disk/by-id/a", "/dev/disk/by-id/b"]
                    .map(str::to_owned)
            )
        );
    }

    #[test]
    fn an_array_that_is_not_there_is_stopped_already() {
        assert_eq!(stop(Path::new("/dev/md/weir-nonesuch")), Ok(()));
    }
}
