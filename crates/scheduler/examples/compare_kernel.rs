//! Decisions of a model of a kernel scheduler, compared with the kernel's.
//!
//! `compare_kernel TRACE POLICY TICK_NS [SETTING=VALUE...]` reads the text of the events `block_rq_insert`,
//! `block_rq_issue` and `block_rq_complete` of one device (`crates/scheduler/compare_kernel.sh` records them), reports
//! every insertion and completion to the policy at its time, and prints the share of choices that equal the kernel's.
//! Each task is a stream; the classes are the I/O priorities `rt`, `be` and `idle`. `TICK_NS` is the length of one jiffy.
//!
//! The kernel takes one request more from its scheduler than the device has tags, so the policy is asked for that many.
//! It counts expiry in jiffies; the trace lacks their phase: the phase with the best agreement is used.

use std::collections::{BTreeMap, VecDeque};
use std::process::ExitCode;

use weir_scheduler::{Class, Decision, LinearModel, Op, Policy, Request, Settings, TrafficKind, build};

/// Tags of the device, as `compare_kernel.sh` sets them, and one that the kernel dispatches ahead.
const DEPTH: usize = 4 + 1;
/// Beginnings of a tick that are tried.
const PHASES: u64 = 40;

#[derive(Clone, Copy)]
enum Event {
    Insert(Request),
    Issue { sector: u64 },
    Complete { sector: u64, now_ns: u64 },
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match compare(&arguments) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("compare_kernel: {message}");
            ExitCode::from(2)
        }
    }
}

fn compare(arguments: &[String]) -> Result<String, String> {
    let [file, name, tick_ns, settings @ ..] = arguments else {
        return Err("usage: compare_kernel TRACE POLICY TICK_NS [SETTING=VALUE...]".to_owned());
    };
    let tick_ns: u64 =
        tick_ns.parse().map_err(|_| format!("TICK_NS is `{tick_ns}`; it must be a whole number"))?;
    let settings = settings
        .iter()
        .map(|setting| setting.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned())))
        .collect::<Option<_>>()
        .ok_or("a setting has no `=`")?;
    let settings = Settings(settings);
    let text = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    let events = events(&text).map_err(|line| format!("{file}: this is no event of a request: {line}"))?;
    let kernel: Vec<u64> = events
        .iter()
        .filter_map(|event| if let Event::Issue { sector } = event { Some(*sector) } else { None })
        .collect();
    if kernel.is_empty() {
        return Err(format!("{file}: there is no request in it"));
    }
    let mut best = (0, 0);
    for phase in 0..PHASES {
        let policy = build(name, &classes(), &settings).map_err(|error| error.to_string())?;
        let ours = choices(policy, &events, |now_ns| {
            let phase_ns = tick_ns * phase / PHASES;
            now_ns.saturating_sub(phase_ns) / tick_ns.max(1) * tick_ns.max(1) + phase_ns
        });
        let equal = kernel.iter().zip(&ours).filter(|(kernel, ours)| kernel == ours).count();
        let first = kernel.iter().zip(&ours).take_while(|(kernel, ours)| kernel == ours).count();
        best = best.max((first, equal));
    }
    let (first, equal) = best;
    Ok(format!(
        "{name:<20}{:>10} requests{first:>10} the same until one differs{equal:>10} in the same place",
        kernel.len()
    ))
}

fn classes() -> Vec<Class> {
    let class = |name: &str| Class {
        name: name.to_owned(),
        kind: TrafficKind::Interactive,
        weight: 1.0,
        contract: None,
    };
    ["be", "rt", "idle"].map(class).to_vec()
}

/// Events in the order of the trace, or the line that is none.
fn events(text: &str) -> Result<Vec<Event>, &str> {
    let mut streams = BTreeMap::new();
    let mut tag = 0;
    let lines = text.lines().filter(|line| line.contains(": block_rq_"));
    lines
        .map(|line| {
            let event = event(line, tag, &mut streams).ok_or(line)?;
            tag += 1;
            Ok(event)
        })
        .collect()
}

/// `TASK-PID [CPU] FLAGS SECONDS: block_rq_KIND: DEVICE RWBS BYTES (COMMAND) SECTOR + SECTORS PRIORITY [TASK]`.
fn event<'a>(line: &'a str, tag: u64, streams: &mut BTreeMap<&'a str, u32>) -> Option<Event> {
    let (context, event) = line.split_once(": block_rq_")?;
    let seconds = context.split_whitespace().last()?;
    let (seconds, micros) = seconds.split_once('.')?;
    let now_ns =
        seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)? + micros.parse::<u64>().ok()? * 1000;
    let (kind, rest) = event.split_once(": ")?;
    let words: Vec<&str> = rest.split_whitespace().collect();
    let plus = words.iter().position(|word| *word == "+")?;
    let sector: u64 = words.get(plus.checked_sub(1)?)?.parse().ok()?;
    let sectors: u32 = words.get(plus + 1)?.parse().ok()?;
    match kind {
        "issue" => Some(Event::Issue { sector }),
        "complete" => Some(Event::Complete { sector, now_ns }),
        "insert" => {
            let next = u32::try_from(streams.len()).ok()?;
            let stream = *streams.entry(context.split_whitespace().next()?).or_insert(next);
            let priority = words.get(plus + 2).copied().unwrap_or_default();
            Some(Event::Insert(Request {
                tag,
                class: ["be", "rt", "idle"].iter().position(|class| priority.starts_with(class)).unwrap_or(0)
                    as u16,
                stream,
                op: if words.get(1)?.contains('W') { Op::Write } else { Op::Read },
                offset_bytes: sector * 512,
                size_bytes: sectors * 512,
                arrived_ns: now_ns,
                deadline_ns: None,
            }))
        }
        _ => None,
    }
}

/// Sectors in the order in which a policy chooses them.
fn choices(mut policy: Box<dyn Policy>, events: &[Event], tick: impl Fn(u64) -> u64) -> Vec<u64> {
    // The kernel's schedulers use no model of the device.
    let model = LinearModel {
        capacity_bytes: u64::MAX,
        cylinder_bytes: 1 << 20,
        seek_ns: 0,
        seek_ns_per_cylinder: 0,
        revolution_ns: 0,
        transfer_ns_per_byte: 0,
        head_bytes: 0,
    };
    let mut chosen = Vec::new();
    let mut in_service: usize = 0;
    let mut at_sector: BTreeMap<u64, VecDeque<Request>> = BTreeMap::new();
    let mut wait_until_ns = u64::MAX;
    for event in events {
        let event_ns = match event {
            Event::Insert(request) => tick(request.arrived_ns),
            Event::Complete { now_ns, .. } => tick(*now_ns),
            Event::Issue { .. } => continue,
        };
        let mut ask = |policy: &mut dyn Policy, now_ns: u64, in_service: &mut usize| {
            let mut wait_until_ns = u64::MAX;
            while *in_service < DEPTH {
                match policy.next(now_ns, &model) {
                    Decision::Serve(request) => {
                        *in_service += 1;
                        chosen.push(request.offset_bytes / 512);
                    }
                    Decision::WaitUntil(until_ns) => {
                        wait_until_ns = until_ns;
                        break;
                    }
                    Decision::Idle => break,
                }
            }
            wait_until_ns
        };
        while wait_until_ns < event_ns {
            wait_until_ns = ask(&mut *policy, wait_until_ns, &mut in_service);
        }
        match event {
            Event::Insert(request) => {
                let request = Request { arrived_ns: event_ns, ..*request };
                at_sector.entry(request.offset_bytes / 512).or_default().push_back(request);
                policy.arrive(event_ns, request, &model);
            }
            Event::Complete { sector, .. } => {
                if let Some(request) = at_sector.get_mut(sector).and_then(VecDeque::pop_front) {
                    policy.complete(event_ns, &request, event_ns);
                    in_service = in_service.saturating_sub(1);
                }
            }
            Event::Issue { .. } => {}
        }
        wait_until_ns = ask(&mut *policy, event_ns, &mut in_service);
    }
    chosen
}
