//! Every request reaches the right bytes, once.

mod common;

use std::collections::BTreeMap;
use std::fs::OpenOptions;

use common::{CLASS, LoopDevice, contents, patterned, poisson, random_place, read, send};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use weir_content::pattern::Key;
use weir_records::{Op, Request};
use weir_replayer::{Check, Error, Layout, Options, Route, Targets, replay};

const LENGTH: u64 = 4 << 20;

fn verified() -> Options {
    Options { verify: true, seed: 9, ..Options::default() }
}

fn random_reads(count: u64) -> Vec<Request> {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    (0..count)
        .map(|i| {
            let (offset, size) = random_place(&mut rng, LENGTH);
            read(i, i as i64 * 100_000, offset, size)
        })
        .collect()
}

#[test]
fn each_request_is_sent_once_and_reads_its_own_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk");
    patterned(&path, LENGTH, None, 9);
    let stream = random_reads(2000);
    let (rows, fidelity) = send(stream.clone(), &path, false, &verified());
    assert_eq!(rows.len(), stream.len());
    for (row, planned) in rows.iter().zip(&stream) {
        assert_eq!(
            (row.request, row.offset, row.size_bytes),
            (planned.request, planned.offset, planned.size_bytes)
        );
        assert_eq!((row.intended_ns, row.status), (planned.intended_ns, 0));
        let (submitted, completed) = (row.submitted_ns.unwrap(), row.completed_ns.unwrap());
        assert!(planned.intended_ns <= submitted && submitted < completed, "{row:?}");
        assert_eq!(row.device.as_deref(), path.to_str());
    }
    assert_eq!((fidelity.planned, fidelity.sent, fidelity.completed), (2000, 2000, 2000));
    assert_eq!((fidelity.failed, fidelity.unfinished, fidelity.refused, fidelity.stopped), (0, 0, 0, 0));
}

#[test]
fn a_wrong_byte_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk");
    patterned(&path, LENGTH, None, 9);
    let mut data = contents(&path, 0, LENGTH);
    data[1_000_001] ^= 0x40;
    std::fs::write(&path, data).unwrap();
    let (rows, fidelity) = send(random_reads(2000), &path, false, &verified());
    let touched = |row: &&Request| row.offset <= 1_000_001 && 1_000_001 < row.offset + row.size_bytes;
    let expected = rows.iter().filter(touched).count() as u64;
    assert!(expected > 0, "the test needs a request over the byte");
    assert!(rows.iter().filter(touched).all(|row| row.status == libc::EBADMSG));
    assert_eq!(fidelity.failed, expected);
}

#[test]
fn what_is_written_can_be_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let backing = folder.path().join("disk");
    std::fs::write(&backing, vec![0; LENGTH as usize]).unwrap();
    let device = LoopDevice::attach(&backing, true);
    let path = device.as_ref().map_or(backing.as_path(), |device| device.path.as_path());
    let mut stream = random_reads(500);
    stream.iter_mut().for_each(|request| request.op = Op::Write);
    let (rows, fidelity) = send(stream.clone(), path, true, &Options { seed: 9, ..Options::default() });
    assert_eq!((fidelity.completed, fidelity.failed), (500, 0), "{rows:?}");
    // Overlapping writes agree, so all of them are there whatever their order.
    let key = Key::new(CLASS, None, 9);
    let mut written = vec![false; (LENGTH / 512) as usize];
    for request in &stream {
        assert!(
            key.matches(request.offset, &contents(path, request.offset, request.size_bytes)),
            "{request:?}"
        );
        let first = (request.offset / 512) as usize;
        written[first..first + (request.size_bytes / 512) as usize].fill(true);
    }
    // A device of 512-byte sectors takes exactly these; a file system may enlarge them.
    if device.is_some() {
        let all = contents(path, 0, LENGTH);
        let untouched = written.iter().enumerate().filter(|(_, written)| !**written);
        for (sector, _) in untouched {
            assert!(
                all[sector * 512..(sector + 1) * 512].iter().all(|byte| *byte == 0),
                "sector {sector} was written"
            );
        }
    }
    stream.iter_mut().for_each(|request| request.op = Op::Read);
    let (_, fidelity) = send(stream, path, false, &verified());
    assert_eq!((fidelity.completed, fidelity.failed), (500, 0));
}

#[test]
fn files_of_a_set_are_addressed_by_number() {
    let folder = tempfile::tempdir().unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    // Lengths that are no multiple of anything, as those of web pages are.
    let lengths: Vec<u64> = (0..50).map(|_| rng.random_range(1..100_000)).collect();
    for (id, &length) in (0..).zip(&lengths) {
        patterned(&folder.path().join(weir_content::file_name(id)), length, Some(id), 9);
    }
    let stream: Vec<Request> = (0..1000)
        .map(|i| {
            let id = rng.random_range(0..50_u32);
            let offset = rng.random_range(0..lengths[id as usize]);
            let size = rng.random_range(1..=lengths[id as usize] - offset);
            Request { file: Some(id), ..read(i, i as i64 * 50_000, offset, size) }
        })
        .collect();
    let (rows, fidelity) = send(stream, folder.path(), false, &verified());
    assert_eq!((rows.len(), fidelity.completed, fidelity.failed), (1000, 1000, 0));
}

#[test]
fn errors_of_the_device_are_recorded_where_they_happened() {
    let folder = tempfile::tempdir().unwrap();
    let backing = folder.path().join("disk");
    std::fs::write(&backing, vec![0; LENGTH as usize]).unwrap();
    let Some(device) = LoopDevice::attach(&backing, true) else { return };
    // The second half of the device loses what is behind it.
    OpenOptions::new().write(true).open(&backing).unwrap().set_len(LENGTH / 2).unwrap();
    let stream = poisson(2000.0, 0.25, LENGTH, 4);
    let (rows, fidelity) = send(stream, &device.path, false, &Options::default());
    let (good, lost): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row.offset < LENGTH / 2);
    assert!(good.len() > 100 && lost.len() > 100);
    assert!(good.iter().all(|row| row.status == 0));
    assert!(lost.iter().all(|row| row.status == libc::EIO && row.completed_ns.is_some()), "{:?}", lost[0]);
    assert_eq!((fidelity.failed, fidelity.completed), (lost.len() as u64, rows.len() as u64));
    assert_eq!(fidelity.errors, [(libc::EIO, lost.len() as u64)].into());
}

#[test]
fn a_request_past_the_end_is_named_before_anything_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk");
    patterned(&path, 8192, None, 0);
    let targets = Targets::open(&Layout { default: Some(Route::to(&path)), ..Layout::default() }).unwrap();
    let stream = [read(40, 0, 0, 4096), read(41, 5, 4096, 4096), read(42, 3, 8192, 1)];
    let mut check = Check::new(&targets);
    check.add(&stream[0]).unwrap();
    check.add(&stream[1]).unwrap();
    let error = check.add(&stream[2]).unwrap_err();
    assert!(matches!(error, Error::Request { request: 42, .. }));
    assert!(error.to_string().contains("past the end") && error.to_string().contains("8192"), "{error}");
    let summary = check.finish();
    assert_eq!((summary.requests, summary.bytes, summary.disorder_ns), (2, 8192, 0));

    // A stream that was not checked is sent as far as it can be, and nothing is silent.
    let mut rows = Vec::new();
    let fidelity = replay(stream.into_iter(), &targets, &Options::default(), |row| rows.push(row)).unwrap();
    assert_eq!((fidelity.planned, fidelity.sent, fidelity.refused), (3, 2, 1));
    let statuses: BTreeMap<u64, (bool, i32)> =
        rows.iter().map(|row| (row.request, (row.submitted_ns.is_some(), row.status))).collect();
    assert_eq!(statuses, [(40, (true, 0)), (41, (true, 0)), (42, (false, libc::EINVAL))].into());
}

#[test]
fn a_mounted_device_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let backing = folder.path().join("disk");
    OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(true)
        .open(&backing)
        .unwrap()
        .set_len(16 << 20)
        .unwrap();
    let Some(device) = LoopDevice::attach(&backing, false) else { return };
    let mount_point = folder.path().join("mounted");
    std::fs::create_dir(&mount_point).unwrap();
    let done = |command: &str, arguments: &[&std::ffi::OsStr]| {
        std::process::Command::new(command)
            .args(arguments)
            .output()
            .is_ok_and(|output| output.status.success())
    };
    if !done("mkfs.ext4", &["-q".as_ref(), device.path.as_os_str()])
        || !done("mount", &[device.path.as_os_str(), mount_point.as_os_str()])
    {
        eprintln!("skipped: needs mkfs.ext4 and the right to mount");
        return;
    }
    let open = |allow_writes| {
        Targets::open(&Layout { default: Some(Route::to(&device.path)), allow_writes, ..Layout::default() })
    };
    let (reading, writing) = (open(false), open(true));
    assert!(done("umount", &[mount_point.as_os_str()]));
    assert!(reading.is_ok());
    assert!(matches!(writing, Err(Error::InUse { .. })), "{writing:?}");
    assert!(open(true).is_ok(), "the device is free again");
}
