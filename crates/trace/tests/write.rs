//! Traces that were written, read back: by the crate's own reader, by plain code, and by the programs they are for.

use std::path::Path;
use std::process::Command;

use crate::made::{Made, all, here, ordered};
use proptest::prelude::*;
use weir_trace::blktrace::{Event, Reader as BlkReader, category};
use weir_trace::filter::SinceFirst;
use weir_trace::write::{self, Class, Target, Written};
use weir_trace::{Options, Table, TraceOp, TraceRequest};

fn written(requests: &[TraceRequest], target: Target, path: &Path) -> Written {
    let mut reader = SinceFirst::new(here(), Made::reader(requests));
    let writer = target.create(path, &Class::Named("trace".into())).unwrap();
    write::all(&mut reader, writer).unwrap()
}

fn losses(written: &Written) -> u64 {
    let left_out =
        written.losses.iter().filter(|(what, _)| what.contains("requests") && what.contains("left out"));
    left_out.map(|(_, count)| count).sum()
}

/// Whether blktrace and fio's logs have the operation.
fn has_name(request: &&TraceRequest) -> bool {
    !matches!(request.op, TraceOp::Other | TraceOp::WriteZeroes)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_table_is_read_back(requests in ordered()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.parquet");
        let written = written(&requests, Target::Parquet, &path);
        let kept: Vec<_> = requests.iter().filter(|request| request.op != TraceOp::Other).collect();
        prop_assert_eq!(written.requests + losses(&written), requests.len() as u64);
        prop_assert!(Table::is_one(&path).unwrap());
        let back = all(&mut Table::open(&path).unwrap()).unwrap();
        prop_assert_eq!(back.len(), kept.len());
        let mut numbers = std::collections::HashMap::new();
        for (found, given) in back.iter().zip(kept) {
            let next = numbers.len() as u32;
            let device = *numbers.entry(given.device).or_insert(next);
            let mut expected = TraceRequest { device, pid: None, queue_length: None, ..*given };
            if given.op == TraceOp::Flush {
                // A flush has no place.
                (expected.offset_bytes, expected.size_bytes) = (0, 0);
            }
            prop_assert_eq!(*found, expected);
        }
    }

    #[test]
    fn disksim_is_read_back(requests in ordered()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.disksim");
        let written = written(&requests, Target::Disksim, &path);
        let text = std::fs::read_to_string(&path).unwrap();
        let kept: Vec<_> = requests.iter().filter(|request| request.op.has_data()).collect();
        prop_assert_eq!((text.lines().count(), written.requests), (kept.len(), kept.len() as u64));
        for (line, given) in text.lines().zip(kept) {
            let fields: Vec<&str> = line.split(' ').collect();
            let (ms, part) = fields[0].split_once('.').unwrap();
            let ns = ms.parse::<i64>().unwrap() * 1_000_000 + part.parse::<i64>().unwrap();
            prop_assert_eq!((ns, part.len()), (given.arrival_ns, 6));
            let [device, block, blocks]: [u64; 3] = std::array::from_fn(|i| fields[i + 1].parse().unwrap());
            prop_assert_eq!(device, u64::from(given.device));
            let end = (given.offset_bytes + given.size_bytes).div_ceil(512);
            prop_assert_eq!((block, block + blocks), (given.offset_bytes / 512, end));
            prop_assert_eq!(fields[4] == "1", given.op == TraceOp::Read);
        }
    }

    #[test]
    fn a_log_of_fio_is_read_back(requests in ordered()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.iolog");
        let written = written(&requests, Target::Iolog, &path);
        let text = std::fs::read_to_string(&path).unwrap();
        let mut lines = text.lines();
        prop_assert_eq!(lines.next(), Some("fio version 3 iolog"));
        let kept: Vec<_> = requests.iter().filter(has_name).collect();
        let mut open = std::collections::HashSet::new();
        let mut found = Vec::new();
        for line in lines {
            let fields: Vec<&str> = line.split(' ').collect();
            match fields[2] {
                "add" | "close" => {}
                "open" => prop_assert!(open.insert(fields[1].to_owned())),
                _ => {
                    prop_assert!(open.contains(fields[1]));
                    found.push(fields);
                }
            }
        }
        prop_assert_eq!((found.len(), written.requests), (kept.len(), kept.len() as u64));
        for (fields, given) in found.iter().zip(kept) {
            prop_assert_eq!(fields[0].parse::<i64>().unwrap(), given.arrival_ns / 1000);
            let name = format!("disk_{}", given.device);
            prop_assert_eq!(fields[1], name.as_str());
            let action = match given.op {
                TraceOp::Read => "read",
                TraceOp::Write | TraceOp::WriteFua => "write",
                TraceOp::Flush => "sync",
                _ => "trim",
            };
            let place = (fields[3].parse().unwrap(), fields[4].parse().unwrap());
            prop_assert_eq!((fields[2], place), (action, (given.offset_bytes, given.size_bytes)));
        }
    }

    #[test]
    fn a_stream_of_blktrace_is_read_back(requests in ordered()) {
        let folder = tempfile::tempdir().unwrap();
        let written = written(&requests, Target::Blktrace, &folder.path().join("t"));
        prop_assert_eq!(&written.path, &folder.path().join("t.blktrace.0"));
        let records: Vec<_> = BlkReader::open(&written.path).unwrap().map(Result::unwrap).collect();
        prop_assert!(records.windows(2).all(|pair| pair[0].time_ns <= pair[1].time_ns));
        prop_assert!(records.iter().zip(1..).all(|(record, number)| record.sequence == number));
        let kept: Vec<_> = requests.iter().filter(has_name).collect();
        let queued: Vec<_> = records.iter().filter(|record| record.event() == Event::Queue).collect();
        // A request with a completion and without a queueing time begins with its issue.
        let begins_issued = |request: &&TraceRequest| request.queueing_ns.is_none() && request.response_ns.is_some();
        let kept_queued: Vec<_> = kept.iter().copied().filter(|request| !begins_issued(request)).collect();
        prop_assert_eq!(queued.len(), kept_queued.len());
        let times = |event| {
            let mut times: Vec<_> = records.iter().filter(|r| r.event() == event).map(|r| r.time_ns as i64).collect();
            times.sort_unstable();
            times
        };
        let expected = |of: fn(&TraceRequest) -> Option<i64>| {
            let mut times: Vec<_> = kept.iter().filter_map(|r| Some(r.arrival_ns + of(r)?)).collect();
            times.sort_unstable();
            times
        };
        let issue = |request: &TraceRequest| request.queueing_ns.or(request.response_ns.map(|_| 0));
        prop_assert_eq!(times(Event::Issue), expected(issue));
        prop_assert_eq!(times(Event::Complete), expected(|request| request.response_ns));
        for (record, given) in queued.iter().zip(&kept_queued) {
            prop_assert_eq!(record.time_ns as i64, given.arrival_ns);
            prop_assert_eq!((record.sector, u64::from(record.bytes)), (given.offset_bytes / 512, given.size_bytes));
            prop_assert_eq!(record.device, 240 << 20 | given.device);
            prop_assert_eq!(record.pid, given.pid.unwrap_or(0));
            let is = |category| record.categories() & category != 0;
            prop_assert_eq!(is(category::READ), given.op == TraceOp::Read);
            prop_assert_eq!(is(category::FUA), given.op == TraceOp::WriteFua);
            prop_assert_eq!(is(category::FLUSH), given.op == TraceOp::Flush);
            prop_assert_eq!(is(category::DISCARD), given.op == TraceOp::Discard);
        }
    }
}

fn sample() -> Vec<TraceRequest> {
    let read = TraceRequest { size_bytes: 4096, response_ns: Some(900_000), ..TraceRequest::default() };
    (0..20)
        .map(|n| TraceRequest {
            arrival_ns: n * 1_000_000,
            offset_bytes: n as u64 * 8192,
            queueing_ns: Some(100_000),
            op: if n % 4 == 0 { TraceOp::Write } else { TraceOp::Read },
            ..read
        })
        .collect()
}

fn run(program: &str, arguments: &[&str], folder: &Path) -> Option<String> {
    match Command::new(program).args(arguments).current_dir(folder).output() {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{program}: {text}{errors}");
            Some(text)
        }
        Err(error) => {
            eprintln!("skipped: {program} cannot be run: {error}");
            None
        }
    }
}

#[test]
fn fio_replays_the_log() {
    let folder = tempfile::tempdir().unwrap();
    written(&sample(), Target::Iolog, &folder.path().join("t.iolog"));
    let data = std::fs::File::create(folder.path().join("disk_0")).unwrap();
    data.set_len(1 << 20).unwrap();
    let arguments = [
        "--name=t",
        "--read_iolog=t.iolog",
        "--ioengine=psync",
        "--output-format=json",
        "--replay_no_stall=1",
    ];
    let Some(text) = run("fio", &arguments, folder.path()) else { return };
    let start = text.find('{').unwrap();
    let report: serde_json::Value = serde_json::from_str(&text[start..]).unwrap();
    let ios = |way: &str| report["jobs"][0][way]["total_ios"].as_u64().unwrap();
    assert_eq!((ios("read"), ios("write")), (15, 5));
}

#[test]
fn blkparse_reads_the_stream() {
    let folder = tempfile::tempdir().unwrap();
    written(&sample(), Target::Blktrace, &folder.path().join("t"));
    let Some(text) = run("blkparse", &["-i", "t"], folder.path()) else { return };
    let events = |event: &str, way: &str| {
        text.lines()
            .filter(|line| {
                let fields: Vec<_> = line.split_whitespace().collect();
                fields.first() == Some(&"240,0")
                    && fields.get(5) == Some(&event)
                    && fields.get(6) == Some(&way)
            })
            .count()
    };
    for event in ["Q", "D", "C"] {
        assert_eq!((events(event, "R"), events(event, "W")), (15, 5), "{event}: {text}");
    }
    // The last request, of sector 304.
    assert!(text.contains("0.019900000") && text.contains("304 + 8"), "{text}");
}

#[test]
fn text_of_blkparse_is_read_as_what_was_written() {
    for queueing_ns in [Some(100_000), None] {
        let requests: Vec<_> =
            sample().into_iter().map(|request| TraceRequest { queueing_ns, ..request }).collect();
        let folder = tempfile::tempdir().unwrap();
        written(&requests, Target::Blktrace, &folder.path().join("t"));
        let Some(text) = run("blkparse", &["-i", "t"], folder.path()) else { return };
        let file = folder.path().join("t.txt");
        std::fs::write(&file, text).unwrap();
        let options = Options { format: Some("blkparse".to_owned()), ..Options::default() };
        let (_, mut reader) = weir_trace::open(&file, &options).unwrap();
        let mut found = Vec::new();
        while let Some(request) = reader.next_request().unwrap() {
            found.push(request);
        }
        let of = |r: &TraceRequest| (r.arrival_ns, r.op, r.offset_bytes, r.size_bytes, r.response_ns);
        assert_eq!(
            found.iter().map(of).collect::<Vec<_>>(),
            requests.iter().map(of).collect::<Vec<_>>(),
            "{queueing_ns:?}"
        );
    }
}
