//! Striped array of disks of the inventory: md RAID 0, by mdadm(8).

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use weir_host::device::{Mark, Written, check_before_writing, random_uuid};

use crate::Error;
use crate::context::child_processes;
use crate::context::journal::{Change, Journal};
use crate::device::held_disk::Held;

/// Unit of md's stripe units.
const UNIT_KIB: u64 = 4;

/// Checks an array before anything is touched.
///
/// # Errors
/// The number of disks or the stripe unit is wrong.
pub(crate) fn check(members: usize, heads: u32, stripe_unit_kib: u64) -> Result<(), String> {
    if members != heads as usize || members < 2 {
        return Err(format!(
            "wrong number of members in the inventory (found {members}, expected {}, the study's heads). List as many, or none for a modelled device",
            heads.max(2)
        ));
    }
    if stripe_unit_kib == 0 || !stripe_unit_kib.is_multiple_of(UNIT_KIB) {
        return Err(format!(
            "md has no stripe unit of {stripe_unit_kib} KiB. Set storage.stripe_unit_kib to a multiple of {UNIT_KIB}"
        ));
    }
    Ok(())
}

/// Device node of the array of a study's device.
pub(crate) fn node(name: &str) -> PathBuf {
    Path::new("/dev/md").join(format!("weir-{name}"))
}

/// Assembles an array of claimed disks. Their data are lost; the journal lists the array.
///
/// # Errors
/// mdadm is not installed, or the kernel has no RAID 0; a disk has changed.
pub(crate) fn assemble(
    node: &Path,
    members: &mut [Held],
    stripe_unit_kib: u64,
    journal: &mut Journal,
) -> Result<(), Error> {
    if is_running(node) {
        return Err(Error::Refused(format!(
            "{}: an array of this name exists that this run did not make. Look at it (mdadm --detail), then stop it",
            node.display()
        )));
    }
    let uuid = random_uuid()?;
    // Undone from the last to the first: stopped, then blanked.
    for member in members.iter() {
        check_before_writing(&member.claim, member.may_overwrite)?;
        journal.note(Change::Formatted(Written::on(&member.claim, Mark::Uuid(uuid.clone()))))?;
    }
    journal.note(Change::Assembled { node: node.to_owned(), uuid: uuid.clone() })?;
    let paths: Vec<PathBuf> = members.iter().map(|member| member.claim.listed().to_owned()).collect();
    members.iter_mut().for_each(|member| member.claim.lend());
    child_processes::run(&mut create(node, &paths, stripe_unit_kib, &uuid))
}

fn create(node: &Path, members: &[PathBuf], stripe_unit_kib: u64, uuid: &str) -> Command {
    let mut command = Command::new("mdadm");
    // --run: the inventory permits that the members' data are lost. any: not assembled at boot as this host's own.
    command
        .args(["--create", "--run", "--quiet", "--metadata=1.2", "--homehost=any", "--level=0"])
        .arg(format!("--chunk={stripe_unit_kib}K"))
        .arg(format!("--uuid={uuid}"))
        .arg(format!("--raid-devices={}", members.len()))
        .arg(node)
        .args(members);
    command
}

/// Sets the read-ahead of an array; all other queue settings are those of its members.
///
/// # Errors
/// The kernel does not accept the value.
pub(crate) fn read_ahead(node: &Path, kib: u64, journal: &mut Journal) -> Result<(), Error> {
    let name = node.file_name().unwrap_or_default();
    journal.set(&Path::new("/sys/block").join(name).join("queue/read_ahead_kb"), &kib.to_string())
}

/// Stops the array of this UUID, if it exists. Waits a little for a busy one.
///
/// # Errors
/// Another array has its name, and is left; or the array stays busy.
pub(crate) fn stop(node: &Path, uuid: &str) -> Result<(), String> {
    if is_running(node) {
        let found = uuid_of(node)?;
        if digits(&found) != digits(uuid) {
            return Err(format!(
                "{}: left as it is: another array (found UUID {found}, expected {uuid})",
                node.display()
            ));
        }
    }
    let mut last = String::new();
    for attempt in 0..20 {
        if !is_running(node) {
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

/// Whether a node is that of a running array. Without udev the node of an array stays when the array is stopped.
fn is_running(node: &Path) -> bool {
    let Ok(metadata) = std::fs::metadata(node) else { return false };
    let (major, minor) = (rustix::fs::major(metadata.rdev()), rustix::fs::minor(metadata.rdev()));
    let state = format!("/sys/dev/block/{major}:{minor}/md/array_state");
    std::fs::read_to_string(state).is_ok_and(|state| !matches!(state.trim(), "clear" | "inactive"))
}

/// UUID of a running array, by mdadm(8).
fn uuid_of(node: &Path) -> Result<String, String> {
    let output = Command::new("mdadm").args(["--detail", "--export"]).arg(node).output();
    let output = output.map_err(|error| format!("mdadm: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let uuid = text.lines().find_map(|line| line.strip_prefix("MD_UUID="));
    uuid.map(str::to_owned).ok_or_else(|| format!("{}: mdadm prints no UUID", node.display()))
}

/// A UUID in mdadm's own grouping of digits.
fn digits(uuid: &str) -> String {
    uuid.chars().filter(char::is_ascii_hexdigit).collect::<String>().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_is_the_same_however_it_is_grouped() {
        assert_eq!(
            digits("0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"),
            digits("0A1B2C3D:4e5f6071:8293a4b5:c6d7e8f9")
        );
    }

    #[test]
    fn what_md_cannot_do_is_refused_with_the_remedy() {
        assert_eq!(check(2, 2, 64), Ok(()));
        assert!(check(1, 1, 64).unwrap_err().contains("expected 2"));
        assert!(check(2, 4, 64).unwrap_err().contains("expected 4, the study's heads"));
        assert!(check(2, 2, 6).unwrap_err().contains("multiple of 4"));
    }

    #[test]
    fn the_command_names_the_stripe_unit_and_every_member_in_order() {
        let members = ["/dev/disk/by-id/a", "/dev/disk/by-id/b"].map(PathBuf::from);
        let command = create(&node("shared"), &members, 64, "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9");
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
        assert_eq!(stop(Path::new("/dev/md/weir-nonesuch"), "0"), Ok(()));
    }
}
