use proptest::prelude::*;
use weir_trace::blktrace::Event;

use super::*;

const COMMON: &str = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
    \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
    \tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n\
    \tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;\n";

/// Of Linux 6.18 on x86-64.
fn decoder() -> Decoder {
    let issue = "\tfield:unsigned int nr_sector;\toffset:24;\tsize:4;\tsigned:0;\n\
        \tfield:unsigned int bytes;\toffset:28;\tsize:4;\tsigned:0;\n\
        \tfield:unsigned short ioprio;\toffset:32;\tsize:2;\tsigned:0;\n\
        \tfield:char rwbs[10];\toffset:34;\tsize:10;\tsigned:0;\n\
        \tfield:char comm[16];\toffset:44;\tsize:16;\tsigned:0;\n";
    let complete = "\tfield:unsigned int nr_sector;\toffset:24;\tsize:4;\tsigned:0;\n\
        \tfield:int error;\toffset:28;\tsize:4;\tsigned:1;\n\
        \tfield:char rwbs[10];\toffset:34;\tsize:10;\tsigned:0;\n";
    let split = "\tfield:sector_t new_sector;\toffset:24;\tsize:8;\tsigned:0;\n\
        \tfield:char rwbs[10];\toffset:32;\tsize:10;\tsigned:0;\n";
    let mut decoder = Decoder::default();
    for (event, id, own) in
        [("block_rq_issue", 11, issue), ("block_rq_complete", 12, complete), ("block_split", 13, split)]
    {
        assert!(decoder.learn(event, &format!("name: {event}\nID: {id}\nformat:\n{COMMON}{own}")));
    }
    decoder
}

fn event(id: u16, sector: u64, at_24: u64, letters: &[u8], letters_at: usize) -> Vec<u8> {
    let mut data = vec![0; 64];
    data[..2].copy_from_slice(&id.to_ne_bytes());
    data[4..8].copy_from_slice(&77_u32.to_ne_bytes());
    data[8..12].copy_from_slice(&(7_u32 << 20 | 3).to_ne_bytes());
    data[16..24].copy_from_slice(&sector.to_ne_bytes());
    data[24..32].copy_from_slice(&at_24.to_ne_bytes());
    data[letters_at..letters_at + letters.len()].copy_from_slice(letters);
    data
}

fn records(decoder: &mut Decoder, data: &[u8]) -> Vec<Record> {
    let mut found = Vec::new();
    decoder.records(1, 99, data, |record| found.push(record));
    found
}

#[test]
fn a_request_is_issued_by_a_task_that_is_named_once() {
    let mut decoder = decoder();
    let mut data = event(11, 800, u64::from_ne_bytes([8, 0, 0, 0, 0, 16, 0, 0]), b"WSM\0\0\0\0\0\0\0", 34);
    data[44..48].copy_from_slice(b"fio\0");
    let found = records(&mut decoder, &data);
    assert_eq!(found[0].process_name().as_deref(), Some("fio"));
    let record = &found[1];
    assert_eq!((record.event(), record.sector, record.bytes), (Event::Issue, 800, 4096));
    assert_eq!((record.pid, record.device, record.cpu, record.time_ns), (77, 7 << 20 | 3, 1, 99));
    let expected = category::WRITE | category::SYNC | category::META | category::FS | category::ISSUE;
    assert_eq!(record.categories(), expected);
    assert_eq!(records(&mut decoder, &data).len(), 1);
    data[44..48].copy_from_slice(b"dd\0\0");
    assert_eq!(records(&mut decoder, &data).len(), 2, "the task has another name now");
}

#[test]
fn a_completion_has_the_error_of_the_request() {
    let error = u64::from_ne_bytes([16, 0, 0, 0, 0xfb, 0xff, 0xff, 0xff]);
    let found = records(&mut decoder(), &event(12, 8, error, b"R", 34));
    assert_eq!((found[0].event(), found[0].bytes, found[0].error), (Event::Complete, 8192, 5));
}

#[test]
fn a_split_tells_where_the_rest_begins() {
    let found = records(&mut decoder(), &event(13, 100, 108, b"R", 32));
    assert_eq!((found[0].event(), found[0].bytes, found[0].split_at()), (Event::Split, 4096, Some(108)));
}

#[test]
fn letters_are_told_apart_by_their_place() {
    let bits = |letters: &str| categories(letters.as_bytes());
    assert_eq!(bits("R"), category::READ | category::FS);
    assert_eq!(bits("RA"), category::READ | category::READ_AHEAD | category::FS);
    assert_eq!(bits("DS"), category::WRITE | category::DISCARD | category::SYNC | category::FS);
    assert_eq!(bits("F"), category::READ | category::FLUSH | category::FS);
    assert_eq!(bits("FF") & category::WRITE, 0);
    assert_eq!(bits("FWFS"), bits("WS") | category::FLUSH | category::FUA);
    assert_eq!(bits("WF"), bits("W") | category::FUA);
    assert_eq!(bits("N"), category::PASS_THROUGH);
    assert_eq!(bits(""), category::PASS_THROUGH);
}

#[test]
fn what_is_not_known_is_passed_over() {
    let mut decoder = decoder();
    assert!(records(&mut decoder, &event(99, 0, 0, b"R", 34)).is_empty());
    assert!(records(&mut decoder, &event(12, 0, 0, b"R", 34)[..40]).is_empty());
    assert!(!decoder.learn("block_rq_issue", "ID: 1"));
    assert!(!decoder.learn("sched_switch", &format!("ID: 1\n{COMMON}")));
    assert!(records(&mut Decoder::default(), &event(12, 0, 0, b"R", 34)).is_empty());
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(
        kind in 10_u16..15,
        bytes in proptest::collection::vec(any::<u8>(), 0..80),
    ) {
        let mut data = kind.to_ne_bytes().to_vec();
        data.extend(bytes);
        prop_assert!(records(&mut decoder(), &data).len() <= 2);
    }
}
