//! Reference implementations of the policies, directly from their definitions: the queue is a list in the order of
//! arrival, and each decision scans all of it.

use std::collections::{BTreeMap, BTreeSet};

use weir_scheduler::{Request, ServiceModel};

use crate::harness::Choice;

/// Chooses among waiting requests; is called at the same instants as the policy under test, in order.
pub type Reference = Box<dyn FnMut(&Choice) -> Request>;

fn first_with<K: Ord>(waiting: &[Request], key: impl Fn(&Request) -> K) -> Request {
    *waiting.iter().min_by_key(|request| key(request)).unwrap()
}

pub fn fcfs() -> Reference {
    Box::new(|choice| choice.waiting[0])
}

pub fn edf() -> Reference {
    Box::new(|choice| first_with(&choice.waiting, Request::due_ns))
}

pub fn sstf() -> Reference {
    Box::new(|choice| {
        let disk = crate::harness::disk();
        let cylinder = disk.cylinder(choice.head_bytes);
        first_with(&choice.waiting, |request| {
            let cylinders = disk.cylinder(request.offset_bytes).abs_diff(cylinder);
            let bytes = request.offset_bytes.abs_diff(choice.head_bytes);
            (cylinders, bytes, request.offset_bytes < choice.head_bytes)
        })
    })
}

pub fn satf(age_millionths: u64) -> Reference {
    Box::new(move |choice| {
        let disk = weir_scheduler::LinearModel { head_bytes: choice.head_bytes, ..crate::harness::disk() };
        first_with(&choice.waiting, |request| {
            let waited_ns = i128::from(choice.now_ns - request.arrived_ns);
            i128::from(disk.positioning_ns(choice.now_ns, request)) * 1_000_000
                - waited_ns * i128::from(age_millionths)
        })
    })
}

/// A sweep, by the list: it is at an offset, and has met some requests there.
struct Sweep {
    circular: bool,
    up: bool,
    at: Option<u64>,
    met: BTreeSet<u64>,
}

impl Sweep {
    fn new(circular: bool) -> Self {
        Sweep { circular, up: true, at: None, met: BTreeSet::new() }
    }

    fn choose(&mut self, waiting: &[Request], head_bytes: u64) -> Request {
        let here = waiting.iter().find(|request| self.met.contains(&request.tag));
        if let Some(request) = here {
            return *request;
        }
        let ahead = |up: bool, at: Option<u64>| {
            let is_ahead = |offset_bytes: u64| match at {
                None if up => offset_bytes >= head_bytes,
                None => true,
                Some(at) if up => offset_bytes > at,
                Some(at) => offset_bytes < at,
            };
            let offsets =
                waiting.iter().map(|request| request.offset_bytes).filter(|offset| is_ahead(*offset));
            if up { offsets.min() } else { offsets.max() }
        };
        let offset_bytes = ahead(self.up, self.at).unwrap_or_else(|| {
            self.up = self.circular || !self.up;
            let offsets = waiting.iter().map(|request| request.offset_bytes);
            if self.up { offsets.min() } else { offsets.max() }.unwrap()
        });
        self.at = Some(offset_bytes);
        self.met = waiting
            .iter()
            .filter(|request| request.offset_bytes == offset_bytes)
            .map(|request| request.tag)
            .collect();
        *waiting.iter().find(|request| request.offset_bytes == offset_bytes).unwrap()
    }
}

pub fn look(circular: bool) -> Reference {
    let mut sweep = Sweep::new(circular);
    Box::new(move |choice| sweep.choose(&choice.waiting, choice.head_bytes))
}

pub fn n_step_scan(n: usize) -> Reference {
    let mut sweep = Sweep::new(false);
    let mut group = BTreeSet::new();
    Box::new(move |choice| {
        if !choice.waiting.iter().any(|request| group.contains(&request.tag)) {
            group = choice.waiting.iter().take(n).map(|request| request.tag).collect();
        }
        let of_group: Vec<Request> =
            choice.waiting.iter().filter(|request| group.contains(&request.tag)).copied().collect();
        sweep.choose(&of_group, choice.head_bytes)
    })
}

/// Only those with the earliest deadline are swept.
pub fn scan_edf(circular: bool) -> Reference {
    let mut sweep = Sweep::new(circular);
    Box::new(move |choice| {
        let due_ns = choice.waiting.iter().map(Request::due_ns).min().unwrap();
        let equal: Vec<Request> =
            choice.waiting.iter().filter(|request| request.due_ns() == due_ns).copied().collect();
        sweep.choose(&equal, choice.head_bytes)
    })
}

/// SFQ with the tags of the paper: made at arrival. Costs by weight must be whole numbers.
pub fn sfq(weights: &[u32], arrivals: &[Request]) -> Vec<u64> {
    let scale: u64 = weights.iter().map(|weight| u64::from(*weight)).product();
    let mut finish = vec![0; weights.len()];
    let mut tags: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    let (mut virtual_now, mut last_finish) = (0, 0);
    let mut waiting: Vec<Request> = Vec::new();
    serve_one_at_a_time(arrivals, |event| match event {
        Event::Arrived(request) => {
            let class = usize::from(request.class);
            let start = finish[class].max(virtual_now);
            finish[class] = start + u64::from(request.size_bytes) * scale / u64::from(weights[class]);
            tags.insert(request.tag, (start, finish[class]));
            waiting.push(request);
            None
        }
        Event::Free => {
            let chosen = waiting.iter().min_by_key(|request| (tags[&request.tag].0, request.class)).copied();
            let Some(chosen) = chosen else {
                virtual_now = last_finish;
                return None;
            };
            waiting.retain(|request| request.tag != chosen.tag);
            virtual_now = tags[&chosen.tag].0;
            last_finish = tags[&chosen.tag].1.max(last_finish);
            Some(chosen)
        }
    })
}

/// WF2Q+ by its definition. Costs by weight, and by all weights, must be whole numbers.
pub fn wf2q_plus(weights: &[u32], arrivals: &[Request]) -> Vec<u64> {
    let total: u64 = weights.iter().map(|weight| u64::from(*weight)).sum();
    let scale: u64 = weights.iter().map(|weight| u64::from(*weight)).product::<u64>() * total;
    let mut queues: Vec<Vec<Request>> = vec![Vec::new(); weights.len()];
    let mut tags = vec![(0, 0); weights.len()];
    let mut virtual_now = 0;
    serve_one_at_a_time(arrivals, |event| match event {
        Event::Arrived(request) => {
            let class = usize::from(request.class);
            if queues[class].is_empty() {
                let start = tags[class].1.max(virtual_now);
                tags[class] =
                    (start, start + u64::from(request.size_bytes) * scale / u64::from(weights[class]));
            }
            queues[class].push(request);
            None
        }
        Event::Free => {
            let backlogged: Vec<usize> =
                (0..weights.len()).filter(|class| !queues[*class].is_empty()).collect();
            let least_start = backlogged.iter().map(|class| tags[*class].0).min()?;
            virtual_now = virtual_now.max(least_start);
            let eligible = backlogged.into_iter().filter(|class| tags[*class].0 <= virtual_now);
            let class = eligible.min_by_key(|class| (tags[*class].1, *class))?;
            let chosen = queues[class].remove(0);
            virtual_now += u64::from(chosen.size_bytes) * scale / total;
            if let Some(first) = queues[class].first() {
                let start = tags[class].1;
                tags[class] =
                    (start, start + u64::from(first.size_bytes) * scale / u64::from(weights[class]));
            }
            Some(chosen)
        }
    })
}

enum Event {
    Arrived(Request),
    Free,
}

/// Plays arrivals against a server that takes a request in 10 ms: tags in the order of service.
fn serve_one_at_a_time(arrivals: &[Request], mut handle: impl FnMut(Event) -> Option<Request>) -> Vec<u64> {
    let mut order = Vec::new();
    let mut arrivals = arrivals.iter().peekable();
    let mut now_ns = 0;
    loop {
        while let Some(request) = arrivals.next_if(|request| request.arrived_ns <= now_ns) {
            handle(Event::Arrived(*request));
        }
        match (handle(Event::Free), arrivals.peek()) {
            (Some(request), _) => {
                order.push(request.tag);
                now_ns += crate::differential::SERVICE_NS;
            }
            (None, Some(next)) => now_ns = next.arrived_ns,
            (None, None) => return order,
        }
    }
}
