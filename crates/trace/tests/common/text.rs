//! Writers of the formats of lines.

use std::fmt::Write;

use weir_trace::{TraceOp, TraceRequest};

use super::{Codec, Covers, in_units};

const SECOND: i64 = 1_000_000_000;

/// Requests of blocks, one a line; detected.
const LINES: Codec = Codec {
    format: "",
    options: &[],
    keep: |all| in_units(all, 1).map(|r| timed(r, None)).collect(),
    device: |_, device| device.to_string(),
    encode: |_| Vec::new(),
    covers: Covers::Lines,
    detected: true,
};

pub fn codecs() -> Vec<Codec> {
    vec![
        Codec {
            format: "msr",
            keep: |all| in_units(all, 100).map(|r| timed(r, r.response_ns.or(Some(0)))).collect(),
            device: |_, device| format!("srv_{device}"),
            encode: |all| {
                lines("", all, |text, r| {
                    let ticks = 116_444_736_000_000_000 + r.arrival_ns / 100;
                    let (device, response) = (r.device, r.response_ns.unwrap_or(0) / 100);
                    let op = if r.op == TraceOp::Read { "Read" } else { "Write" };
                    write!(text, "{ticks},srv,{device},{op},{},{},{response}", r.offset_bytes, r.size_bytes)
                })
            },
            ..LINES
        },
        Codec {
            format: "systor",
            keep: |all| in_units(all, 1).map(|r| timed(r, r.response_ns)).collect(),
            encode: |all| {
                lines("Timestamp,Response,IOType,LUN,Offset,Size\n", all, |text, r| {
                    write!(text, "{},", decimal(r.arrival_ns, SECOND))?;
                    if let Some(response_ns) = r.response_ns {
                        write!(text, "{}", decimal(response_ns, SECOND))?;
                    }
                    write!(text, ",{},{},{},{}", letter(r), r.device, r.offset_bytes, r.size_bytes)
                })
            },
            covers: Covers::Other,
            ..LINES
        },
        Codec {
            format: "tencent",
            keep: |all| in_units(all, SECOND).map(|r| timed(r, None)).collect(),
            encode: |all| {
                lines("", all, |text, r| {
                    let write = u8::from(r.op == TraceOp::Write);
                    let (sector, sectors) = (r.offset_bytes / 512, r.size_bytes / 512);
                    write!(text, "{},{sector},{sectors},{write},{}", r.arrival_ns / SECOND, r.device)
                })
            },
            ..LINES
        },
        Codec {
            format: "alibaba",
            keep: |all| in_units(all, 1000).map(|r| timed(r, None)).collect(),
            encode: |all| {
                lines("", all, |text, r| {
                    let (op, us) = (letter(r), r.arrival_ns / 1000);
                    write!(text, "{},{op},{},{},{us}", r.device, r.offset_bytes, r.size_bytes)
                })
            },
            ..LINES
        },
        Codec {
            format: "spc",
            encode: |all| {
                lines("", all, |text, r| {
                    let (op, time) = (letter(r), decimal(r.arrival_ns, SECOND));
                    write!(text, "{},{},{},{op},{time}", r.device, r.offset_bytes / 512, r.size_bytes)
                })
            },
            ..LINES
        },
        Codec {
            format: "disksim",
            encode: |all| {
                lines("", all, |text, r| {
                    let time = decimal(r.arrival_ns, 1_000_000);
                    let (block, blocks, flags) =
                        (r.offset_bytes / 512, r.size_bytes / 512, u8::from(r.op == TraceOp::Read) | 0x10);
                    write!(text, "{time} {} {block} {blocks} {flags:x}", r.device)
                })
            },
            ..LINES
        },
        Codec {
            format: "mqsim",
            encode: |all| {
                lines("", all, |text, r| {
                    let (sector, sectors) = (r.offset_bytes / 512, r.size_bytes / 512);
                    let read = u8::from(r.op == TraceOp::Read);
                    write!(text, "{} {} {sector} {sectors} {read}", r.arrival_ns, r.device)
                })
            },
            ..LINES
        },
        Codec {
            format: "disksim-validate",
            keep: |all| {
                let mut at_ns = 0;
                let follow = |r: TraceRequest| {
                    let (arrival_ns, response_ns) = (at_ns, r.response_ns.unwrap_or(0));
                    at_ns += response_ns + r.arrival_ns;
                    TraceRequest { arrival_ns, ..timed(r, Some(response_ns)) }
                };
                in_units(all, 1).map(follow).collect()
            },
            device: |_, _| "0".to_owned(),
            encode: |all| {
                lines("", all, |text, r| {
                    let (block, blocks) = (r.offset_bytes / 512, r.size_bytes / 512);
                    let (service, gap) =
                        (decimal(r.response_ns.unwrap_or(0), 1000), decimal(r.arrival_ns, 1000));
                    write!(text, "{} Miss {block}  {blocks} {service}  {gap}", letter(r))
                })
            },
            ..LINES
        },
        Codec {
            format: "iolog",
            keep: |all| in_units(all, 1000).map(|r| timed(r, None)).collect(),
            device: |_, device| format!("/dev/d{device}"),
            encode: |all| {
                lines("fio version 3 iolog\n0 /dev/d0 add\n0 /dev/d0 open\n", all, |text, r| {
                    let (us, op) = (r.arrival_ns / 1000, r.op.name());
                    write!(text, "{us} /dev/d{} {op} {} {}", r.device, r.offset_bytes, r.size_bytes)
                })
            },
            covers: Covers::Other,
            ..LINES
        },
        Codec {
            format: "iolog",
            keep: |all| in_units(all, 1000).map(|r| timed(r, None)).collect(),
            device: |_, device| format!("/dev/d{device}"),
            encode: |all| {
                let mut last_us = 0;
                lines("fio version 2 iolog\n/dev/d0 add\n/dev/d0 open\n", all, move |text, r| {
                    let (wait_us, device) = (r.arrival_ns / 1000 - last_us, r.device);
                    last_us = r.arrival_ns / 1000;
                    let op = r.op.name();
                    writeln!(text, "/dev/d{device} wait {wait_us}")?;
                    write!(text, "/dev/d{device} {op} {} {}", r.offset_bytes, r.size_bytes)
                })
            },
            covers: Covers::Other,
            ..LINES
        },
        Codec {
            format: "libcachesim-csv",
            keep: |all| in_units(all, SECOND).map(|r| timed(r, None)).collect(),
            device: |_, _| "0".to_owned(),
            encode: |all| {
                lines("version,time,op,size,lbn\n", all, |text, r| {
                    let op = if r.op == TraceOp::Read { "28" } else { "2a" };
                    let seconds = r.arrival_ns / SECOND;
                    write!(text, "1,{seconds},{op},{},{}", r.size_bytes, r.offset_bytes / 512)
                })
            },
            covers: Covers::Other,
            ..LINES
        },
        Codec {
            format: "auspex",
            keep: |all| {
                let kept = |r: TraceRequest| TraceRequest { object: r.object, pid: r.pid, ..timed(r, None) };
                in_units(all, 1000).map(kept).collect()
            },
            device: |_, _| "auspex".to_owned(),
            encode: |all| {
                lines("", all, |text, r| {
                    let op = if r.op == TraceOp::Read { "READ" } else { "WRITE" };
                    let time = decimal(r.arrival_ns / 1000, 1_000_000);
                    let (file, host) = (r.object.unwrap_or(0), r.pid.unwrap_or(0));
                    let (offset, size) = (r.offset_bytes, r.size_bytes);
                    write!(text, "{time} Block {op} FID: {file:016x} OFF: {offset} SIZE: {size} HOST: {host}")
                })
            },
            ..LINES
        },
        Codec {
            format: "nfsdump",
            keep: |all| {
                let kept = |r: TraceRequest| TraceRequest {
                    object: Some(fnv(format!("{:016x}", r.object.unwrap_or(0)).as_bytes())),
                    pid: r.pid,
                    ..timed(r, r.response_ns)
                };
                in_units(all, 1000).map(kept).collect()
            },
            device: |_, device| format!("{device:x}"),
            encode: |all| {
                let mut transaction = 0;
                lines("", all, move |text, r| {
                    transaction += 1;
                    let (number, op) = if r.op == TraceOp::Read { (6, "read") } else { (7, "write") };
                    let time = decimal(r.arrival_ns / 1000, 1_000_000);
                    let (client, server) =
                        (format!("{:x}.3fd", r.pid.unwrap_or(0)), format!("{:x}.801", r.device));
                    let (file, offset, size) = (r.object.unwrap_or(0), r.offset_bytes, r.size_bytes);
                    write!(text, "{time} {client} {server} T C3 {transaction:x} {number} {op} ")?;
                    write!(text, "fh {file:016x} off {offset:x} count {size:x} con = XXX len = XXX")?;
                    if let Some(response_ns) = r.response_ns {
                        let answered_us = r.arrival_ns / 1000 + response_ns / 1000;
                        let time = decimal(answered_us, 1_000_000);
                        write!(text, "\n{time} {server} {client} T R3 {transaction:x} {number} {op} OK")?;
                    }
                    Ok(())
                })
            },
            covers: Covers::Other,
            ..LINES
        },
        Codec {
            format: "lirs",
            keep: |all| in_units(all, 1).map(|r| object(&r)).collect(),
            device: |_, _| "0".to_owned(),
            encode: |all| lines("", all, |text, r| write!(text, "{}", r.object.unwrap_or(0))),
            covers: Covers::Other,
            detected: false,
            ..LINES
        },
        Codec {
            format: "frames",
            options: &[("unit", "bytes"), ("rate_hz", "25")],
            keep: |all| {
                let mut offset_bytes = 0;
                let frames = all.iter().enumerate();
                frames
                    .map(|(number, r)| {
                        offset_bytes += r.size_bytes;
                        TraceRequest {
                            arrival_ns: number as i64 * 40_000_000,
                            offset_bytes: offset_bytes - r.size_bytes,
                            size_bytes: r.size_bytes,
                            object: Some(number as u64),
                            ..TraceRequest::default()
                        }
                    })
                    .collect()
            },
            device: |_, _| "video".to_owned(),
            encode: |all| lines("", all, |text, r| write!(text, "{}", r.size_bytes)),
            ..LINES
        },
        // Coding order: of every three frames, the last comes first.
        Codec {
            format: "frames",
            keep: |all| {
                let mut frames = coded(all);
                frames.sort_by_key(|frame| frame.object);
                frames
            },
            device: |_, _| "video".to_owned(),
            encode: |all| {
                lines("# Frame\tTime [ms]\tType\tSize [Bit]\n", &coded(all), |text, r| {
                    let (number, time) = (r.object.unwrap_or(0), decimal(r.arrival_ns, 1_000_000));
                    write!(text, "{number}\t{time}\tB\t{}\t48.1\t50.0\t51.2", r.size_bytes * 8)
                })
            },
            covers: Covers::Other,
            ..LINES
        },
        Codec {
            format: "csv",
            options: &[
                ("time", "when"),
                ("time_unit", "us"),
                ("response", "took"),
                ("op", "3"),
                ("offset", "where"),
                ("offset_unit", "512"),
                ("size", "bytes"),
                ("device", "disk"),
                ("object", "key"),
                ("delimiter", "semicolon"),
            ],
            keep: |all| {
                let kept = |r: TraceRequest| TraceRequest { object: r.object, ..timed(r, r.response_ns) };
                in_units(all, 1).map(kept).collect()
            },
            device: |_, device| format!("vol {device}"),
            encode: |all| {
                lines("when;took;op;where;\"bytes\";disk;key\n", all, |text, r| {
                    let took = r.response_ns.map(|ns| decimal(ns, 1000)).unwrap_or_default();
                    let (when, op, key) = (decimal(r.arrival_ns, 1000), r.op.name(), r.object.unwrap_or(0));
                    let (block, bytes, device) = (r.offset_bytes / 512, r.size_bytes, r.device);
                    write!(text, "{when};{took};{op};{block};{bytes};\"vol {device}\";{key}")
                })
            },
            covers: Covers::Other,
            detected: false,
        },
        Codec {
            format: "fio-log",
            keep: |all| {
                // Completions have a resolution of 1 ms.
                let kept = |r: TraceRequest| {
                    let response_ns = r.response_ns.unwrap_or(0);
                    let completed_ns = (r.arrival_ns + response_ns) / 1_000_000 * 1_000_000;
                    TraceRequest { arrival_ns: completed_ns - response_ns, ..timed(r, Some(response_ns)) }
                };
                in_units(all, 1).map(kept).collect()
            },
            device: |_, _| "0".to_owned(),
            encode: |all| {
                lines("", all, |text, r| {
                    let response_ns = r.response_ns.unwrap_or(0);
                    let (ms, write) =
                        ((r.arrival_ns + response_ns) / 1_000_000, u8::from(r.op == TraceOp::Write));
                    write!(text, "{ms}, {response_ns}, {write}, {}, {}, 0", r.size_bytes, r.offset_bytes)
                })
            },
            ..LINES
        },
        Codec {
            format: "biosnoop",
            keep: |all| {
                // Delays have a resolution of 10 us; a completion of 1 us.
                let kept = |r: TraceRequest| {
                    let response_ns = r.response_ns.unwrap_or(0) / 10_000 * 10_000;
                    let completed_ns = (r.arrival_ns + r.response_ns.unwrap_or(0)) / 1000 * 1000;
                    let pid = r.pid;
                    TraceRequest {
                        arrival_ns: completed_ns - response_ns,
                        pid,
                        ..timed(r, Some(response_ns))
                    }
                };
                in_units(all, 1).map(kept).collect()
            },
            device: |_, device| format!("sd{device}"),
            encode: |all| {
                let header = "TIME(s)     COMM           PID    DISK      T SECTOR     BYTES   LAT(ms)\n";
                lines(header, all, |text, r| {
                    let response_ns = r.response_ns.unwrap_or(0);
                    let time = decimal((r.arrival_ns + response_ns) / 1000, 1_000_000);
                    let latency = decimal(response_ns / 10_000, 100);
                    let (pid, device, op) = (r.pid.unwrap_or(0), r.device, letter(r));
                    let (sector, bytes) = (r.offset_bytes / 512, r.size_bytes);
                    write!(text, "{time} a b {pid} sd{device} {op} {sector} {bytes} {latency}")
                })
            },
            covers: Covers::Other,
            ..LINES
        },
        Codec {
            format: "blkparse",
            keep: |all| {
                let kept = |r: TraceRequest| TraceRequest {
                    pid: r.pid,
                    queueing_ns: None,
                    ..timed(r, r.response_ns)
                };
                in_units(all, 1).map(kept).collect()
            },
            device: |_, device| format!("8:{device}"),
            encode: |all| {
                // Of each request the issue and the completion, in the order of time.
                let mut events: Vec<(i64, usize, String)> = Vec::new();
                for (place, r) in all.iter().enumerate() {
                    // The position tells the request: no two have the same.
                    let tail = format!("{} {} + {}", letter(r), r.offset_bytes / 512, r.size_bytes / 512);
                    let (device, pid) = (r.device, r.pid.unwrap_or(0));
                    let line = |time: i64, action, pid: u32, end: &str| {
                        format!(
                            "  8,{device}    0  1 {} {pid}  {action}   {tail} {end}\n",
                            decimal(time, SECOND)
                        )
                    };
                    events.push((r.arrival_ns, 2 * place, line(r.arrival_ns, "D", pid, "[a b]")));
                    if let Some(response_ns) = r.response_ns {
                        let at = r.arrival_ns + response_ns;
                        events.push((at, 2 * place + 1, line(at, "C", 0, "[0]")));
                    }
                }
                events.sort();
                events.into_iter().map(|(_, _, line)| line).collect::<String>().into_bytes()
            },
            covers: Covers::Other,
            ..LINES
        },
    ]
}

/// A header, and a line for every request.
fn lines(
    header: &str,
    all: &[TraceRequest],
    mut line: impl FnMut(&mut String, &TraceRequest) -> std::fmt::Result,
) -> Vec<u8> {
    let mut text = header.to_owned();
    for request in all {
        line(&mut text, request).expect("text grows");
        text.push('\n');
    }
    text.into_bytes()
}

/// Units with a fraction, exactly.
fn decimal(value: i64, unit: i64) -> String {
    let places = unit.ilog10() as usize;
    format!("{}.{:0places$}", value / unit, value % unit)
}

fn letter(request: &TraceRequest) -> char {
    if request.op == TraceOp::Read { 'R' } else { 'W' }
}

/// Common fields of formats of blocks.
fn timed(request: TraceRequest, response_ns: Option<i64>) -> TraceRequest {
    TraceRequest { response_ns, queueing_ns: None, object: None, queue_length: None, pid: None, ..request }
}

/// Fields that formats of keys keep.
pub fn object(request: &TraceRequest) -> TraceRequest {
    TraceRequest { object: Some(request.object.unwrap_or(0)), ..TraceRequest::default() }
}

/// Frames in coding order.
fn coded(all: &[TraceRequest]) -> Vec<TraceRequest> {
    let mut numbers: Vec<_> = (0..all.len()).collect();
    for group in numbers.chunks_exact_mut(3) {
        group.rotate_right(1);
    }
    let mut offset_bytes = 0;
    let frames = numbers.into_iter().zip(all);
    frames
        .map(|(number, r)| {
            offset_bytes += r.size_bytes;
            TraceRequest {
                arrival_ns: number as i64 * 33_333_330,
                offset_bytes: offset_bytes - r.size_bytes,
                size_bytes: r.size_bytes,
                object: Some(number as u64),
                ..TraceRequest::default()
            }
        })
        .collect()
}

/// FNV-1a of 64 bits, as its authors describe it.
fn fnv(bytes: &[u8]) -> u64 {
    let mut hash = 14_695_981_039_346_656_037;
    for byte in bytes {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(1_099_511_628_211);
    }
    hash
}
