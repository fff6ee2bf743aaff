//! Which devices may be used, on real loop devices.

mod common;

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use common::{LoopDisk, MIB, attach, run};
use weir_host::device::contents::{check_blank, has_label, make_blank, signatures, write_label};
use weir_host::device::{Claim, GivenBack, Identity, Mark, Written, make_file_system, random_uuid};

/// Why a disk may not be used as a blank one; panics if it may.
fn refusal(disk: &LoopDisk) -> String {
    let claimed = Claim::take(&disk.node).and_then(|claim| check_blank(&claim));
    let error = claimed.expect_err("the disk is not to be used");
    assert!(error.is_refusal(), "{error}");
    error.to_string()
}

fn is_blank(disk: &LoopDisk) -> bool {
    Claim::take(&disk.node).and_then(|claim| check_blank(&claim)).is_ok()
}

/// Writes to the disk and lets it be read afresh.
fn write(disk: &LoopDisk, at: u64, bytes: &[u8]) {
    let file = File::options().write(true).open(&disk.node).unwrap();
    file.write_all_at(bytes, at).unwrap();
    file.sync_all().unwrap();
}

#[test]
fn a_blank_disk_is_claimed_once() {
    let Some(disk) = LoopDisk::make(400 * MIB) else { return };
    let claim = Claim::take(&disk.node).unwrap();
    check_blank(&claim).unwrap();
    claim.verify().unwrap();
    assert!(refusal(&disk).contains("in use"), "by this process");
    drop(claim);
    assert!(is_blank(&disk));
}

#[test]
fn a_mounted_disk_is_refused_by_any_node_and_in_any_namespace() {
    let Some(disk) = LoopDisk::make(64 * MIB) else { return };
    let place = tempfile::tempdir().unwrap();
    assert!(run("mkfs.ext4", &["-q".as_ref(), disk.node.as_ref()]));
    // A second node of the same disk.
    let number =
        fs::read_to_string(Path::new("/sys/block").join(disk.node.file_name().unwrap()).join("dev")).unwrap();
    let (major, minor) = number.trim().split_once(':').unwrap();
    let second = place.path().join("node");
    assert!(run("mknod", &[second.as_ref(), "b".as_ref(), major.as_ref(), minor.as_ref()]));

    let point = place.path().join("point");
    fs::create_dir(&point).unwrap();
    assert!(run("mount", &[second.as_ref(), point.as_ref()]));
    let refused = refusal(&disk);
    assert!(run("umount", &[point.as_ref()]));
    assert!(refused.contains("is mounted at") && refused.contains("point"), "{refused}");

    let script = format!("mount {} {} && echo mounted && read line", disk.node.display(), point.display());
    let mut other = Command::new("unshare")
        .args(["--mount", "sh", "-c", &script])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = [0; 7];
    std::io::Read::read_exact(other.stdout.as_mut().unwrap(), &mut said).unwrap();
    let refused = refusal(&disk);
    drop(other.stdin.take());
    other.wait().unwrap();
    assert!(refused.contains("in the mount namespace of process"), "{refused}");
}

#[test]
fn a_disk_that_a_loop_device_lies_over_is_refused() {
    let Some(disk) = LoopDisk::make(64 * MIB) else { return };
    let Some(upper) = attach(&disk.node, &["--offset", "1048576"]) else { return };
    let refused = refusal(&disk);
    assert!(run("losetup", &["--detach".as_ref(), upper.as_ref()]));
    assert!(refused.contains("is a loop device over"), "{refused}");
    assert!(is_blank(&disk));
}

#[test]
fn a_disk_that_another_program_has_open_is_refused() {
    let Some(disk) = LoopDisk::make(64 * MIB) else { return };
    let mut other = Command::new("sleep").arg("60").stdin(File::open(&disk.node).unwrap()).spawn().unwrap();
    let refused = refusal(&disk);
    other.kill().unwrap();
    other.wait().unwrap();
    assert!(refused.contains(&format!("is open in process {} (sleep)", other.id())), "{refused}");
}

#[test]
fn swap_is_refused() {
    let Some(disk) = LoopDisk::make(64 * MIB) else { return };
    if !run("mkswap", &[disk.node.as_ref()]) || !run("swapon", &[disk.node.as_ref()]) {
        eprintln!("skipped: no swap can be used here");
        return;
    }
    let refused = refusal(&disk);
    assert!(run("swapoff", &[disk.node.as_ref()]));
    assert!(refused.contains("in use as swap"), "{refused}");
    assert!(refusal(&disk).contains("swap"), "its signature stays");
}

#[test]
fn a_partition_is_refused_and_so_is_its_disk_while_it_is_mounted() {
    let Some(disk) = LoopDisk::make(64 * MIB) else { return };
    let table = b"label: gpt\n,32M\n";
    let mut sfdisk = Command::new("sfdisk")
        .args(["--quiet", "--no-reread"])
        .arg(&disk.node)
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(sfdisk.stdin.as_mut().unwrap(), table).unwrap();
    assert!(sfdisk.wait().unwrap().success());
    assert!(refusal(&disk).contains("gpt"));
    let partition = format!("{}p1", disk.node.display());
    run("partx", &["--add".as_ref(), disk.node.as_ref()]);
    if !Path::new(&partition).exists() {
        eprintln!("skipped: this kernel shows no partitions of loop devices");
        return;
    }
    assert!(Claim::take(Path::new(&partition)).unwrap_err().to_string().contains("is a partition"));
    let place = tempfile::tempdir().unwrap();
    assert!(run("mkfs.ext4", &["-q".as_ref(), partition.as_ref()]));
    assert!(run("mount", &[partition.as_ref(), place.path().as_ref()]));
    let refused = refusal(&disk);
    assert!(run("umount", &[place.path().as_ref()]));
    // It may be scanned just now, by whoever looks at disks on this host; the kernel takes it away with the device.
    run("partx", &["--delete".as_ref(), disk.node.as_ref()]);
    assert!(refused.contains("p1 is mounted at"), "{refused}");
}

#[test]
fn what_probing_tools_do_not_see_is_data_all_the_same() {
    let Some(disk) = LoopDisk::make(700 * MIB) else { return };
    let clear = |from: u64, length: u64| write(&disk, from, &vec![0; length as usize]);
    let none_is_seen = || {
        let claim = Claim::take(&disk.node).unwrap();
        signatures(&claim).unwrap().is_empty()
    };
    let again = || make_blank(&Claim::take(&disk.node).unwrap(), "test").unwrap();
    assert!(is_blank(&disk));

    // A file system of XFS without its primary superblock.
    assert!(run("mkfs.xfs", &["-q".as_ref(), "-f".as_ref(), disk.node.as_ref()]));
    assert!(refusal(&disk).contains("xfs"));
    clear(0, 4096);
    assert!(none_is_seen() && refusal(&disk).contains("data at byte"));
    again();
    assert!(is_blank(&disk));

    // btrfs of which only the mirror superblock at 64 MiB is left.
    let copy = {
        assert!(run("mkfs.btrfs", &["-q".as_ref(), "-f".as_ref(), disk.node.as_ref()]));
        let mut copy = vec![0; 4096];
        File::open(&disk.node).unwrap().read_exact_at(&mut copy, 64 * MIB).unwrap();
        copy
    };
    again();
    write(&disk, 64 * MIB, &copy);
    assert!(copy.iter().any(|byte| *byte != 0) && refusal(&disk).contains("data at byte"));
    again();

    // ext4 of which only a copy of the superblock at 128 MiB is left.
    assert!(run(
        "mkfs.ext4",
        &["-q".as_ref(), "-F".as_ref(), "-b".as_ref(), "4096".as_ref(), disk.node.as_ref()]
    ));
    clear(0, 128 * MIB);
    assert!(none_is_seen() && refusal(&disk).contains("data at byte 1342"));
    again();

    // 200 MiB of random data somewhere.
    let noise: Vec<u8> = (0..200 * MIB).map(|at| (at.wrapping_mul(0x9E37_79B9) >> 13) as u8 | 1).collect();
    write(&disk, 300 * MIB, &noise);
    assert!(none_is_seen() && refusal(&disk).contains("data at byte"));
    again();
    assert!(is_blank(&disk));

    // A backup GPT at the very end.
    write(&disk, 700 * MIB - 512, b"EFI PART");
    assert!(refusal(&disk).contains("byte"), "data at the last sector");
}

#[test]
fn the_permission_is_named_in_the_refusal() {
    let Some(disk) = LoopDisk::make(64 * MIB) else { return };
    write(&disk, 12345, b"x");
    let folder = Path::new("/dev/disk/by-id");
    fs::create_dir_all(folder).unwrap();
    let link = folder.join(format!("weir-test-{}", std::process::id()));
    std::os::unix::fs::symlink(&disk.node, &link).unwrap();
    let claim = Claim::take(&link).unwrap();
    let refused = check_blank(&claim).unwrap_err().to_string();
    let named = claim.identity().is_named_by(link.file_name().unwrap().to_str().unwrap());
    fs::remove_file(&link).unwrap();
    assert!(named && refused.contains(&format!("overwrite: weir-test-{}", std::process::id())), "{refused}");
    assert!(refused.contains("data at byte 12345"));
}

#[test]
fn a_device_over_another_file_is_not_the_same() {
    let Some(mut disk) = LoopDisk::make(64 * MIB) else { return };
    let before = Identity::at(&disk.node).unwrap();
    assert_eq!(before.difference(&Identity::at(&disk.node).unwrap()), None);
    let another = disk.image.with_file_name("another");
    File::create(&another).unwrap().set_len(64 * MIB).unwrap();
    disk.exchange(another);
    let difference = before.difference(&Identity::at(&disk.node).unwrap()).unwrap();
    assert!(difference.contains("backing file"), "{difference}");
}

#[test]
fn a_pinned_loop_device_keeps_its_file() {
    let Some(disk) = LoopDisk::make(64 * MIB) else { return };
    let claim = Claim::pin(&disk.node).unwrap();
    run("losetup", &["--detach".as_ref(), disk.node.as_ref()]);
    std::thread::sleep(Duration::from_millis(100));
    claim.verify().unwrap();
    assert!(!run("losetup", &[disk.node.as_ref(), disk.image.as_ref()]), "it is not free for another file");
}

#[test]
fn a_label_is_found_again_by_its_token_only() {
    let Some(disk) = LoopDisk::make(64 * MIB) else { return };
    let claim = Claim::take(&disk.node).unwrap();
    write_label(&claim, "one").unwrap();
    assert!(has_label(&claim, "one").unwrap() && !has_label(&claim, "two").unwrap());
    assert!(check_blank(&claim).is_err());
    make_blank(&claim, "one").unwrap();
    assert!(!has_label(&claim, "one").unwrap());
    check_blank(&claim).unwrap();
}

#[test]
fn nothing_is_wiped_without_the_exclusive_claim() {
    let Some(disk) = LoopDisk::make(64 * MIB) else { return };
    write(&disk, 0, b"precious");
    assert!(make_blank(&Claim::pin(&disk.node).unwrap(), "test").is_err());
    assert!(refusal(&disk).contains("byte 0"));
}

/// Formats a disk as a run does, with a UUID of weir's own.
fn formatted(disk: &LoopDisk, may_overwrite: bool) -> Written {
    let mut claim = Claim::take(&disk.node).unwrap();
    let uuid = random_uuid().unwrap();
    let written = Written::on(&claim, Mark::Uuid(uuid.clone()));
    let words = ["mkfs.ext4", "-q", "-F", "-U", "{uuid}"].map(str::to_owned);
    assert_eq!(make_file_system(&mut claim, &words, &uuid, may_overwrite).unwrap(), uuid);
    written
}

fn bytes(disk: &LoopDisk) -> Vec<u8> {
    fs::read(&disk.image).unwrap()
}

#[test]
fn what_weir_made_is_given_back_blank() {
    let Some(disk) = LoopDisk::make(200 * MIB) else { return };
    let written = formatted(&disk, false);
    assert_eq!(written.give_back(), GivenBack::Blanked);
    assert!(is_blank(&disk));
    assert_eq!(written.give_back(), GivenBack::Nothing);
}

#[test]
fn what_somebody_made_since_is_left() {
    let Some(disk) = LoopDisk::make(64 * MIB) else { return };
    let written = formatted(&disk, false);
    assert!(run("mkfs.ext4", &["-q".as_ref(), "-F".as_ref(), disk.node.as_ref()]));
    let before = bytes(&disk);
    let GivenBack::Left(why) = written.give_back() else { panic!("it is another's file system") };
    assert!(why.contains("which this weir did not make"), "{why}");
    // Data without a signature.
    make_blank(&Claim::take(&disk.node).unwrap(), "test").unwrap();
    write(&disk, 20 * MIB, b"precious");
    assert!(matches!(written.give_back(), GivenBack::Left(why) if why.contains("without a mark")));
    assert!(before.len() == bytes(&disk).len() && bytes(&disk)[20 * MIB as usize..].starts_with(b"precious"));
}

#[test]
fn another_image_on_the_same_loop_device_is_left() {
    let Some(mut disk) = LoopDisk::make(64 * MIB) else { return };
    let written = formatted(&disk, false);
    // The very same content, as a copy: only the file behind it tells.
    let copy = disk.image.with_file_name("another");
    fs::copy(&disk.image, &copy).unwrap();
    let content = bytes(&disk);
    disk.exchange(copy);
    assert!(matches!(written.give_back(), GivenBack::Left(why) if why.contains("backing file was")));
    assert!(content == bytes(&disk));
}

#[test]
fn a_mounted_disk_is_tried_again_later() {
    let Some(disk) = LoopDisk::make(64 * MIB) else { return };
    let written = formatted(&disk, false);
    let place = tempfile::tempdir().unwrap();
    assert!(run("mount", &[disk.node.as_ref(), place.path().as_ref()]));
    assert!(matches!(written.give_back(), GivenBack::Failed(why) if why.contains("is mounted at")));
    assert!(run("umount", &[place.path().as_ref()]));
    assert_eq!(written.give_back(), GivenBack::Blanked);
}

#[test]
fn a_disk_on_which_mkfs_refused_is_left() {
    let Some(disk) = LoopDisk::make(64 * MIB) else { return };
    assert!(run("mkfs.ext4", &["-q".as_ref(), disk.node.as_ref()]));
    let before = bytes(&disk);
    let mut claim = Claim::take(&disk.node).unwrap();
    let written = Written::on(&claim, Mark::Uuid(random_uuid().unwrap()));
    let refused = make_file_system(&mut claim, &["mkfs.ext4".to_owned()], "", false).unwrap_err();
    assert!(refused.is_refusal(), "{refused}");
    // A tool that refuses, although it may.
    assert!(make_file_system(&mut claim, &["false".to_owned()], "", true).is_err());
    drop(claim);
    assert!(matches!(written.give_back(), GivenBack::Left(_)));
    assert!(before == bytes(&disk));
}

#[test]
fn mkfs_works_on_the_disk_that_is_held_whatever_its_node_has_become() {
    let (Some(disk), Some(other)) = (LoopDisk::make(64 * MIB), LoopDisk::make(64 * MIB)) else { return };
    let place = tempfile::tempdir().unwrap();
    let link = place.path().join("disk");
    std::os::unix::fs::symlink(&disk.node, &link).unwrap();
    let mut claim = Claim::take(&link).unwrap();
    fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink(&other.node, &link).unwrap();
    let uuid = random_uuid().unwrap();
    let words = ["mkfs.ext4", "-q", "-F", "-U", "{uuid}"].map(str::to_owned);
    make_file_system(&mut claim, &words, &uuid, false).unwrap();
    drop(claim);
    assert!(refusal(&disk).contains("ext4") && is_blank(&other));
}

#[test]
fn a_labelled_disk_is_given_back() {
    let Some(disk) = LoopDisk::make(64 * MIB) else { return };
    let claim = Claim::take(&disk.node).unwrap();
    let written = Written::on(&claim, Mark::Label("token".to_owned()));
    write_label(&claim, "token").unwrap();
    drop(claim);
    write(&disk, 0, b"what a run wrote");
    assert_eq!(written.give_back(), GivenBack::Blanked);
    write(&disk, 0, b"what somebody wrote");
    assert!(matches!(written.give_back(), GivenBack::Left(_)));
    assert!(bytes(&disk).starts_with(b"what somebody wrote"));
}

#[test]
fn what_was_given_back_half_is_still_known() {
    let Some(disk) = LoopDisk::make(200 * MIB) else { return };
    let written = formatted(&disk, false);
    let Mark::Uuid(uuid) = &written.mark else { panic!("it has a UUID") };
    // As after a crash when its signatures are erased, and its data are not.
    let claim = Claim::take(&disk.node).unwrap();
    write_label(&claim, uuid).unwrap();
    assert!(run("wipefs", &["--all".as_ref(), "--force".as_ref(), disk.node.as_ref()]));
    assert!(signatures(&claim).unwrap().is_empty() && check_blank(&claim).is_err());
    drop(claim);
    assert_eq!(written.give_back(), GivenBack::Blanked);
    assert!(is_blank(&disk));
}
