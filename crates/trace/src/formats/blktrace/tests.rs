//! Requests of streams that are put together here.

use super::*;
use crate::blktrace::write_per_cpu;

const DEVICE: u32 = 8 << 20 | 16;

fn event(code: u16, categories: u16, time_ns: u64, sector: u64, bytes: u32) -> Record {
    Record {
        sequence: 0,
        time_ns,
        sector,
        bytes,
        action: u32::from(categories) << 16 | u32::from(code),
        pid: 7,
        device: DEVICE,
        cpu: 0,
        error: 0,
        payload: Box::new([]),
    }
}

const Q: u16 = 1;
const M: u16 = 2;
const F: u16 = 3;
const R: u16 = 6;
const D: u16 = 7;
const C: u16 = 8;
const X: u16 = 13;
const READ: u16 = category::READ;
const WRITE: u16 = category::WRITE;

fn reader(bytes: Vec<u8>, skip_bad: bool) -> Requests<Events> {
    let input = Input::from_reader(Path::new("sda.blktrace.0"), std::io::Cursor::new(bytes)).unwrap();
    Requests::new(vec![input], skip_bad)
}

fn all(reader: &mut dyn Reader) -> Vec<TraceRequest> {
    std::iter::from_fn(|| reader.next_request().unwrap()).collect()
}

fn stream(records: &[Record]) -> Vec<u8> {
    records.iter().flat_map(Record::encode).collect()
}

#[test]
fn a_request_is_queued_issued_and_completed() {
    let records =
        [event(Q, READ, 10, 2048, 4096), event(D, READ, 30, 2048, 4096), event(C, READ, 100, 2048, 4096)];
    let mut reader = reader(stream(&records), false);
    let request = TraceRequest {
        arrival_ns: 10,
        queueing_ns: Some(20),
        response_ns: Some(90),
        device: 0,
        op: TraceOp::Read,
        offset_bytes: 2048 * 512,
        size_bytes: 4096,
        pid: Some(7),
        ..TraceRequest::default()
    };
    assert_eq!(all(&mut reader), [request]);
    assert_eq!(reader.devices().name(0), "8:16");
}

#[test]
fn what_is_merged_is_one_request_that_arrived_with_its_first_bio() {
    let records = [
        event(Q, WRITE, 10, 108, 4096),
        event(Q, WRITE, 20, 116, 4096),
        event(M, WRITE, 21, 116, 4096),
        event(Q, WRITE, 30, 100, 4096),
        event(F, WRITE, 31, 100, 4096),
        event(D, WRITE, 40, 100, 12_288),
        event(C, WRITE, 50, 100, 12_288),
    ];
    let mut reader = reader(stream(&records), false);
    let requests = all(&mut reader);
    assert_eq!((requests.len(), requests[0].arrival_ns, requests[0].size_bytes), (1, 10, 12_288));
    assert!(reader.queued.bios.is_empty());
}

#[test]
fn the_parts_of_what_is_split_arrived_together() {
    let mut split = event(X, WRITE, 11, 100, 8192);
    split.payload = 108_u64.to_be_bytes().into();
    let records = [
        event(Q, WRITE, 10, 100, 8192),
        split,
        event(D, WRITE, 20, 100, 4096),
        event(D, WRITE, 21, 108, 4096),
        event(C, WRITE, 30, 108, 4096),
        event(C, WRITE, 31, 100, 4096),
    ];
    let times: Vec<_> = all(&mut reader(stream(&records), false))
        .iter()
        .map(|request| (request.offset_bytes / 512, request.arrival_ns, request.response_ns))
        .collect();
    assert_eq!(times, [(100, 10, Some(21)), (108, 10, Some(20))]);
}

#[test]
fn what_the_driver_gives_back_is_issued_once() {
    let records = [
        event(Q, READ, 10, 0, 512),
        event(D, READ, 20, 0, 512),
        event(R, READ, 25, 0, 512),
        event(D, READ, 30, 0, 512),
        event(C, READ, 40, 0, 512),
    ];
    let requests = all(&mut reader(stream(&records), false));
    assert_eq!((requests.len(), requests[0].queueing_ns), (1, Some(20)));
}

#[test]
fn ends_and_beginnings_that_were_not_recorded_are_noted() {
    let flush = event(D, category::FLUSH | category::WRITE, 7, 0, 0);
    let records = [event(C, READ, 5, 1, 512), event(D, category::DISCARD, 6, 8, 4096), flush];
    let mut reader = reader(stream(&records), false);
    let requests = all(&mut reader);
    let [discard, flush] = requests[..] else { panic!("{requests:?}") };
    assert_eq!((discard.op, discard.queueing_ns, discard.response_ns), (TraceOp::Discard, None, None));
    assert_eq!(flush.op, TraceOp::Flush);
    assert_eq!(reader.skipped().noted(), [(UNISSUED, 1), (INCOMPLETE, 2)]);
}

#[test]
fn files_of_all_cpus_are_one_trace() {
    let folder = tempfile::tempdir().unwrap();
    let on = |cpu, record: Record| Record { cpu, ..record };
    let mut records = [
        on(2, event(Q, READ, 10, 0, 512)),
        on(0, event(D, READ, 20, 0, 512)),
        on(10, event(C, READ, 40, 0, 512)),
    ];
    let name = folder.path().join("sda");
    write_per_cpu(&name, &mut records).unwrap();
    let (format, mut reader) = crate::open(&name, &Options::default()).unwrap();
    let requests = all(&mut *reader);
    assert_eq!((format.name, requests.len()), ("blktrace", 1));
    assert_eq!((requests[0].queueing_ns, requests[0].response_ns), (Some(10), Some(30)));
    let wrong = Options { format: Some("msr".into()), ..Options::default() };
    assert!(matches!(crate::open(&name, &wrong), Err(Error::Io { .. })));
}

#[test]
fn damage_is_located_and_can_be_passed_over() {
    let good = stream(&[event(D, READ, 20, 0, 512), event(C, READ, 40, 0, 512)]);
    let bytes = [&good[..], b"not a record at all", &good, &good[..20]].concat();
    let mut strict = reader(bytes.clone(), false);
    assert!(strict.next_request().unwrap().is_some());
    let error = strict.next_request().unwrap_err().to_string();
    assert!(error.starts_with("sda.blktrace.0:byte 96: magic number is"), "{error}");
    let mut lenient = reader(bytes, true);
    assert_eq!((all(&mut lenient).len(), lenient.skipped().count()), (2, 2));
}
