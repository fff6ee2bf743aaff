//! Every format: written requests are read back, damage is an error or counted, and nothing panics.

use crate::common::{Codec, Covers, codecs};
use proptest::prelude::*;
use weir_trace::{FORMATS, Options, Reader, TraceOp, TraceRequest};

/// As many requests as a damaged file could have if each were read twice: a reader that yields more is caught in a loop.
const RUN_AWAY: usize = 1 << 20;

fn drain(reader: &mut dyn Reader) -> Result<Vec<TraceRequest>, weir_trace::Error> {
    let mut all = Vec::new();
    while let Some(request) = reader.next_request()? {
        all.push(request);
        assert!(all.len() < RUN_AWAY, "the reader does not end");
    }
    Ok(all)
}

/// Checks that requests come back as the format keeps them.
fn survive(codec: &Codec, requests: &[TraceRequest]) {
    let mut reader = codec.open((codec.encode)(requests), false).unwrap();
    let read = drain(&mut *reader).unwrap();
    let names: Vec<_> = read.iter().map(|request| reader.devices().name(request.device)).collect();
    let read: Vec<_> = read.iter().map(|request| TraceRequest { device: 0, ..*request }).collect();
    assert_eq!(read, (codec.keep)(requests), "{}", codec.format);
    let expected: Vec<_> =
        requests.iter().enumerate().map(|(place, request)| (codec.device)(place, request.device)).collect();
    assert_eq!(names, expected, "{}", codec.format);
    assert_eq!(reader.skipped().count(), 0, "{}", codec.format);
}

/// Checks that a damaged file ends, and that nothing of it is lost silently.
fn account(codec: &Codec, bytes: &[u8]) {
    if let Ok(mut strict) = codec.open(bytes.to_vec(), false) {
        let _ = drain(&mut *strict);
    }
    let Ok(mut lenient) = codec.open(bytes.to_vec(), true) else { return };
    let read = match drain(&mut *lenient) {
        // By chance, the bytes begin with the mark of a compressor.
        Err(weir_trace::Error::Io { .. }) => return,
        read => read.unwrap().len() as u64,
    };
    let counted = read + lenient.skipped().count();
    let expected = match codec.covers {
        Covers::Lines => {
            let lines = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
            // Frames have comments.
            lines.filter(|line| !line.is_empty() && (codec.format != "frames" || line[0] != b'#')).count()
        }
        Covers::Records(size) => bytes.len().div_ceil(size),
        Covers::Other => return,
    };
    assert_eq!(counted, expected as u64, "{}", codec.format);
}

fn request() -> impl Strategy<Value = TraceRequest> {
    let times = (0..5_000_000_000_i64, 0..1_000_000_000_i64, prop::option::of(0..3_000_000_000_i64));
    let place = (0..4_u32, any::<bool>(), 0..1_u64 << 32, 1..1_u64 << 20);
    let rest = (any::<u32>(), 0..1000_u32, 0..=u32::MAX);
    (times, place, rest).prop_map(|((gap_ns, queueing_ns, response), place, (object, queue_length, pid))| {
        TraceRequest {
            arrival_ns: gap_ns,
            queueing_ns: Some(queueing_ns),
            response_ns: response.map(|ns| queueing_ns + ns),
            device: place.0,
            op: if place.1 { TraceOp::Read } else { TraceOp::Write },
            offset_bytes: place.2 * 512,
            size_bytes: place.3 * 512,
            object: Some(u64::from(object)),
            queue_length: Some(queue_length),
            pid: Some(pid),
        }
    })
}

fn trace(most: usize) -> impl Strategy<Value = Vec<TraceRequest>> {
    prop::collection::vec(request(), 0..most).prop_map(|mut requests| {
        let mut at_ns = 0;
        for request in &mut requests {
            at_ns += request.arrival_ns;
            request.arrival_ns = at_ns;
        }
        requests
    })
}

#[test]
fn every_format_is_written_here() {
    let codecs = codecs();
    for format in FORMATS {
        assert!(codecs.iter().any(|codec| codec.format == format.name), "{}", format.name);
    }
}

#[test]
fn many_requests_survive_and_are_told() {
    let requests = crate::common::requests(20_000, 1);
    for codec in codecs() {
        survive(&codec, &requests);
        let bytes = (codec.encode)(&requests);
        let told = FORMATS.iter().find(|format| (format.detect)(&bytes[..bytes.len().min(64 << 10)]));
        if codec.detected {
            assert_eq!(told.map(|format| format.name), Some(codec.format));
        }
    }
}

#[test]
fn compressed_traces_are_read_in_place() {
    use std::io::Write;
    let requests = crate::common::requests(1000, 2);
    let codec = codecs().into_iter().find(|codec| codec.format == "msr").unwrap();
    let plain = (codec.encode)(&requests);
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(&plain).unwrap();
    let mut bz = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    bz.write_all(&plain).unwrap();
    let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 1);
    xz.write_all(&plain).unwrap();
    let zst = zstd::stream::encode_all(&plain[..], 1).unwrap();
    for packed in [gz.finish().unwrap(), bz.finish().unwrap(), xz.finish().unwrap(), zst] {
        let read = drain(&mut *codec.open(packed.clone(), false).unwrap()).unwrap();
        assert_eq!(read.len(), requests.len());
        // A truncated end is never skipped silently.
        let cut = codec.open(packed[..packed.len() - 20].to_vec(), true);
        assert!(cut.and_then(|mut reader| drain(&mut *reader)).is_err());
    }
}

#[test]
fn a_format_that_is_not_known_is_answered_with_those_that_are() {
    let input = weir_trace::Input::from_reader(std::path::Path::new("x"), &b"?"[..]).unwrap();
    let options = Options { format: Some("tape".into()), ..Options::default() };
    let error = weir_trace::open_input(input, &options).err().unwrap().to_string();
    assert!(error.contains("srt") && error.contains("csv"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_trace_survives(requests in trace(40)) {
        for codec in codecs() {
            survive(&codec, &requests);
        }
    }

    #[test]
    fn any_bytes_end_and_are_accounted_for(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        for codec in codecs() {
            account(&codec, &bytes);
        }
    }

    #[test]
    fn any_text_ends_and_is_accounted_for(text in "([0-9a-fRW .,:*#\n]{0,40}\n){0,12}") {
        for codec in codecs() {
            account(&codec, text.as_bytes());
        }
    }

    #[test]
    fn any_damage_ends_and_is_accounted_for(
        requests in trace(12),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4_u8), 1..6),
        keep in any::<prop::sample::Index>(),
    ) {
        for codec in codecs() {
            let mut bytes = (codec.encode)(&requests);
            for (at, value, kind) in &changes {
                if bytes.is_empty() {
                    break;
                }
                let at = at.index(bytes.len());
                match kind {
                    0 => bytes.insert(at, *value),
                    1 => drop(bytes.remove(at)),
                    2 => bytes.truncate(keep.index(bytes.len()) + 1),
                    _ => bytes[at] = *value,
                }
            }
            account(&codec, &bytes);
        }
    }
}
