//! Written data are read back: raw, through a file system, over an array, from memory and from a file.

mod common;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use common::{Server, lacks, read_at, skip, write_at};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const MIB: u64 = 1 << 20;

/// Random writes of random length, each then read back and compared with a copy of the device; at the end everything is
/// compared.
fn write_and_compare(server: &Server, seed: u64) {
    let device = server.open();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut copy = vec![0u8; 64 * MIB as usize];
    for _ in 0..300 {
        let sectors = 1 << rng.random_range(0..12u32);
        let first = rng.random_range(0..=copy.len() / 512 - sectors);
        let range = first * 512..(first + sectors) * 512;
        rng.fill_bytes(&mut copy[range.clone()]);
        write_at(&device, range.start as u64, &copy[range.clone()]).unwrap();
        assert!(
            read_at(&device, range.start as u64, range.len()).unwrap() == copy[range],
            "at sector {first}"
        );
    }
    drop(device);
    let device = server.open();
    for (index, piece) in copy.chunks(4 << 20).enumerate() {
        assert!(read_at(&device, index as u64 * 4 * MIB, piece.len()).unwrap() == piece, "piece {index}");
    }
}

#[test]
fn random_data_come_back() {
    if skip("random_data_come_back") {
        return;
    }
    for (seed, profile) in ["\"null\"", "ssd-sata", "hdd-15k"].into_iter().enumerate() {
        for backing in ["memory", "./disk.img"] {
            let yaml = format!("{{name: data, profile: {profile}, size_mib: 64, backing: {backing}}}");
            let server = Server::start(&yaml);
            // On the disk only the last part takes the model's time.
            server.control().timing(profile != "hdd-15k").unwrap();
            write_and_compare(&server, seed as u64);
            let stats = server.control().stats(false).unwrap();
            assert!(
                stats.read.bytes >= 64 * MIB && stats.write.requests >= 300 && stats.errors == 0,
                "{stats:?}"
            );
        }
    }
}

#[test]
fn random_data_come_back_from_a_striped_array() {
    if skip("random_data_come_back_from_a_striped_array") {
        return;
    }
    let yaml = "{name: array, profile: ssd-sata, heads: 3, stripe_unit_kib: 16, size_mib: 64}";
    write_and_compare(&Server::start(yaml), 7);
}

#[test]
fn a_backing_file_keeps_the_data() {
    if skip("a_backing_file_keeps_the_data") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kept.img");
    let yaml = format!("{{name: kept, profile: \"null\", size_mib: 16, backing: {}}}", file.display());
    for round in 0..3u8 {
        let server = Server::start(&yaml);
        let device = server.open();
        if round > 0 {
            assert!(read_at(&device, 4 * MIB, 8192).unwrap() == vec![round; 8192]);
        }
        write_at(&device, 4 * MIB, &vec![round + 1; 8192]).unwrap();
    }
    // Sparse: 16 MiB long, with little in it.
    let meta = fs::metadata(&file).unwrap();
    assert!(meta.len() == 16 * MIB && meta.blocks() * 512 < MIB, "{} blocks", meta.blocks());
}

#[test]
fn a_file_system_survives_a_remount() {
    let test = "a_file_system_survives_a_remount";
    if skip(test) || lacks(test, "mkfs.ext4") {
        return;
    }
    let server = Server::start("{name: fs, profile: hdd-7200, heads: 2, size_mib: 256}");
    server.control().timing(false).unwrap();
    run(Command::new("mkfs.ext4").arg("-q").arg(server.device()));
    let mountpoint = server.folder().join("mnt");
    fs::create_dir(&mountpoint).unwrap();
    let mount = || run(Command::new("mount").arg(server.device()).arg(&mountpoint));
    // A process that another test is about to start holds this one's files until it is on its way.
    let unmount = || {
        let is_done = || Command::new("umount").arg(&mountpoint).output().unwrap().status.success();
        assert!((0..20).any(|_| is_done() || {
            std::thread::sleep(Duration::from_millis(100));
            false
        }));
    };
    mount();
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    let mut files = Vec::new();
    for number in 0..20 {
        let mut data = vec![0; rng.random_range(1..3_000_000)];
        rng.fill_bytes(&mut data);
        fs::write(mountpoint.join(format!("file{number}")), &data).unwrap();
        files.push(data);
    }
    unmount();
    server.control().timing(true).unwrap();
    mount();
    for (number, data) in files.iter().enumerate() {
        assert!(fs::read(mountpoint.join(format!("file{number}"))).unwrap() == *data, "file {number}");
    }
    let stats = server.control().stats(false).unwrap();
    assert!(stats.flush > 0 && stats.service_error.count > 20, "{stats:?}");
    unmount();
    run(Command::new("e2fsck").args(["-f", "-n"]).arg(server.device()));
}

#[test]
fn discard_gives_the_space_back() {
    let test = "discard_gives_the_space_back";
    if skip(test) || lacks(test, "blkdiscard") {
        return;
    }
    let full = vec![9; 48 * MIB as usize];
    let server = Server::start("{name: memory, profile: \"null\", size_mib: 64}");
    let device = server.open();
    let empty_bytes = server.resident_bytes();
    write_at(&device, 0, &full).unwrap();
    let full_bytes = server.resident_bytes();
    assert!(full_bytes >= empty_bytes + 48 * MIB, "{full_bytes} and {empty_bytes}");
    blkdiscard(server.device(), 0, 40 * MIB);
    assert!(server.resident_bytes() <= full_bytes - 36 * MIB, "{}", server.resident_bytes());
    assert!(read_at(&device, 39 * MIB, 2 << 20).unwrap() == [vec![0; 1 << 20], vec![9; 1 << 20]].concat());
    server.control().discard().unwrap();
    assert!(server.resident_bytes() <= full_bytes - 44 * MIB, "{}", server.resident_bytes());
    assert!(read_at(&device, 40 * MIB, 8 << 20).unwrap() == vec![0; 8 << 20]);
    assert!(server.control().stats(false).unwrap().discard.bytes >= (40 + 64) * MIB);

    let server = Server::start("{name: file, profile: \"null\", size_mib: 64, backing: ./disk.img}");
    let blocks = || fs::metadata(server.folder().join("disk.img")).unwrap().blocks() * 512;
    write_at(&server.open(), 0, &full).unwrap();
    assert!(blocks() >= 48 * MIB);
    blkdiscard(server.device(), 0, 40 * MIB);
    assert!(blocks() <= 9 * MIB, "{}", blocks());
    server.control().discard().unwrap();
    assert_eq!(blocks(), 0);
}

fn blkdiscard(device: &Path, offset: u64, length: u64) {
    let (offset, length) = (offset.to_string(), length.to_string());
    run(Command::new("blkdiscard").args(["--offset", &offset, "--length", &length]).arg(device));
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
