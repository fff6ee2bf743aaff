//! Records and streams, whole and damaged.

use std::path::Path;

use proptest::prelude::*;

use super::*;

fn record() -> Record {
    Record {
        sequence: 1,
        time_ns: 0x0102_0304_0506_0708,
        sector: 0x1112_1314_1516_1718,
        bytes: 4096,
        action: u32::from(category::ISSUE | category::WRITE) << 16 | 7,
        pid: 42,
        device: 7 << 20 | 3,
        cpu: 1,
        error: 0,
        payload: Box::new([]),
    }
}

/// The same record as the other byte order would have it.
fn swapped(record: &Record) -> Vec<u8> {
    let mut bytes = record.encode();
    for (at, width) in
        [(0, 4), (4, 4), (8, 8), (16, 8), (24, 4), (28, 4), (32, 4), (36, 4), (40, 4), (44, 2), (46, 2)]
    {
        bytes[at..at + width].reverse();
    }
    bytes
}

fn read(bytes: &[u8]) -> Result<Vec<Record>, Error> {
    Reader::new(bytes, Path::new("test")).collect()
}

#[test]
fn the_layout_is_the_kernels() {
    let bytes = record().encode();
    assert_eq!(bytes.len(), 48);
    assert_eq!(u32::from_ne_bytes(bytes[0..4].try_into().unwrap()), 0x6561_7407);
    assert_eq!(u64::from_ne_bytes(bytes[16..24].try_into().unwrap()), record().sector);
    assert_eq!(u32::from_ne_bytes(bytes[36..40].try_into().unwrap()), 7 << 20 | 3);
}

#[test]
fn both_byte_orders_are_read() {
    let mut stream = record().encode();
    stream.extend(swapped(&record()));
    assert_eq!(read(&stream).unwrap(), [record(), record()]);
}

#[test]
fn damage_is_located() {
    let mut stream = record().encode();
    stream.extend(b"what is this");
    let error = read(&stream).unwrap_err().to_string();
    assert!(error.starts_with("byte 48: no blktrace record begins here"), "{error}");
    stream.truncate(40);
    assert!(matches!(read(&stream), Err(Error::Truncated { offset: 0, have: 40, need: 48 })));
}

#[test]
fn names_splits_and_cgroups_are_in_the_payload() {
    assert_eq!(Record::naming(7, "fio", 0).process_name().as_deref(), Some("fio"));
    let payload: Box<[u8]> = [1_u64.to_ne_bytes(), 4096_u64.to_be_bytes()].concat().into();
    let split = Record { action: 13 | u32::from(CGROUP), payload, ..record() };
    assert_eq!((split.event(), split.split_at()), (Event::Split, Some(4096)));
}

#[test]
fn files_are_per_cpu_in_order_and_numbered() {
    let directory = tempfile::tempdir().unwrap();
    let at = |time_ns, cpu| Record { time_ns, cpu, ..record() };
    let mut records = [at(30, 0), at(10, 1), at(20, 0)];
    let files = write_per_cpu(&directory.path().join("x"), &mut records).unwrap();
    assert_eq!(files.len(), 2);
    let first: Vec<_> = Reader::open(&files[0]).unwrap().map(Result::unwrap).collect();
    let numbers: Vec<_> = first.iter().map(|record| (record.sequence, record.time_ns)).collect();
    assert_eq!(numbers, [(2, 20), (3, 30)]);
}

proptest! {
    #[test]
    fn any_record_survives(
        time_ns: u64, sector: u64, bytes: u32, action: u32, pid: u32, error: u16,
        payload in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let record = Record { time_ns, sector, bytes, action, pid, error, payload: payload.into(), ..record() };
        prop_assert_eq!(read(&record.encode()).unwrap(), [record]);
    }

    #[test]
    fn any_bytes_end_in_records_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..500)) {
        let _ = read(&bytes);
    }

    #[test]
    fn any_damage_ends_in_records_or_an_error(at in 0_usize..96, value: u8, keep in 0_usize..97) {
        let mut stream = record().encode();
        stream.extend(record().encode());
        stream[at] = value;
        stream.truncate(keep);
        for record in Reader::new(&stream[..], Path::new("test")).flatten() {
            let _ = (record.event(), record.split_at(), record.process_name(), record.data().len());
        }
    }
}
