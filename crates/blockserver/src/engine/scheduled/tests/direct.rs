//! Real files behind policies: written data are read back, on every file.

use std::fs::File;
use std::time::Duration;

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::super::attribution::Caller;
use super::super::buffer::Written;
use super::{Running, reply};

const BYTES: usize = 8 << 20;

fn wait(answer: &std::sync::mpsc::Receiver<Result<Vec<u8>, i32>>) -> Result<Vec<u8>, i32> {
    answer.recv_timeout(Duration::from_secs(20)).unwrap()
}

/// A folder next to the program: not every file system supports direct I/O, tmpfs in particular.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(std::env::current_exe().unwrap().parent().unwrap()).unwrap()
}

fn striped(folder: &tempfile::TempDir, policy: &str) -> Running {
    for head in 0..3 {
        let path = folder.path().join(format!("head{head}"));
        if !path.exists() {
            File::create(path).unwrap().set_len(3 << 20).unwrap();
        }
    }
    let yaml = format!(
        "{{name: direct, profile: \"null\", heads: 3, stripe_unit_kib: 16, size_mib: 8,
          live: {{policy: {policy}, queue_depth: 3, targets: [head0, head1, head2]}}}}"
    );
    Running::start(&yaml, folder.path())
}

#[test]
fn data_come_back_from_striped_files() {
    let folder = folder();
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let mut copy = vec![0u8; BYTES];
    let caller = Caller::default();
    {
        let running = striped(&folder, "c-look");
        let engine = &running.engine;
        for round in 0..60 {
            // Requests that do not overlap, all outstanding at the same time.
            let mut answers = Vec::new();
            for at in 0..8usize {
                let length = rng.random_range(1..=32usize) * 4096;
                let first = at * (BYTES / 8) + rng.random_range(0..=(BYTES / 8 - length) / 4096) * 4096;
                let range = first..first + length;
                let (reply, answer) = reply();
                match rng.random_range(0..8) {
                    0..4 => {
                        rng.fill_bytes(&mut copy[range.clone()]);
                        engine.write(
                            first as u64,
                            Written::Borrowed(&copy[range]),
                            round % 2 == 0,
                            &caller,
                            reply,
                        );
                        answers.push((answer, None));
                    }
                    4 => {
                        copy[range].fill(0);
                        engine.discard(first as u64, length as u64, reply);
                        answers.push((answer, None));
                    }
                    _ => {
                        engine.read(first as u64, length as u32, &caller, reply);
                        answers.push((answer, Some(range)));
                    }
                }
            }
            for (answer, range) in answers {
                let data = wait(&answer).unwrap();
                assert!(range.is_none_or(|range| data == copy[range]), "round {round}");
            }
            let (reply, answer) = reply();
            engine.flush(reply);
            wait(&answer).unwrap();
        }
    }
    // Another server of the same files has the same data.
    let running = striped(&folder, "fcfs");
    for (at, piece) in copy.chunks(1 << 20).enumerate() {
        let (reply, answer) = reply();
        running.engine.read((at << 20) as u64, 1 << 20, &caller, reply);
        assert!(wait(&answer).unwrap() == piece, "piece {at}");
    }
}

#[test]
fn what_cannot_be_asked_is_refused() {
    let folder = folder();
    let running = striped(&folder, "fcfs");
    let caller = Caller::default();
    let read = |offset, size| {
        let (reply, answer) = reply();
        running.engine.read(offset, size, &caller, reply);
        wait(&answer).unwrap_err()
    };
    assert_eq!(read(BYTES as u64 - 4096, 8192), libc::ENOSPC);
    assert_eq!(read(u64::MAX - 5, 4096), libc::ENOSPC);
    assert_eq!(read(1, 4096), libc::EINVAL);
    assert_eq!(read(0, 0), libc::EINVAL);
    let (reply, answer) = reply();
    running.engine.discard(4096, BYTES as u64, reply);
    assert_eq!(wait(&answer).unwrap_err(), libc::EINVAL);
    assert_eq!(running.engine.stats(false).errors, 5);
}

#[test]
fn no_more_than_the_depth_is_at_a_device() {
    let folder = folder();
    let running = striped(&folder, "sfq");
    let mut answers = Vec::new();
    for number in 0..200u64 {
        let (reply, answer) = reply();
        running.engine.read(number % 100 * 16_384, 16_384, &Caller::default(), reply);
        answers.push(answer);
        let stats = running.engine.scheduling_stats();
        assert!(stats.heads.iter().all(|head| head.in_service <= 3), "{stats:?}");
    }
    answers.iter().for_each(|answer| assert_eq!(wait(answer).unwrap().len(), 16_384));
}

#[test]
fn two_servers_cannot_have_one_file() {
    let folder = folder();
    let _running = striped(&folder, "fcfs");
    let yaml = "{name: other, profile: \"null\", size_mib: 2, live: {policy: fcfs, targets: [head0]}}";
    let error = crate::ServeSpec::parse(yaml, "test.yml", folder.path()).unwrap_err().to_string();
    assert!(error.contains("live.targets") && error.contains("locked"), "{error}");
}
