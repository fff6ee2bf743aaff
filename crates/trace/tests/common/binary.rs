//! Writers of the formats of records.

use weir_trace::blktrace::{Record, category};
use weir_trace::write::{Class, Target};
use weir_trace::{Devices, TraceOp, TraceRequest};

use super::text::object;
use super::{Codec, Covers, in_units};

const SECOND: i64 = 1_000_000_000;
/// A second in which the World Cup was played.
const PLAYED_S: i64 = 897_000_000;

/// Requests of one device as records that depend on one another; detected.
const RECORDS: Codec = Codec {
    format: "",
    options: &[],
    keep: |all| all.to_vec(),
    device: |_, _| "0".to_owned(),
    encode: |_| Vec::new(),
    covers: Covers::Other,
    detected: true,
};

pub fn codecs() -> Vec<Codec> {
    vec![
        Codec {
            format: "weir",
            keep: |all| in_units(all, 1).collect(),
            device: |_, device| format!("disk {device}"),
            encode: weir,
            ..RECORDS
        },
        Codec {
            format: "srt",
            keep: |all| in_units(all, 1000).enumerate().map(|(place, r)| srt_keeps(place, r)).collect(),
            device: |place, device| {
                if version(place) == 7 { format!("3:{device}") } else { device.to_string() }
            },
            encode: |all| {
                let records = all.iter().enumerate().flat_map(|(place, r)| srt_record(place, r));
                SRT_HEADER.bytes().chain(records).collect()
            },
            ..RECORDS
        },
        Codec {
            format: "blktrace",
            keep: |all| {
                let kept = |r: TraceRequest| TraceRequest {
                    queueing_ns: Some(r.queueing_ns.unwrap_or(0)),
                    object: None,
                    queue_length: None,
                    pid: Some(r.pid.unwrap_or(0)),
                    ..r
                };
                in_units(all, 1).map(kept).collect()
            },
            device: |_, device| format!("8:{device}"),
            encode: |all| all.iter().flat_map(blktrace_events).collect(),
            ..RECORDS
        },
        Codec {
            format: "vscsi1",
            keep: |all| in_units(all, 1000).map(block).collect(),
            encode: |all| {
                let record = |r: &TraceRequest| {
                    let mut bytes = Vec::with_capacity(32);
                    for word in [1, r.size_bytes as u32, 2, u32::from(scsi(r)) | 1 << 24] {
                        bytes.extend(word.to_le_bytes());
                    }
                    bytes.extend((r.offset_bytes / 512).to_le_bytes());
                    bytes.extend((r.arrival_ns / 1000).to_le_bytes());
                    bytes
                };
                all.iter().flat_map(record).collect()
            },
            covers: Covers::Records(32),
            ..RECORDS
        },
        Codec {
            format: "vscsi2",
            keep: |all| in_units(all, 1000).map(block).collect(),
            encode: |all| {
                let record = |r: &TraceRequest| {
                    let mut bytes = Vec::with_capacity(40);
                    for word in [u32::from(scsi(r)) | 2 << 24, 1, r.size_bytes as u32, 2] {
                        bytes.extend(word.to_le_bytes());
                    }
                    bytes.extend((r.offset_bytes / 512).to_le_bytes());
                    bytes.extend((r.arrival_ns / 1000).to_le_bytes());
                    bytes.extend(99_u64.to_le_bytes());
                    bytes
                };
                all.iter().flat_map(record).collect()
            },
            covers: Covers::Records(40),
            ..RECORDS
        },
        Codec {
            format: "oracle-general",
            keep: |all| {
                let kept = |r: TraceRequest| TraceRequest { op: TraceOp::Read, ..keyed(r) };
                in_units(all, SECOND).map(kept).collect()
            },
            encode: |all| {
                let record = |r: &TraceRequest| oracle(r, &[]);
                all.iter().flat_map(record).collect()
            },
            covers: Covers::Records(24),
            ..RECORDS
        },
        Codec {
            format: "oracle-general-op",
            keep: |all| in_units(all, SECOND).map(keyed).collect(),
            device: |_, device| format!("{device:05}"),
            encode: |all| {
                let record = |r: &TraceRequest| {
                    let code = if r.op == TraceOp::Read { 12 } else { 13 };
                    oracle(r, &[code, r.device as u8, 0])
                };
                all.iter().flat_map(record).collect()
            },
            covers: Covers::Records(27),
            ..RECORDS
        },
        Codec {
            format: "worldcup",
            keep: |all| {
                let kept = |r: TraceRequest| TraceRequest {
                    arrival_ns: r.arrival_ns + PLAYED_S * SECOND,
                    pid: r.pid,
                    ..keyed(r)
                };
                in_units(all, SECOND).map(kept).collect()
            },
            device: |_, device| format!("{device}.07"),
            encode: |all| {
                let record = |r: &TraceRequest| {
                    let seconds = (PLAYED_S + r.arrival_ns / SECOND) as u32;
                    let words =
                        [seconds, r.pid.unwrap_or(0), r.object.unwrap_or(0) as u32, r.size_bytes as u32];
                    let method = if r.op == TraceOp::Read { 0 } else { 2 };
                    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
                    bytes.extend([method, 0x42, 1, (r.device as u8) << 5 | 7]);
                    bytes
                };
                all.iter().flat_map(record).collect()
            },
            covers: Covers::Records(20),
            ..RECORDS
        },
        Codec {
            format: "cache2k",
            keep: |all| in_units(all, 1).map(|r| object(&r)).collect(),
            encode: |all| all.iter().flat_map(|r| (r.object.unwrap_or(0) as u32).to_be_bytes()).collect(),
            covers: Covers::Records(4),
            detected: false,
            ..RECORDS
        },
    ]
}

/// Fields that formats of SCSI commands keep.
fn block(request: TraceRequest) -> TraceRequest {
    TraceRequest {
        queueing_ns: None,
        response_ns: None,
        object: None,
        queue_length: None,
        pid: None,
        ..request
    }
}

/// Fields that formats of objects with sizes keep.
fn keyed(request: TraceRequest) -> TraceRequest {
    TraceRequest { object: Some(request.object.unwrap_or(0)), offset_bytes: 0, ..block(request) }
}

fn scsi(request: &TraceRequest) -> u16 {
    if request.op == TraceOp::Read { 0x28 } else { 0x2a }
}

fn oracle(request: &TraceRequest, op: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(27);
    bytes.extend(((request.arrival_ns / SECOND) as u32).to_le_bytes());
    bytes.extend(request.object.unwrap_or(0).to_le_bytes());
    bytes.extend((request.size_bytes as u32).to_le_bytes());
    bytes.extend(op);
    bytes.extend((-1_i64).to_le_bytes());
    bytes
}

fn blktrace_events(request: &TraceRequest) -> Vec<u8> {
    let categories = if request.op == TraceOp::Read { category::READ } else { category::WRITE };
    let mut record = Record {
        sequence: 0,
        time_ns: request.arrival_ns as u64,
        sector: request.offset_bytes / 512,
        bytes: request.size_bytes as u32,
        action: 0,
        pid: request.pid.unwrap_or(0),
        device: 8 << 20 | request.device,
        cpu: 0,
        error: 0,
        payload: Box::new([]),
    };
    let mut bytes = Vec::with_capacity(3 * 48);
    // Queued, issued, completed.
    for (code, after_ns) in
        [(1, Some(0)), (7, Some(request.queueing_ns.unwrap_or(0))), (8, request.response_ns)]
    {
        if let Some(after_ns) = after_ns {
            record.action = u32::from(categories) << 16 | code;
            record.time_ns = (request.arrival_ns + after_ns) as u64;
            bytes.extend(record.encode());
        }
    }
    bytes
}

/// Weir's own format is written by the crate's only writer of it.
fn weir(requests: &[TraceRequest]) -> Vec<u8> {
    let mut devices = Devices::default();
    for device in 0..4 {
        devices.number(format!("disk {device}").as_bytes());
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.weir");
    let mut writer = Target::Weir.create(&path, &Class::PerDevice).unwrap();
    requests.iter().for_each(|request| writer.write(request, &devices).unwrap());
    writer.finish().unwrap();
    std::fs::read(&path).unwrap()
}

const SRT_HEADER: &str = "$$TR_IOREC-1.3 (test)\0\ntracedate = \"Sat May 30 00:03:06 1992\";\ndisks = {\n\
0 -> {\nsectorsize = 256\n},\n1 -> {\nsectorsize = 256\n},\n2 -> {\nsectorsize = 256\n}\n};\n\x0c";

/// All versions, one after another.
fn version(place: usize) -> u32 {
    place as u32 % 7 + 1
}

fn srt_keeps(place: usize, request: TraceRequest) -> TraceRequest {
    let version = version(place);
    TraceRequest {
        queueing_ns: Some(request.queueing_ns.unwrap_or(0)),
        response_ns: Some(request.response_ns.unwrap_or(0)),
        // 32 bits of sectors.
        offset_bytes: if version == 7 { request.offset_bytes } else { request.offset_bytes % (1 << 40) },
        object: None,
        queue_length: (version >= 4).then(|| request.queue_length.unwrap_or(0)),
        pid: (version >= 5).then(|| request.pid.unwrap_or(0)),
        ..request
    }
}

fn srt_record(place: usize, request: &TraceRequest) -> Vec<u8> {
    let version = version(place);
    let us = |ns: Option<i64>| (ns.unwrap_or(0) / 1000) as u32;
    let device = 8 << 24 | request.device << 8 | 7;
    let (size, flags) = (request.size_bytes as u32, u32::from(request.op == TraceOp::Read) | 2);
    let (queue, pid) = (request.queue_length.unwrap_or(0), request.pid.unwrap_or(0));
    let mut body = vec![us(request.queueing_ns), us(request.response_ns), size];
    if version == 7 {
        let (upper, lower) = ((request.offset_bytes >> 32) as u32, request.offset_bytes as u32);
        body.extend([3, device, 4, 0, flags, 0, queue, pid, 0, upper, lower, 0, 0, 0, 0]);
    } else {
        body.extend([(request.offset_bytes % (1 << 40) / 256) as u32, device, 4, 0, flags, 0, queue, pid, 1]);
        body.truncate(match version {
            ..4 => 9,
            4 => 10,
            5 => 11,
            _ => 12,
        });
    }
    let seconds = (request.arrival_ns / SECOND) as u32;
    let after_us = (request.arrival_ns % SECOND / 1000) as u32;
    let head = [16 + 4 * body.len() as u32, version << 16 | 1, seconds, after_us];
    head.iter().chain(&body).flat_map(|word| word.to_be_bytes()).collect()
}
