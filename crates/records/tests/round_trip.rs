//! What is written is read back, and damage is an error rather than a panic.

use std::fs::File;
use std::path::Path;

use parquet::basic::Encoding;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use proptest::prelude::*;
use weir_records::{
    BlockOp, BlockRequest, OfHost, Op, Request, TableReader, TableWriter, read_all, write_all,
};

fn request() -> impl Strategy<Value = Request> {
    (
        (
            any::<u64>(),
            "[a-z]{1,8}",
            any::<u32>(),
            proptest::option::of("[a-z0-9/]{1,12}"),
            any::<Option<u32>>(),
        ),
        (any::<bool>(), any::<u64>(), any::<u64>(), any::<i64>()),
        (any::<bool>(), any::<Option<u32>>(), any::<Option<i64>>(), any::<Option<u32>>()),
        (0..4096, any::<bool>()),
    )
        .prop_map(|(a, b, c, d)| Request {
            request: a.0,
            class: a.1.into(),
            client: a.2,
            device: a.3.map(Into::into),
            file: a.4,
            op: if b.0 { Op::Read } else { Op::Write },
            offset: b.1,
            size_bytes: b.2,
            intended_ns: b.3,
            submitted_ns: c.0.then_some(b.3),
            completed_ns: c
                .1
                .map(|after| b.3.saturating_add(after.into()).saturating_add(i64::from(u32::MAX))),
            deadline_ns: c.2,
            served_ns: c.3.map(|after| b.3.saturating_add(after.into())),
            status: d.0,
            warmup: d.1,
        })
}

fn block(sector: u64) -> BlockRequest {
    BlockRequest {
        device: "loop0".into(),
        sector,
        size_bytes: 4096,
        op: BlockOp::Read,
        flags: "sync".into(),
        priority: Some(2 << 13 | 4),
        pid: 17,
        comm: "fio".into(),
        cgroup: None,
        queued_ns: Some(1),
        inserted_ns: None,
        issued_ns: Some(2),
        completed_ns: (!sector.is_multiple_of(7)).then_some(3),
        status: 0,
        source: "bpf".into(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn requests_survive_a_round_trip(rows in proptest::collection::vec(request(), 0..200)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("requests.parquet");
        write_all(&path, 42, &rows).unwrap();
        prop_assert_eq!(TableReader::<Request>::open(&path).unwrap().epoch_monotonic_ns(), 42);
        prop_assert_eq!(read_all::<Request>(&path).unwrap(), rows);
    }
}

#[test]
fn rows_of_several_hosts_are_read_with_their_hosts_and_without() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("block.parquet");
    let rows: Vec<_> = (0..100)
        .map(|sector| OfHost { row: block(sector), host: if sector % 3 == 0 { "a" } else { "b" }.into() })
        .collect();
    write_all(&path, 7, &rows).unwrap();
    assert_eq!(read_all::<OfHost<BlockRequest>>(&path).unwrap(), rows);
    let plain: Vec<_> = rows.into_iter().map(|of| of.row).collect();
    assert_eq!(read_all::<BlockRequest>(&path).unwrap(), plain);
    // A run of one host has no such column.
    write_all(&path, 7, &plain).unwrap();
    let error = read_all::<OfHost<BlockRequest>>(&path).unwrap_err().to_string();
    assert!(error.contains("column host is missing"), "{error}");
}

#[test]
fn more_rows_than_one_group_and_one_batch() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("block.parquet");
    let rows: Vec<_> = (0..150_000).map(block).collect();
    assert_eq!(write_all(&path, 0, &rows).unwrap(), 150_000);
    assert_eq!(read_all::<BlockRequest>(&path).unwrap(), rows);
}

/// Encodings and bytes of the column `request` in the first row group.
fn encoding_of_request(path: &Path) -> (Vec<Encoding>, i64) {
    let file = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let group = file.metadata().row_group(0);
    let column = group.columns().iter().find(|column| column.column_path().string() == "request").unwrap();
    (column.encodings().collect(), column.compressed_size())
}

/// The file is of a run of an earlier version, whose request numbers had a dictionary: it is read as before, and takes less
/// when written again.
#[test]
fn request_numbers_are_differences_and_files_with_a_dictionary_are_read() {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/requests-with-dictionary.parquet");
    let (before, large) = encoding_of_request(&sample);
    assert!(before.contains(&Encoding::RLE_DICTIONARY), "{before:?}");
    let rows = read_all::<Request>(&sample).unwrap();
    assert!(rows.len() > 7000 && rows.iter().map(|row| row.request).eq(0..rows.len() as u64));

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("requests.parquet");
    write_all(&path, 0, &rows).unwrap();
    let (after, small) = encoding_of_request(&path);
    assert!(after.contains(&Encoding::DELTA_BINARY_PACKED), "{after:?}");
    assert!(!after.contains(&Encoding::RLE_DICTIONARY), "{after:?}");
    assert!(small * 50 < large, "{small} of {large} bytes");
    assert_eq!(read_all::<Request>(&path).unwrap(), rows);
}

#[test]
fn an_abandoned_table_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("block.parquet");
    let mut writer = TableWriter::create(&path, 0).unwrap();
    writer.write(&block(1)).unwrap();
    drop(writer);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn another_table_is_named_as_such() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("block.parquet");
    write_all(&path, 0, &[block(1)]).unwrap();
    let error = read_all::<Request>(&path).unwrap_err().to_string();
    assert!(error.contains("column request is missing"), "{error}");
}

#[test]
fn rows_that_cannot_be_are_named_by_file_row_and_column() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("block.parquet");
    let wrong = |change: &dyn Fn(&mut BlockRequest)| {
        let mut rows = vec![block(1), block(2), block(3)];
        change(&mut rows[2]);
        write_all(&path, 0, &rows).unwrap();
        read_all::<BlockRequest>(&path).unwrap_err().to_string()
    };
    let error = wrong(&|row| row.completed_ns = Some(1));
    assert_eq!(error, format!("{}: row 2: column completed_ns: is 1, before issued_ns (2)", path.display()));
    for (change, words) in [
        (
            &(|row: &mut BlockRequest| row.issued_ns = Some(0)) as &dyn Fn(&mut BlockRequest),
            "column issued_ns",
        ),
        (&|row| row.size_bytes = 0, "column size_bytes"),
        (&|row| row.status = -5, "column status: is -5"),
        (&|row| row.status = 4096, "column status: is 4096"),
    ] {
        assert!(wrong(change).contains(words), "{words}");
    }
    // The second source has another clock.
    let mut other = block(1);
    (other.source, other.completed_ns) = ("bpf+ftrace".into(), Some(1));
    write_all(&path, 0, [&other]).unwrap();
    assert_eq!(read_all::<BlockRequest>(&path).unwrap(), [other]);
}

#[test]
fn a_request_that_is_answered_before_it_is_asked_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("requests.parquet");
    let good = Request {
        request: 0,
        class: "text".into(),
        client: 0,
        device: None,
        file: None,
        op: Op::Read,
        offset: 0,
        size_bytes: 1,
        intended_ns: 5,
        submitted_ns: Some(6),
        completed_ns: Some(8),
        deadline_ns: None,
        served_ns: Some(7),
        status: 0,
        warmup: false,
    };
    for (wrong, words) in [
        (
            Request { completed_ns: Some(4), submitted_ns: None, served_ns: None, ..good.clone() },
            "column completed_ns: is 4, before intended_ns (5)",
        ),
        (
            Request { completed_ns: Some(5), served_ns: None, ..good.clone() },
            "column completed_ns: is 5, before submitted_ns (6)",
        ),
        (Request { submitted_ns: Some(4), ..good.clone() }, "column submitted_ns"),
        (Request { served_ns: Some(9), ..good.clone() }, "column completed_ns: is 8, before served_ns (9)"),
    ] {
        write_all(&path, 0, [&good, &wrong]).unwrap();
        let error = read_all::<Request>(&path).unwrap_err().to_string();
        assert!(error.contains(&format!("row 1: {words}")), "{error}");
    }
    write_all(&path, 0, [&good]).unwrap();
    assert_eq!(read_all::<Request>(&path).unwrap(), [good]);
}

#[test]
fn damage_is_an_error_or_other_rows_but_no_panic() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("block.parquet");
    write_all(&path, 0, (0..300).map(block).collect::<Vec<_>>().iter()).unwrap();
    let whole = std::fs::read(&path).unwrap();
    let mut errors = 0;
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0xa5;
        std::fs::write(&path, &bytes).unwrap();
        errors += usize::from(read_all::<BlockRequest>(&path).is_err());
    }
    // What is left are the footer's statistics, which are not read: pages have checksums. The manifest of a run has the rest.
    println!("{errors} of {} bytes are missed when they are wrong", whole.len());
    assert!(errors > whole.len() / 3);
}

#[test]
fn a_truncated_file_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("block.parquet");
    write_all(&path, 0, (0..1000).map(block).collect::<Vec<_>>().iter()).unwrap();
    let whole = std::fs::read(&path).unwrap();
    for length in [0, 3, 4, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&path, &whole[..length]).unwrap();
        assert!(read_all::<BlockRequest>(&path).is_err(), "cut at {length}");
    }
}
