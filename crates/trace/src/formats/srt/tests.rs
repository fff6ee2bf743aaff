//! Records of all versions, whole and damaged.

use super::*;

/// A header in the manner of hplajw's, with disks of two sector sizes.
const HEADER: &str = "$$TR_IOREC-1.3 (IOAdaptor Upgrade Version)\0\n\
version      = 1.3;\ntracedate    = \"Sat May 30 00:03:06 1992\";\nsystem       = \"a.b.c\";\n\
disks        = {\n  0 -> {\n  disktype    = hp335h,\n  seekparms   = {616, 3450},\n  sectorsize  = 256,\n\
  sections   = {\n    8 -> {\n     \"/ }\",\n     size      = (171760 291362816)\n    }\n   }\n  },\n\
  1 -> {\n  disktype    = hp2200,\n  sectorsize  = 512\n  }\n};\n\x0c";

fn record(version: u32, kind: u32, body: &[u32]) -> Vec<u8> {
    let words = [&[16 + 4 * body.len() as u32, version << 16 | kind, 7, 5][..], body].concat();
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

fn reader(records: &[Vec<u8>], skip_bad: bool) -> Box<dyn Reader> {
    let bytes = [HEADER.as_bytes(), &records.concat()].concat();
    let input = Input::from_reader(std::path::Path::new("x.srt"), std::io::Cursor::new(bytes)).unwrap();
    open(input, &Options { skip_bad, ..Options::default() }).unwrap()
}

/// The words of versions 1 to 6 from the fifth on: 174 us to start, 19,687 to stop, 4096 bytes at sector 1056 of disk 1.
const BODY: [u32; 12] = [174, 19_687, 4096, 1056, 0x0800_0107, 4, 1, 27, 0x70000, 3, 42, 9];

#[test]
fn versions_differ_in_their_last_words() {
    let records: Vec<_> = [(1, 9), (3, 9), (4, 10), (5, 11), (6, 12)]
        .map(|(version, words)| record(version, 1, &BODY[..words]))
        .into();
    let mut reader = reader(&records, false);
    for (queue_length, pid) in
        [(None, None), (None, None), (Some(3), None), (Some(3), Some(42)), (Some(3), Some(42))]
    {
        let request = reader.next_request().unwrap().unwrap();
        let expected = TraceRequest {
            arrival_ns: 7_000_005_000,
            queueing_ns: Some(174_000),
            response_ns: Some(19_687_000),
            device: 0,
            op: TraceOp::Read,
            offset_bytes: 1056 * 512,
            size_bytes: 4096,
            object: None,
            queue_length,
            pid,
        };
        assert_eq!(request, expected);
    }
    assert_eq!(reader.next_request().unwrap(), None);
    assert_eq!(reader.devices().name(0), "1");
}

#[test]
fn version_7_has_bytes_and_machines() {
    let mut body = [0; 18];
    body[..5].copy_from_slice(&[1, 2, 512, 5, 0x1f00_2300]);
    body[7] = 0;
    body[9..14].copy_from_slice(&[6, 77, 0x0400_1000, 1, 512]);
    let mut reader = reader(&[record(7, 1, &body)], false);
    let request = reader.next_request().unwrap().unwrap();
    assert_eq!((request.offset_bytes, request.size_bytes), ((1 << 32) + 512, 512));
    assert_eq!((request.op, request.queue_length, request.pid), (TraceOp::Write, Some(6), Some(77)));
    assert_eq!(reader.devices().name(request.device), "5:35");
}

#[test]
fn the_sector_size_is_the_disks() {
    let mut body = BODY;
    body[4] = 0x0700_000f;
    let mut reader = reader(&[record(4, 2, &body[..10])], false);
    assert_eq!(reader.next_request().unwrap().unwrap().offset_bytes, 1056 * 256);
}

#[test]
fn what_the_header_says_is_given_out() {
    let reader = reader(&[], false);
    let find = |name| reader.header().iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    assert_eq!(find("format"), Some("$$TR_IOREC-1.3 (IOAdaptor Upgrade Version)"));
    assert_eq!(find("tracedate"), Some("Sat May 30 00:03:06 1992"));
    assert_eq!((find("disk 0 sectorsize"), find("disk 1 disktype")), (Some("256"), Some("hp2200")));
}

#[test]
fn suspect_and_file_system_records_are_noted_and_no_damage() {
    let records = [record(4, 4, &BODY[..11]), record(4, 1, &BODY[..10]), record(4, 5, &[1, 2])];
    let mut reader = reader(&records, false);
    assert!(reader.next_request().unwrap().is_some());
    assert_eq!(reader.next_request().unwrap(), None);
    assert_eq!(reader.skipped().noted(), [(NOTE_SUSPECT, 1), (NOTE_FILE_SYSTEM, 1)]);
    assert_eq!(reader.skipped().count(), 0);
}

#[test]
fn damage_is_located_and_can_be_passed_over() {
    let good = record(4, 1, &BODY[..10]);
    let mut bad = good.clone();
    bad[5] = 9;
    let records = [good.clone(), bad, good.clone(), good[..30].to_vec()];
    let mut strict = reader(&records, false);
    assert!(strict.next_request().unwrap().is_some());
    let error = strict.next_request().unwrap_err().to_string();
    let place = HEADER.len() + good.len();
    assert!(error.starts_with(&format!("x.srt:byte {place}: record id is \"0x90001\"")), "{error}");
    let mut lenient = reader(&records, true);
    let mut requests = 0;
    while lenient.next_request().unwrap().is_some() {
        requests += 1;
    }
    assert_eq!((requests, lenient.skipped().count()), (2, 2));
}

#[test]
fn a_header_that_does_not_end_is_an_error() {
    for text in ["$$TR_IOREC-1.3\nversion = 1.3;\n", "", "version = 1.3;\n\n"] {
        let input = Input::from_reader(std::path::Path::new("x.srt"), text.as_bytes()).unwrap();
        let error = open(input, &Options::default()).err().unwrap().to_string();
        assert!(error.contains("up to a form feed"), "{error}");
    }
}
