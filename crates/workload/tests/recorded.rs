//! Recorded traces as workloads: what is sent is what was recorded, at its times and places.

use std::path::Path;

use proptest::prelude::*;
use weir_records::{Op, Request};
use weir_specs::Document;
use weir_workload::{Stream, StreamOptions, Workload};

const S: i64 = 1_000_000_000;

/// Three requests to `d0` and one to `d1`, in a table of seconds, devices, offsets, sizes and operations.
const TABLE: &str = "\
time,device,offset,size,op
0.0,d0,0,4096,r
1.0,d0,4096,4096,w
1.5,d1,1000000,512,r
4.0,d0,2097152,8192,r
";

fn spec(folder: &Path, trace: &str, more: &str) -> Result<Workload, String> {
    std::fs::write(folder.join("trace.csv"), trace).unwrap();
    let path = folder.join("week.yml");
    let text = format!(
        "name: week\ndescription: a\nsource: b\narrivals:\n  recorded:\n    path: trace.csv\n    format: csv\n    \
         options: {{header: \"yes\", time: time, device: device, offset: offset, size: size, op: op, reads: r}}\n    \
         {more}\nfiles:\n  count: 2\n  size: {{fixed: {{bytes: 1048576}}}}\nsizes: recorded\naccess: recorded\n"
    );
    std::fs::write(&path, text).unwrap();
    let document = Document::read(&path).unwrap();
    Workload::from_document(&document).map_err(|problems| problems.to_string())
}

fn options(folder: &Path, clients: u32, seconds: i64) -> StreamOptions {
    StreamOptions {
        class: "disk".into(),
        clients,
        seed: 1,
        duration_ns: seconds * S,
        warmup_ns: 0,
        folder: folder.to_owned(),
    }
}

fn sent(stream: Stream) -> Vec<(i64, u32, Op, u64, u64)> {
    let row = |request: Request| {
        (request.intended_ns, request.file.unwrap(), request.op, request.offset, request.size_bytes)
    };
    stream.map(row).collect()
}

#[test]
fn requests_are_sent_as_recorded_and_the_tape_goes_round() {
    let folder = tempfile::tempdir().unwrap();
    let workload = spec(folder.path(), TABLE, "time_scale: 0.5").unwrap();
    let stream = Stream::new(&workload, options(folder.path(), 1, 3)).unwrap();
    assert_eq!(stream.notes().len(), 2, "{:?}", stream.notes());
    assert!(
        stream.notes()[0].contains("file 0: addresses up to 2105344 bytes scaled"),
        "{:?}",
        stream.notes()
    );
    assert!(stream.notes()[1].contains("1 requests widened"), "{:?}", stream.notes());
    // d0 reaches to 2105344 and is scaled into 1 MiB; what follows on the request before still does. d1 fits,
    // and its 512 bytes are widened to the page that they lie in.
    let round_ns = 2 * S + S / 2;
    assert_eq!(
        sent(stream),
        [
            (0, 0, Op::Read, 0, 4096),
            (S / 2, 0, Op::Write, 4096, 4096),
            (3 * S / 4, 1, Op::Read, 999_424, 4096),
            (2 * S, 0, Op::Read, 1_040_384, 8192),
            (round_ns, 0, Op::Read, 0, 4096),
        ]
    );
}

#[test]
fn clients_begin_at_different_places() {
    let folder = tempfile::tempdir().unwrap();
    let workload = spec(folder.path(), TABLE, "").unwrap();
    let rows = |clients| -> Vec<_> {
        sent(Stream::new(&workload, options(folder.path(), clients, 20)).unwrap()).into_iter().collect()
    };
    let (one, two) = (rows(1), rows(2));
    // A round takes 5 s, its last mean gap included: the second client is 2.5 s ahead.
    assert_eq!(one.len(), 16);
    assert_eq!(two.len(), 32);
    assert!(two.contains(&(3 * S / 2, 0, Op::Read, 1_040_384, 8192)), "{two:?}");
}

#[test]
fn a_part_of_the_time_is_chosen() {
    let folder = tempfile::tempdir().unwrap();
    let workload = spec(folder.path(), TABLE, "from_s: 1\n    to_s: 4").unwrap();
    let rows = sent(Stream::new(&workload, options(folder.path(), 1, 1)).unwrap());
    assert_eq!(
        rows.iter().map(|row| (row.0, row.1)).collect::<Vec<_>>(),
        [(0, 0), (S / 2, 1), (3 * S / 4, 0)]
    );
}

#[test]
fn a_trace_out_of_order_is_sorted() {
    let folder = tempfile::tempdir().unwrap();
    let mut lines: Vec<&str> = TABLE.lines().collect();
    lines.swap(2, 4);
    let workload = spec(folder.path(), &(lines.join("\n") + "\n"), "").unwrap();
    let swapped = sent(Stream::new(&workload, options(folder.path(), 1, 9)).unwrap());
    let workload = spec(folder.path(), TABLE, "").unwrap();
    assert_eq!(swapped, sent(Stream::new(&workload, options(folder.path(), 1, 9)).unwrap()));
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    for (more, says) in [
        ("time_scale: 0", "arrivals.recorded.time_scale: is 0"),
        ("from_s: 5\n    to_s: 1", "arrivals.recorded.to_s"),
        ("to_s: 1\nread_share: 0.5", "read_share: is for drawn requests"),
        ("to_s: 1\ndeadline: round_end", "a trace has no rounds"),
    ] {
        let error = spec(folder.path(), TABLE, more).unwrap_err();
        assert!(error.contains(says), "{error}");
    }
    let workload = spec(folder.path(), TABLE, "from_s: 100").unwrap();
    let error = Stream::new(&workload, options(folder.path(), 1, 1)).err().unwrap();
    assert!(error.contains("no reads or writes"), "{error}");
    let more_devices = TABLE.replace("1.0,d0", "1.0,d7");
    let workload = spec(folder.path(), &more_devices, "").unwrap();
    let error = Stream::new(&workload, options(folder.path(), 1, 1)).err().unwrap();
    assert!(error.contains("asks 3 devices, and files.count is 2"), "{error}");
    let mut absent = workload;
    *absent.recording().unwrap() = "elsewhere.csv".into();
    let (field, message) = absent.look_for_recording(folder.path()).unwrap_err();
    assert!(field == "arrivals.recorded.path" && message.contains("elsewhere.csv"), "{field}: {message}");
}

proptest! {
    #[test]
    fn every_request_is_sent_once_a_round_within_its_file(
        rows in prop::collection::vec((0u32..10_000, 0u8..2, 0u64..(1 << 40), 1u64..(3 << 20), any::<bool>()), 1..60),
        clients in 1u32..4,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let mut table = String::from("time,device,offset,size,op\n");
        for (ms, device, offset, size, reads) in &rows {
            let op = if *reads { "r" } else { "w" };
            table += &format!("{}.{:03},d{device},{offset},{size},{op}\n", ms / 1000, ms % 1000);
        }
        let workload = spec(folder.path(), &table, "").unwrap();
        let first = rows.iter().map(|row| row.0).min().unwrap();
        let last = rows.iter().map(|row| row.0).max().unwrap();
        let span_ns = i64::from(last - first) * 1_000_000;
        let round_ns = span_ns + (span_ns / rows.len() as i64).max(1);
        let mut wanted = options(folder.path(), clients, 1);
        wanted.duration_ns = round_ns;
        let sent = sent(Stream::new(&workload, wanted).unwrap());
        // Whole rounds: as many of each client as there are on the tape, whatever its place on it.
        prop_assert_eq!(sent.len(), rows.len() * clients as usize);
        let reads = rows.iter().filter(|row| row.4).count();
        prop_assert_eq!(sent.iter().filter(|row| row.2 == Op::Read).count(), reads * clients as usize);
        for (at_ns, file, _, offset, size) in sent {
            prop_assert!((0..round_ns).contains(&at_ns) && file < 2);
            prop_assert!(size > 0 && offset % 4096 == 0 && size % 4096 == 0 && offset + size <= 1 << 20);
        }
    }
}
