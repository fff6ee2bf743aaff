//! Greedy clients in front of a device of constant rate.

use weir_scheduler::{Class, Decision, LinearModel, Op, Policy, Request, Settings, TrafficKind, build};

pub const S: u64 = 1_000_000_000;

pub fn policy(names: &[String], settings: &[(&str, &str)]) -> Box<dyn Policy> {
    let class = |name: &String| Class {
        name: name.clone(),
        kind: TrafficKind::BestEffort,
        weight: 1.0,
        contract: None,
    };
    let classes: Vec<Class> = names.iter().map(class).collect();
    let settings = settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    build("hds", &classes, &Settings(settings)).unwrap()
}

pub fn device() -> LinearModel {
    LinearModel {
        capacity_bytes: 1 << 40,
        cylinder_bytes: 1 << 20,
        seek_ns: 0,
        seek_ns_per_cylinder: 0,
        revolution_ns: 0,
        transfer_ns_per_byte: 0,
        head_bytes: 0,
    }
}

/// A client that keeps one request of some KB outstanding between two times.
#[derive(Debug, Clone, Copy)]
pub struct Greedy {
    pub kb: u32,
    pub from_ns: u64,
    pub to_ns: u64,
}

impl Greedy {
    pub fn always(kb: u32) -> Self {
        Greedy { kb, from_ns: 0, to_ns: u64::MAX }
    }
}

/// A served request: client, times of arrival and dispatch, KB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Served {
    pub client: usize,
    pub asked_ns: u64,
    pub begun_ns: u64,
    pub kb: u64,
}

/// Runs clients, one for each class, on a device of a rate in KB/s (0: infinite) until a time. The policy is also polled
/// at every multiple of `poll_ns`, which must make no difference.
pub fn serve(
    policy: &mut dyn Policy,
    clients: &[Greedy],
    device_kb_s: u64,
    until_ns: u64,
    poll_ns: Option<u64>,
) -> Vec<Served> {
    let model = device();
    let mut asks: Vec<(u64, usize)> =
        clients.iter().enumerate().map(|(n, client)| (client.from_ns, n)).collect();
    let (mut served, mut tag, mut now_ns) = (Vec::new(), 0, 0);
    let mut in_service: Option<(u64, Request, u64)> = None;
    loop {
        asks.sort_unstable();
        while let Some(place) = asks.iter().position(|(at_ns, _)| *at_ns <= now_ns) {
            let (_, client) = asks.remove(place);
            let request = Request {
                tag,
                class: client as u16,
                stream: 0,
                op: Op::Read,
                offset_bytes: tag,
                size_bytes: clients[client].kb * 1024,
                arrived_ns: now_ns,
                deadline_ns: None,
            };
            tag += 1;
            policy.arrive(now_ns, request, &model);
        }
        let mut wake_ns = u64::MAX;
        if in_service.is_none() {
            match policy.next(now_ns, &model) {
                Decision::Serve(request) => {
                    let kb = u64::from(request.size_bytes / 1024);
                    let client = usize::from(request.class);
                    served.push(Served { client, asked_ns: request.arrived_ns, begun_ns: now_ns, kb });
                    let takes_ns = (kb * S).checked_div(device_kb_s).unwrap_or(0);
                    in_service = Some((now_ns + takes_ns, request, now_ns));
                }
                Decision::WaitUntil(at_ns) => wake_ns = at_ns,
                Decision::Idle => {}
            }
        }
        let done_ns = in_service.map_or(u64::MAX, |(at_ns, ..)| at_ns);
        let ask_ns = asks.iter().map(|(at_ns, _)| *at_ns).min().unwrap_or(u64::MAX);
        let poll_ns = poll_ns.map_or(u64::MAX, |every_ns| (now_ns / every_ns + 1) * every_ns);
        now_ns = done_ns.min(ask_ns).min(wake_ns).min(poll_ns);
        if now_ns > until_ns {
            return served;
        }
        if let Some((_, request, begun_ns)) = in_service.take_if(|(at_ns, ..)| *at_ns <= now_ns) {
            policy.complete(now_ns, &request, begun_ns);
            let client = usize::from(request.class);
            if now_ns < clients[client].to_ns {
                asks.push((now_ns, client));
            }
        }
    }
}

/// KB of each client that were dispatched between two times.
pub fn kb(served: &[Served], clients: usize, from_ns: u64, to_ns: u64) -> Vec<u64> {
    let mut sums = vec![0; clients];
    for one in served.iter().filter(|one| (from_ns..to_ns).contains(&one.begun_ns)) {
        sums[one.client] += one.kb;
    }
    sums
}
