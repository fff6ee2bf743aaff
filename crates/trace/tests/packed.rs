//! Weir's own format, read at any place.

use std::path::Path;

use crate::made::{Made, all, request};
use proptest::prelude::*;
use weir_trace::packed::{Chunk, MOST_REQUESTS, PackedFile, Spool};
use weir_trace::write::{self, Class, Target, Written};
use weir_trace::{Devices, Options, TraceRequest, open};

fn write_all(requests: &[TraceRequest], path: &Path) -> Written {
    let writer = Target::Weir.create(path, &Class::PerDevice).unwrap();
    write::all(&mut *Made::reader(requests), writer).unwrap()
}

fn many(count: usize) -> Vec<TraceRequest> {
    crate::common::requests(count, 7)
}

#[test]
fn a_long_trace_is_read_at_any_chunk() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.weir");
    let requests = many(3 * MOST_REQUESTS + 5);
    let written = write_all(&requests, &path);
    let end_bytes = requests.iter().map(|request| request.offset_bytes + request.size_bytes).max().unwrap();
    assert_eq!((written.requests, written.end_bytes), (requests.len() as u64, end_bytes));
    assert!(written.losses.is_empty());
    let file = PackedFile::open(&path).unwrap();
    let index = file.index();
    assert_eq!((index.requests(), index.chunks(), index.is_ordered()), (requests.len() as u64, 4, true));
    let mut chunk = Chunk::default();
    for number in [2, 0, 3, 1] {
        file.read(number, &mut chunk).unwrap();
        let found: Vec<_> = (0..chunk.len()).map(|place| chunk.get(place)).collect();
        let wanted = requests.chunks(MOST_REQUESTS).nth(number).unwrap();
        assert_eq!(found, wanted);
        let times = (wanted[0].arrival_ns, wanted[wanted.len() - 1].arrival_ns);
        assert_eq!(index.times_ns(number), Some(times));
        assert_eq!((index.chunk_from(times.0), index.chunk_from(times.1)), (number, number));
        assert_eq!(index.chunk_from(times.1 + 1), number + 1);
    }
    file.read(4, &mut chunk).unwrap();
    assert!(chunk.is_empty());
    let rows: Vec<_> = file.rows().map(Result::unwrap).collect();
    assert_eq!(rows, requests);
    let names: Vec<_> = index.devices().map(|(name, _)| name.to_vec()).collect();
    assert_eq!(names, [b"disk 0", b"disk 1", b"disk 2", b"disk 3"]);
    // A page of a disk, a time and a size, a response and a queueing time, a process and an object: 29 bytes of 72.
    let bytes = std::fs::metadata(&path).unwrap().len();
    assert!(bytes < 32 * requests.len() as u64, "{bytes}");
}

#[test]
fn a_spool_keeps_what_is_put_in() {
    let requests = many(1000);
    let mut spool = Spool::create(64).unwrap();
    requests.iter().for_each(|request| spool.push(request, &Devices::default()).unwrap());
    let file = spool.finish().unwrap();
    assert_eq!((file.index().chunks(), file.index().chunk_requests()), (16, 64));
    assert_eq!(file.into_rows().map(Result::unwrap).collect::<Vec<_>>(), requests);
    let empty = Spool::create(64).unwrap().finish().unwrap();
    assert_eq!((empty.index().requests(), empty.rows().count()), (0, 0));
}

#[test]
fn what_is_no_whole_file_is_refused_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.weir");
    write_all(&many(100), &path);
    let whole = std::fs::read(&path).unwrap();
    for (bytes, says) in [
        (&whole[..whole.len() - 1], "is the file whole?"),
        (&whole[..40], "expected that of a whole trace"),
        (
            &b"another file that is long enough to have an index and a footer, were it one of weir's"[..],
            "weirtrc1",
        ),
    ] {
        std::fs::write(&path, bytes).unwrap();
        let error = PackedFile::open(&path).unwrap_err().to_string();
        assert!(error.contains(says) && error.contains("t.weir"), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_requests_are_read_back(requests in prop::collection::vec(request(), 0..60)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.weir");
        write_all(&requests, &path);
        let file = PackedFile::open(&path).unwrap();
        let rows: Vec<_> = file.rows().map(Result::unwrap).collect();
        prop_assert_eq!(&rows, &requests);
        let ordered = requests.windows(2).all(|two| two[0].arrival_ns <= two[1].arrival_ns);
        prop_assert_eq!(file.index().is_ordered(), ordered);
        let (format, mut reader) = open(&path, &Options::default()).unwrap();
        prop_assert_eq!(format.name, "weir");
        prop_assert_eq!(all(&mut *reader).unwrap(), requests);
        prop_assert_eq!(reader.skipped().count(), 0);
    }

    #[test]
    fn any_changed_byte_is_found(
        requests in prop::collection::vec(request(), 1..60), at in any::<prop::sample::Index>(), flip in 1..=255_u8
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.weir");
        write_all(&requests, &path);
        let mut bytes = std::fs::read(&path).unwrap();
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        std::fs::write(&path, &bytes).unwrap();
        let found = PackedFile::open(&path).and_then(|file| file.rows().collect::<Result<Vec<_>, _>>());
        // The chunk that ends the others is for readers from the start.
        let from_start = open(&path, &Options { format: Some("weir".into()), ..Options::default() })
            .and_then(|(_, mut reader)| all(&mut *reader));
        prop_assert!(found.is_err() || from_start.is_err(), "byte {} of {}", at, bytes.len());
        for read in [found, from_start].into_iter().flatten() {
            prop_assert_eq!(&read, &requests, "byte {} changed what is read", at);
        }
    }
}
