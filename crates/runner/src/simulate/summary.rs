//! Summary of a simulated run by class: `summary.json`.
//!
//! Names and definitions are those of the metrics that the analysis computes from `requests.parquet`, and both are
//! interchangeable. Quantiles come from a histogram of three digits; everything else is exact.

use hdrhistogram::Histogram;
use serde_json::{Map, Value, json};
use weir_simulator::server::{HeadReport, Mix, Outcome as Simulated, Served};
use weir_study::{Engine, Run};

use crate::Error;

/// Largest response time of the histogram, in ns: a day.
const LONGEST_NS: u64 = 86_400_000_000_000;
/// Digits of quantiles.
const DIGITS: u8 = 3;
/// The quantiles that are kept.
const QUANTILES: [(&str, f64); 6] = [
    ("response_p50_ms", 0.5),
    ("response_p90_ms", 0.9),
    ("response_p95_ms", 0.95),
    ("response_p99_ms", 0.99),
    ("response_p999_ms", 0.999),
    ("response_max_ms", 1.0),
];
/// Text of an unbounded value: JSON has no infinity.
const UNBOUNDED: &str = "unbounded";

/// Counts, means and quantiles of the classes of a run.
pub(super) struct Summary {
    classes: Vec<ClassSummary>,
    warmup_ns: u64,
    end_ns: u64,
    duration_s: f64,
    heads: u32,
}

struct ClassSummary {
    name: String,
    /// Whether response times count by completion in the measured interval, in place of intended time.
    is_closed_loop: bool,
    requests: u64,
    answered: u64,
    deadlines: u64,
    missed: u64,
    /// Requests with deadlines, and deadline misses, by client.
    clients: Vec<(u64, u64)>,
    offered_bytes: u64,
    response_ns: u128,
    queueing_ns: u128,
    /// Disk accesses of the answered requests, their queueing delay and their service time.
    accesses: u64,
    access_queueing_ns: u128,
    access_service_ns: u128,
    responses: Histogram<u64>,
    /// Requests completed within the measured interval, whenever they were sent.
    completed: u64,
    completed_bytes: u64,
    /// Service time of heads for these requests.
    busy_ns: u128,
}

impl Summary {
    /// An empty summary.
    ///
    /// # Errors
    /// The histograms cannot be made.
    pub(super) fn new(run: &Run) -> Result<Self, Error> {
        let ns = |at_ns: i64| u64::try_from(at_ns).unwrap_or(0);
        Ok(Summary {
            classes: run
                .classes
                .iter()
                .map(|class| ClassSummary::new(&class.name, class.engine == Engine::Fio))
                .collect::<Result<_, _>>()?,
            warmup_ns: ns(run.warmup_ns()),
            end_ns: ns(run.length_ns()),
            duration_s: run.duration_s,
            heads: run.devices.iter().map(|device| device.heads).sum(),
        })
    }

    /// Adds a request.
    pub(super) fn add(&mut self, served: &Served) {
        let class = &mut self.classes[usize::from(served.class)];
        let is_asked = served.ask.intended_ns >= self.warmup_ns;
        let is_answered =
            served.completed_ns.is_some_and(|done_ns| (self.warmup_ns..self.end_ns).contains(&done_ns));
        if is_asked {
            class.offered_bytes += served.ask.size_bytes;
        }
        if is_answered {
            class.completed += 1;
            class.completed_bytes += served.ask.size_bytes;
            class.busy_ns += u128::from(served.busy_ns);
        }
        let by_answer = class.is_closed_loop && served.completed_ns.is_some();
        if (by_answer && is_answered) || (!by_answer && is_asked) {
            class.add(served);
        }
    }

    /// Number of measured requests.
    pub(super) fn measured(&self) -> u64 {
        self.classes.iter().map(|class| class.requests).sum()
    }

    /// Document of the summary.
    ///
    /// Rates of an overloaded run that was ended early are of the simulated part.
    pub(super) fn document(&self, simulated: &Simulated) -> Value {
        let given_up_ns =
            simulated.saturation.map(|saturation| saturation.at_ns).filter(|at_ns| *at_ns < self.end_ns);
        let measured_s =
            given_up_ns.map_or(self.duration_s, |at_ns| at_ns.saturating_sub(self.warmup_ns) as f64 / 1e9);
        let simulated_ns = given_up_ns.unwrap_or(self.end_ns.max(simulated.now_ns));
        let heads = &simulated.heads;
        let classes: Map<String, Value> = self
            .classes
            .iter()
            .map(|class| (class.name.clone(), class.document(measured_s, self.heads)))
            .collect();
        let mix = heads.iter().fold(Mix::default(), |all, head| all.with(head.mix));
        let heads: Vec<Value> = heads.iter().map(|head| head_document(head, simulated_ns)).collect();
        // Of classes with deadlines: guarantees may hold for some clients only.
        let clients: Map<String, Value> = self
            .classes
            .iter()
            .filter(|class| class.deadlines > 0)
            .map(|class| {
                let (deadlines, missed): (Vec<u64>, Vec<u64>) = class.clients.iter().copied().unzip();
                (class.name.clone(), json!({"deadlines": deadlines, "missed": missed}))
            })
            .collect();
        json!({"format": 1, "classes": classes, "clients": clients, "server": mixed(&mix), "heads": heads})
    }
}

/// One head, over the time that was simulated.
fn head_document(head: &HeadReport, simulated_ns: u64) -> Value {
    let mut fields = mixed(&head.mix);
    fields.insert("busy_share".to_owned(), json!(head.busy_ns as f64 / simulated_ns.max(1) as f64));
    fields.insert("slack_ms".to_owned(), json!(head.slack_ns.map(|ns| ns as f64 / 1e6)));
    Value::Object(fields)
}

/// How real-time and best-effort requests alternated, warm-up included.
fn mixed(mix: &Mix) -> Map<String, Value> {
    let (mean, sd) = mix.burst_mean_sd().unzip();
    Map::from_iter([
        ("real_time_requests".to_owned(), json!(mix.real_time)),
        ("best_effort_requests".to_owned(), json!(mix.best_effort)),
        ("context_switches".to_owned(), json!(mix.switches)),
        ("bursts".to_owned(), json!(mix.bursts)),
        ("burst_mean_requests".to_owned(), json!(mean)),
        ("burst_sd_requests".to_owned(), json!(sd)),
        ("burst_max_requests".to_owned(), json!(mix.longest_burst)),
    ])
}

impl ClassSummary {
    fn new(name: &str, is_closed_loop: bool) -> Result<Self, Error> {
        let responses = Histogram::new_with_bounds(1000, LONGEST_NS, DIGITS)
            .map_err(|error| Error::Failed(format!("class {name}: no histogram: {error}")))?;
        Ok(ClassSummary {
            name: name.to_owned(),
            is_closed_loop,
            requests: 0,
            answered: 0,
            deadlines: 0,
            missed: 0,
            clients: Vec::new(),
            offered_bytes: 0,
            response_ns: 0,
            queueing_ns: 0,
            accesses: 0,
            access_queueing_ns: 0,
            access_service_ns: 0,
            responses,
            completed: 0,
            completed_bytes: 0,
            busy_ns: 0,
        })
    }

    /// Adds a request to the response times.
    fn add(&mut self, served: &Served) {
        let ask = &served.ask;
        self.requests += 1;
        if let Some(deadline_ns) = ask.deadline_ns {
            let missed = u64::from(served.completed_ns.is_none_or(|done_ns| done_ns > deadline_ns));
            self.deadlines += 1;
            self.missed += missed;
            let client = ask.client as usize;
            if self.clients.len() <= client {
                self.clients.resize(client + 1, (0, 0));
            }
            self.clients[client].0 += 1;
            self.clients[client].1 += missed;
        }
        if let Some(done_ns) = served.completed_ns {
            let response_ns = done_ns - ask.intended_ns;
            self.answered += 1;
            self.response_ns += u128::from(response_ns);
            self.queueing_ns += u128::from(served.served_ns.unwrap_or(ask.intended_ns) - ask.intended_ns);
            self.accesses += u64::from(served.accesses);
            self.access_queueing_ns += u128::from(served.access_queueing_ns);
            self.access_service_ns += u128::from(served.busy_ns);
            self.responses.saturating_record(response_ns);
        }
    }

    /// `measured_s`: the length of the interval that rates are of; without any they have no value.
    fn document(&self, measured_s: f64, heads: u32) -> Value {
        let ms = |ns: f64| ns / 1e6;
        let mean_of = |sum_ns: u128, count: u64| {
            if count == 0 { Value::Null } else { json!(ms(sum_ns as f64 / count as f64)) }
        };
        let mean = |sum_ns| mean_of(sum_ns, self.answered);
        let access_mean = |sum_ns| mean_of(sum_ns, self.accesses);
        let per_s = |amount: f64| if measured_s > 0.0 { json!(amount / measured_s) } else { Value::Null };
        let mb_s = |bytes: u64| per_s(bytes as f64 / 1e6);
        let mut fields = Map::new();
        let mut field = |name: &str, value: Value| {
            fields.insert(name.to_owned(), value);
        };
        field("requests", json!(self.requests));
        field("failed", json!(0));
        field("unfinished", json!(self.requests - self.answered));
        // A request that never completed has an unbounded response time.
        let whole = if self.answered < self.requests { json!(UNBOUNDED) } else { mean(self.response_ns) };
        field("response_mean_ms", whole);
        for (name, q) in QUANTILES {
            field(name, self.quantile_ms(q));
        }
        field("queueing_mean_ms", mean(self.queueing_ns));
        field("service_mean_ms", mean(self.response_ns - self.queueing_ns));
        // The service of a request is that of the piece completed last; a request over several heads has several accesses.
        field("disk_accesses", json!(self.accesses));
        field("access_queueing_mean_ms", access_mean(self.access_queueing_ns));
        field("access_service_mean_ms", access_mean(self.access_service_ns));
        field("deadlines", json!(self.deadlines));
        let share = (self.deadlines > 0).then(|| self.missed as f64 / self.deadlines as f64);
        field("deadline_miss_share", json!(share));
        field("offered_mb_s", mb_s(self.offered_bytes));
        field("throughput_mb_s", mb_s(self.completed_bytes));
        field("requests_per_s", per_s(self.completed as f64));
        field("head_time_share", per_s(self.busy_ns as f64 / 1e9 / f64::from(heads.max(1))));
        Value::Object(fields)
    }

    /// Response time that a share `q` of the requests does not exceed; `None` if there are too few requests to distinguish it from
    /// the maximum.
    fn quantile_ms(&self, q: f64) -> Value {
        let requests = self.requests as f64;
        if self.requests == 0 || (q < 1.0 && requests * (1.0 - q) < 1.0 - 1e-9) {
            return Value::Null;
        }
        let rank = ((q * requests - 1e-9).ceil() as u64).max(1);
        if rank > self.answered {
            return json!(UNBOUNDED);
        }
        // Between two ranks: rounding cannot reach the next one.
        let within = (rank as f64 - 0.5) / self.answered as f64;
        json!(self.responses.value_at_quantile(within) as f64 / 1e6)
    }
}
