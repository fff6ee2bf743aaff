//! Closed-loop classes, carried out by fio: its logs become rows of `requests.parquet`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde::Serialize;
use serde_json::Value;
use weir_daemons::Group;
use weir_records::{Op, Request, RequestSpool};
use weir_specs::template;
use weir_study::Run;
use weir_workload::{Access, Arrivals};

use crate::Error;
use crate::files::free_space::free_bytes;
use crate::files::placement::{Placement, file_path};
use crate::load::class_process::ClassProcess;
use crate::load::fio_log::{self, JobLogs};
use crate::load::gate::Gate;

/// Free space below which fio ends without a message, since it cannot write one.
const LITTLE_ROOM_BYTES: u64 = 64 << 10;

/// Upper bound of the time by which fio overstates completions of a class, summed over requests, in ns. At the end of its
/// runtime a fio client waits for all outstanding requests, and stamps all with the completion of the last.
#[derive(Default)]
pub(crate) struct Overstated {
    /// By client: time after the end, of all requests and of the last.
    clients: BTreeMap<u32, (i64, i64)>,
}

impl Overstated {
    /// Adds a request of a run that ends at `end_ns`.
    pub(crate) fn add(&mut self, end_ns: i64, row: &Request) {
        let Some(completed_ns) = row.completed_ns.filter(|completed_ns| *completed_ns > end_ns) else {
            return;
        };
        let late_ns = completed_ns - end_ns.max(row.submitted_ns.unwrap_or(row.intended_ns));
        let (all_ns, last_ns) = self.clients.entry(row.client).or_default();
        *all_ns += late_ns;
        *last_ns = (*last_ns).max(late_ns);
    }

    pub(crate) fn total_ns(&self) -> i64 {
        // The time of the last one is exact.
        self.clients.values().map(|(all_ns, last_ns)| all_ns - last_ns).sum()
    }
}

/// Running fio of one class.
pub(crate) struct Job {
    program: ClassProcess,
    class: String,
    place_index: usize,
    folder: PathBuf,
    clients: u32,
    gate: Gate,
    /// Time from the epoch at which the study lets the clients begin.
    start_ns: i64,
}

/// File of what fio prints beside its result, in the folder of the job.
const WORDS: &str = "words.txt";
/// Longest wait until all clients are at the gate.
const READY_WITHIN: Duration = Duration::from_secs(120);
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// Range of fio's `log_entries`; the least is its default.
const MOST_LOG_ENTRIES: u32 = 1 << 20;
const LEAST_LOG_ENTRIES: u32 = 1 << 10;

/// fio's report of one class, compared with its rows.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Report {
    /// The class.
    pub(crate) class: String,
    /// fio's version.
    pub(crate) version: String,
    /// Exit code; absent if a signal ended fio.
    pub(crate) exit_code: Option<i32>,
    /// Requests by fio's count, over all jobs and directions.
    pub(crate) requests: u64,
    /// Rows made from its logs.
    pub(crate) rows: u64,
    /// Errors by fio's count.
    pub(crate) errors: u64,
    /// Largest difference between fio's own percentiles and those of the rows, over jobs, directions and the
    /// 50th, 90th and 99th percentile, as a share of fio's; absent where there are too few rows to compare.
    pub(crate) percentile_difference: Option<f64>,
    /// Longest time from the beginning that the study gives a client to its first request, in ns.
    pub(crate) began_late_ns: i64,
    /// Standard error output, if there was any.
    pub(crate) words: String,
}

/// Starts fio for a class, in the class's control group if it has one. Its logs go to `folder`. `of_clients` are the control
/// groups of its clients, by client; empty if they have none of their own.
///
/// # Errors
/// fio is not installed or cannot start.
pub(crate) fn start(
    run: &Run,
    place: &Placement,
    place_index: usize,
    folder: &Path,
    group: Option<&Group>,
    of_clients: &[&Group],
) -> Result<Job, Error> {
    fs::create_dir_all(folder).map_err(Error::io("cannot make", folder))?;
    let file = folder.join("job.fio");
    fs::write(&file, job_file(run, place, of_clients)?).map_err(Error::io("cannot write", &file))?;
    let gate = Gate::make(folder)?;
    let words = folder.join(WORDS);
    let words = File::create(&words).map_err(Error::io("cannot write", &words))?;
    let mut command = Command::new("fio");
    command.args(["--output-format=json", "--output=result.json", "job.fio"]).current_dir(folder);
    command.stdout(words.try_clone().map_err(Error::io("cannot write", folder))?).stderr(words);
    let program = ClassProcess::start(&mut command, group, |error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            Error::Failed("fio: not installed. Install the package fio".to_owned())
        }
        _ => Error::Failed(format!("fio: {error}")),
    })?;
    let (class, folder, clients) = (place.class.name.clone(), folder.to_owned(), place.class.clients);
    Ok(Job { program, class, place_index, folder, clients, gate, start_ns: start_ns(place) })
}

/// Job file of a class: one fio job for each client; a process each if they have control groups of their own.
fn job_file(run: &Run, place: &Placement, of_clients: &[&Group]) -> Result<String, Error> {
    let recipe = &place.recipe;
    let (Arrivals::Closed { depth, think_us, rate_per_s, .. }, Some(sizes)) =
        (&recipe.arrivals, recipe.closed_loop_sizes())
    else {
        return Err(Error::Refused(format!(
            "class {}: fio carries out only closed loops of fixed request sizes",
            place.class.name
        )));
    };
    let mode = match (recipe.access, recipe.read_share) {
        (Access::Random, share) if share >= 1.0 => "randread",
        (Access::Random, share) if share <= 0.0 => "randwrite",
        (Access::Random | Access::Recorded, _) => "randrw",
        (Access::Sequential, share) if share >= 1.0 => "read",
        (Access::Sequential, share) if share <= 0.0 => "write",
        (Access::Sequential, _) => "rw",
    };
    let size = place.files.total_bytes();
    let (file, offset) = match place.offsets_bytes.first() {
        Some(offset) => (place.path.clone(), *offset),
        None => (file_path(&place.path, 0), 0),
    };
    // In a job file `$` begins a variable, and each line is an option.
    template::Value::path(&file)
        .map_err(|problem| Error::Refused(format!("class {}: {problem}", place.class.name)))?;
    let mut text = String::from("[global]\n");
    let mut option = |name: &str, value: &dyn std::fmt::Display| {
        let _ = writeln!(text, "{name}={value}");
    };
    // A colon separates files.
    option("filename", &file.to_string_lossy().replace(':', "\\:"));
    option("offset", &offset);
    option("size", &size);
    option("rw", &mode);
    option("rwmixread", &(recipe.read_share * 100.0).round());
    match sizes.as_slice() {
        [(bytes, _)] => option("bs", bytes),
        several => {
            let split: Vec<String> =
                several.iter().map(|(bytes, share)| format!("{bytes}/{share}")).collect();
            option("bssplit", &split.join(":"));
        }
    }
    option("iodepth", &depth);
    option("thinktime", &think_us);
    option("ioengine", &"io_uring");
    option("direct", &u8::from(!run.settings.buffered));
    option("thread", &u8::from(of_clients.is_empty()));
    option("time_based", &1);
    // fio counts from the time at which a client passes the gate.
    option("runtime", &format!("{}ms", ((run.length_ns() - start_ns(place)) / 1_000_000).max(1)));
    if let Some(rate_per_s) = rate_per_s {
        option("rate_iops", &rate_iops(*rate_per_s, recipe.read_share));
    }
    option("norandommap", &1);
    option("allow_mounted_write", &0);
    for (name, value) in log_options(place.class.clients) {
        option(name, &value);
    }
    option("lat_percentiles", &1);
    if let Some(priority) = place.class.priority {
        option("prioclass", &priority.class().number());
        option("prio", &priority.level());
    }
    for client in 0..place.class.clients {
        let _ = write!(text, "[{client}]\nwrite_iolog=issue.{client}.log\nwrite_lat_log={client}\n");
        let group = of_clients.get(client as usize).copied();
        let _ = writeln!(text, "exec_prerun={}", Gate::command(group));
        // Each client has its own address range.
        let _ = writeln!(text, "randseed={}", seed(run.seed, client));
        if recipe.access == Access::Sequential && place.class.clients > 1 {
            let bytes = recipe.largest_request_bytes().max(1);
            let share = size / u64::from(place.class.clients) / bytes * bytes;
            let _ =
                writeln!(text, "offset={}\nsize={}", offset + share * u64::from(client), share.max(bytes));
        }
    }
    Ok(text)
}

/// Options of a job's latency logs, of which each client has one.
fn log_options(clients: u32) -> [(&'static str, u32); 6] {
    [
        // Completion stamps on CLOCK_MONOTONIC, in ms; the issue log refines them to microseconds.
        ("log_alternate_epoch", 1),
        ("log_alternate_epoch_clock_id", libc::CLOCK_MONOTONIC as u32),
        ("log_offset", 1),
        // When a log is full, fio 3.33 buffers up to a queue depth of entries until the log has grown, and loses them if the job ends
        // before. A long log is seldom full; untouched entries take no memory.
        ("log_entries", (MOST_LOG_ENTRIES / clients.max(1)).max(LEAST_LOG_ENTRIES)),
        // fio keeps each log in memory until the end, and only the whole latency is used.
        ("disable_clat", 1),
        ("disable_slat", 1),
    ]
}

/// Seed of a client: fio reads a signed number and refuses 2^63 or more.
fn seed(run_seed: u64, client: u32) -> u64 {
    run_seed.wrapping_add(u64::from(client)) & (u64::MAX >> 1)
}

impl Job {
    /// Waits for fio and turns its logs into rows relative to the run's start, which go to `requests`.
    ///
    /// # Errors
    /// fio wrote no logs, or the logs do not match.
    pub(crate) fn finish(
        mut self,
        run: &Run,
        places: &[Placement],
        epoch_monotonic_ns: i64,
        stop: &AtomicBool,
        requests: &mut RequestSpool,
    ) -> Result<Report, Error> {
        let place = &places[self.place_index];
        let status = self.program.wait("fio", stop)?;
        let mut report = Report {
            class: place.class.name.clone(),
            version: String::new(),
            exit_code: status.code(),
            requests: 0,
            rows: 0,
            errors: 0,
            percentile_difference: None,
            began_late_ns: 0,
            words: self.words(),
        };
        let result = self.folder.join("result.json");
        let text = fs::read_to_string(&result).map_err(Error::io("fio wrote no result", &result))?;
        // fio writes error messages before the JSON.
        let Some(start) = text.find('{') else {
            return Err(self.failure(&status.to_string()));
        };
        let json = &text[start..];
        let value: Value = serde_json::from_str(json)
            .map_err(|error| Error::Failed(format!("{}: {error}", result.display())))?;
        summarise(&value, &mut report);
        for client in 0..self.clients {
            let logs = JobLogs {
                issues: self.folder.join(format!("issue.{client}.log")),
                responses: self.folder.join(format!("{client}_lat.{}.log", client + 1)),
            };
            let mut latencies = Latencies::new()?;
            let mut first_ns = None;
            fio_log::rows(&logs, place, client, run, epoch_monotonic_ns, |row| {
                // Without a completion the log does not say when a request was sent.
                if let (Some(submitted_ns), Some(_)) = (row.submitted_ns, row.completed_ns) {
                    report.rows += 1;
                    first_ns = Some(first_ns.map_or(submitted_ns, |first: i64| first.min(submitted_ns)));
                }
                latencies.add(&row);
                requests.push(row);
            })?;
            let difference = latencies.difference(&value["jobs"][client as usize]);
            report.percentile_difference =
                [report.percentile_difference, difference].into_iter().flatten().reduce(f64::max);
            let first_ns = first_ns.unwrap_or(run.length_ns());
            report.began_late_ns = report.began_late_ns.max(first_ns - self.start_ns);
        }
        // Rows hold the content of the logs; job and result stay.
        for client in 0..self.clients {
            let _ = fs::remove_file(self.folder.join(format!("{client}_lat.{}.log", client + 1)));
            let _ = fs::remove_file(self.folder.join(format!("issue.{client}.log")));
        }
        self.gate.remove(self.clients);
        Ok(report)
    }

    /// Waits until all clients are at the gate, in their control groups if they have some.
    ///
    /// # Errors
    /// A client did not move to its group, fio ended, or the run is interrupted.
    pub(crate) fn await_clients(&mut self, stop: &AtomicBool) -> Result<(), Error> {
        let began = Instant::now();
        for client in 0..self.clients {
            while !self.gate.has(client)? {
                if let Some(status) = self.program.child.try_wait().map_err(Error::failed)? {
                    return Err(self.failure(&status.to_string()));
                }
                if stop.load(Ordering::Relaxed) {
                    return Err(Error::Failed("interrupted; undone".to_owned()));
                }
                if began.elapsed() > READY_WITHIN {
                    return Err(self.failure(&format!("not ready after {} s", READY_WITHIN.as_secs())));
                }
                sleep(POLL_INTERVAL);
            }
        }
        Ok(())
    }

    /// Lets the clients begin at the time that the study gives them, counted from an instant of `CLOCK_MONOTONIC`.
    ///
    /// # Errors
    /// The operating system's error.
    pub(crate) fn begin(&self, epoch_ns: i64) -> Result<(), Error> {
        self.gate.open_at(epoch_ns + self.start_ns, self.clients)
    }

    /// Why fio made no result: what it printed, or that there was no room to print it.
    fn failure(&self, how: &str) -> Error {
        let folder = self.folder.display();
        let words = match (self.words().as_str(), free_bytes(&self.folder)) {
            ("", Ok(free)) if free < LITTLE_ROOM_BYTES => format!("{folder} is full ({free} bytes free)"),
            ("", _) => format!("it printed nothing. Its files are in {folder}"),
            (words, _) => words.to_owned(),
        };
        Error::Failed(format!("fio for class {} failed ({how}): {words}", self.class))
    }

    /// What fio printed beside its result.
    fn words(&self) -> String {
        fs::read_to_string(self.folder.join(WORDS)).unwrap_or_default().trim().to_owned()
    }
}

/// Value of fio's option `rate_iops` for a client's rate of all requests. fio limits reads and writes separately.
///
/// fio takes whole requests per second, at least one in each direction.
fn rate_iops(rate_per_s: f64, read_share: f64) -> String {
    let all = rate_per_s.round().max(1.0);
    if read_share <= 0.0 || read_share >= 1.0 {
        return all.to_string();
    }
    let reads = (all * read_share).round().min(all - 1.0).max(1.0);
    format!("{reads},{}", (all - reads).max(1.0))
}

/// Time from the epoch at which the study lets the clients of a closed loop begin.
fn start_ns(place: &Placement) -> i64 {
    match place.recipe.arrivals {
        Arrivals::Closed { start_s, .. } => (start_s * 1e9) as i64,
        _ => 0,
    }
}

/// Minimum rows for a comparison of the 99th percentile.
const FEWEST_ROWS_TO_COMPARE: u64 = 200;
/// Longest latency that is compared, in ns: an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;
/// Digits of percentiles: many more than of fio's.
const DIGITS: u8 = 4;

/// Latencies of the rows of one job.
struct Latencies {
    reads: Histogram<u64>,
    writes: Histogram<u64>,
}

impl Latencies {
    fn new() -> Result<Self, Error> {
        let histogram = || Histogram::new_with_bounds(1, LONGEST_NS, DIGITS).map_err(Error::failed);
        Ok(Latencies { reads: histogram()?, writes: histogram()? })
    }

    fn add(&mut self, row: &Request) {
        let Some((submitted_ns, completed_ns)) = row.submitted_ns.zip(row.completed_ns) else { return };
        let of_op = match row.op {
            Op::Read => &mut self.reads,
            Op::Write => &mut self.writes,
            _ => return,
        };
        of_op.saturating_record(u64::try_from(completed_ns - submitted_ns).unwrap_or(0));
    }

    /// [`Report::percentile_difference`] of the job.
    fn difference(&self, job: &Value) -> Option<f64> {
        let mut largest: Option<f64> = None;
        for (name, responses) in [("read", &self.reads), ("write", &self.writes)] {
            if responses.len() < FEWEST_ROWS_TO_COMPARE {
                continue;
            }
            for (key, share) in [("50.000000", 0.5), ("90.000000", 0.9), ("99.000000", 0.99)] {
                // Total latency: fio's other percentiles leave out submission.
                let fio = job[name]["lat_ns"]["percentile"][key].as_f64()?;
                let ours = responses.value_at_quantile(share) as f64;
                let difference = (ours - fio).abs() / fio.max(1.0);
                largest = Some(largest.map_or(difference, |known| known.max(difference)));
            }
        }
        largest
    }
}

/// Sums counts over all jobs and directions.
fn summarise(value: &Value, report: &mut Report) {
    report.version = value["fio version"].as_str().unwrap_or_default().to_owned();
    for job in value["jobs"].as_array().into_iter().flatten() {
        report.errors +=
            job["total_err"].as_u64().unwrap_or(0) + u64::from(job["error"].as_i64().unwrap_or(0) != 0);
        for direction in ["read", "write"] {
            report.requests += job[direction]["total_ios"].as_u64().unwrap_or(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(latency_ns: i64) -> Request {
        Request {
            request: 0,
            class: "records".into(),
            client: 0,
            device: None,
            file: None,
            op: Op::Read,
            offset: 0,
            size_bytes: 4096,
            intended_ns: 0,
            submitted_ns: Some(0),
            completed_ns: Some(latency_ns),
            deadline_ns: None,
            served_ns: None,
            status: 0,
            warmup: false,
        }
    }

    #[test]
    fn only_what_several_requests_of_a_client_took_after_the_end_is_uncertain() {
        // One client with two requests in flight when its second is up, and one with one.
        let row = |client, submitted_ms: i64, completed_ms: i64| Request {
            client,
            submitted_ns: Some(submitted_ms * 1_000_000),
            completed_ns: Some(completed_ms * 1_000_000),
            ..row(0)
        };
        let rows = [
            row(0, 10, 20),
            row(0, 900, 1100),
            row(0, 950, 1100),
            row(1, 990, 1300),
            row(2, 1050, 1100),
            row(2, 900, 1100),
        ];
        let overstated_ns = |end_ns| {
            let mut overstated = Overstated::default();
            rows.iter().for_each(|row| overstated.add(end_ns, row));
            overstated.total_ns()
        };
        assert_eq!(overstated_ns(1_000_000_000), 100_000_000 + 50_000_000);
        assert_eq!(overstated_ns(2_000_000_000), 0);
    }

    fn job(p50: f64, p90: f64, p99: f64) -> Value {
        json!({"read": {"lat_ns": {"percentile": {"50.000000": p50, "90.000000": p90, "99.000000": p99}}}})
    }

    #[test]
    fn percentiles_are_compared_at_the_worst_of_three() {
        let difference = |count, job: &Value| {
            let mut latencies = Latencies::new().unwrap();
            (1..=count).for_each(|latency_ns| latencies.add(&row(latency_ns)));
            latencies.difference(job)
        };
        assert_eq!(difference(1000, &job(500.0, 900.0, 990.0)), Some(0.0));
        assert_eq!(difference(1000, &job(500.0, 900.0, 1980.0)), Some(0.5));
        assert_eq!(difference(100, &job(500.0, 900.0, 990.0)), None);
    }

    #[test]
    fn rates_of_both_directions_add_up_to_that_of_the_client() {
        assert_eq!(rate_iops(99.6, 1.0), "100");
        assert_eq!(rate_iops(100.0, 0.0), "100");
        assert_eq!(rate_iops(100.0, 0.7), "70,30");
        assert_eq!(rate_iops(3.0, 0.5), "2,1");
        assert_eq!(rate_iops(2.0, 0.99), "1,1");
        assert_eq!(rate_iops(0.2, 0.5), "1,1");
    }

    #[test]
    fn seeds_are_numbers_that_fio_reads() {
        assert_eq!(seed(7, 2), 9);
        assert!(seed(u64::MAX - 1, 0) < 1 << 63 && seed(u64::MAX, 1) < 1 << 63);
    }

    #[test]
    fn no_request_is_lost_where_a_short_log_would_be_full() {
        if !Command::new("fio").arg("--version").output().is_ok_and(|output| output.status.success()) {
            eprintln!("skipped: needs fio");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("disk"), vec![0; 1 << 20]).unwrap();
        let rows_of = |options: &[(&str, u32)]| {
            let mut text =
                "[0]\nfilename=disk\nrw=randread\nnorandommap=1\nbs=4096\niodepth=32\nioengine=io_uring\n\
                thread=1\nio_size=64m\nnumber_ios=7180\nwrite_lat_log=0\n"
                    .to_owned();
            for (name, value) in options {
                let _ = writeln!(text, "{name}={value}");
            }
            fs::write(folder.path().join("job.fio"), text).unwrap();
            let output = Command::new("fio").arg("job.fio").current_dir(&folder).output().unwrap();
            assert!(output.status.success(), "{output:?}");
            fs::read_to_string(folder.path().join("0_lat.1.log")).unwrap().lines().count()
        };
        assert_eq!(rows_of(&log_options(1)), 7180);
        // The default log has parts of 1024, 2048 and 4096 entries.
        let short = log_options(u32::MAX);
        assert!(short.contains(&("log_entries", 1024)));
        eprintln!("of 7180 requests, the default log has {}", rows_of(&short));
    }

    #[test]
    fn every_job_and_direction_is_counted() {
        let value = json!({"fio version": "fio-3.33", "jobs": [
            {"error": 0, "total_err": 0, "read": {"total_ios": 3}, "write": {"total_ios": 4}},
            {"error": 5, "total_err": 2, "read": {"total_ios": 10}, "write": {"total_ios": 0}},
        ]});
        let mut report = Report {
            class: String::new(),
            version: String::new(),
            exit_code: Some(0),
            requests: 0,
            rows: 0,
            errors: 0,
            percentile_difference: None,
            began_late_ns: 0,
            words: String::new(),
        };
        summarise(&value, &mut report);
        assert_eq!((report.requests, report.errors, report.version.as_str()), (17, 3, "fio-3.33"));
    }
}
