//! Tests that every fuzz target runs its corpus and earlier findings in time and without a panic.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use weir_fuzz::TARGETS;

/// Coarse: libFuzzer allows 10 s.
const LONGEST: Duration = Duration::from_secs(10);

fn inputs(kind: &str, target: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(kind).join(target);
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    files.sort();
    files
}

#[test]
fn every_target_takes_its_corpus_and_what_was_found() {
    for target in TARGETS {
        for file in inputs("corpus", target.name).into_iter().chain(inputs("regressions", target.name)) {
            let bytes = std::fs::read(&file).unwrap();
            let began = Instant::now();
            (target.run)(&bytes);
            assert!(began.elapsed() < LONGEST, "{}: {:?}", file.display(), began.elapsed());
        }
    }
}

#[test]
fn every_target_has_a_corpus_that_is_small() {
    let mut all_bytes = 0;
    for target in TARGETS {
        let corpus = inputs("corpus", target.name);
        assert!(!corpus.is_empty(), "{}: no corpus", target.name);
        for file in corpus {
            let bytes = std::fs::metadata(&file).unwrap().len();
            assert!(bytes <= target.most_bytes as u64, "{} is never used: {bytes} bytes", file.display());
            all_bytes += bytes;
        }
    }
    assert!(all_bytes < 600_000, "{all_bytes} bytes in the corpus: keep what finds something");
}

#[test]
fn a_folder_belongs_to_a_target() {
    for kind in ["corpus", "regressions"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(kind);
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name().into_string().unwrap();
            assert!(weir_fuzz::find(&name).is_some(), "{kind}/{name} is the folder of no target");
        }
    }
}

/// Whatever any of them is given: a few bytes, and many of one kind.
#[test]
fn every_target_takes_what_is_far_from_its_kind() {
    for target in TARGETS {
        for bytes in
            [&b""[..], b"\0", b"\xff", &[0; 300], &[0xff; 300], &[b'['; 300], &[b'9'; 300], &[b' '; 300]]
        {
            for first in 0..32 {
                let mut input = vec![first];
                input.extend_from_slice(bytes);
                (target.run)(&input);
            }
            (target.run)(bytes);
        }
    }
}
