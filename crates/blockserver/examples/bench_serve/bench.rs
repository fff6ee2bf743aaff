//! A server to measure, its block device's queue, and fio.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, ExitCode};

use weir_blockserver::{Control, ServeSpec, State, Stats, down, serve, state_path, wait_until_ready};

/// A server in its own process; the queue settings are restored and everything is removed at the end.
pub struct Bench {
    child: Child,
    state: State,
    folder: tempfile::TempDir,
    original: Queue,
}

/// A block device's queue settings.
#[derive(Clone)]
struct Queue {
    scheduler: String,
    requests: u32,
}

impl Bench {
    pub fn start(yaml: &str) -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(text)?;
        let spec = ServeSpec::parse(yaml, "bench_serve", folder.path()).map_err(text)?;
        let mut child = Command::new(std::env::current_exe().map_err(text)?)
            .arg("serve")
            .arg(serde_json::to_string(&spec).map_err(text)?)
            .arg(folder.path())
            .spawn()
            .map_err(text)?;
        let state = wait_until_ready(&spec, folder.path(), &mut child)?;
        let mut bench =
            Self { child, state, folder, original: Queue { scheduler: String::new(), requests: 0 } };
        bench.original = bench.read_queue()?;
        Ok(bench)
    }

    fn device(&self) -> &Path {
        self.state.device.as_ref().map_or(Path::new(""), |device| &device.path)
    }

    fn setting(&self, name: &str) -> String {
        let device = self.device().file_name().unwrap_or_default().to_string_lossy();
        format!("/sys/block/{device}/queue/{name}")
    }

    fn read_queue(&self) -> Result<Queue, String> {
        let read = |name| fs::read_to_string(self.setting(name)).map_err(text);
        let schedulers = read("scheduler")?;
        // The active one is in brackets.
        let scheduler = schedulers.split(['[', ']']).nth(1).unwrap_or("none").to_owned();
        Ok(Queue { scheduler, requests: read("nr_requests")?.trim().parse().map_err(text)? })
    }

    /// Sets the scheduler and the depth of the device itself. The depth is the number of tags, which `nr_requests` sets while
    /// there is no scheduler; the kernel takes no less than 4, and ignores a return to the full number unless it changes.
    pub fn queue(&self, scheduler: &str, depth: u32) -> Result<(), String> {
        let write = |name: &str, value: &str| {
            fs::write(self.setting(name), value).map_err(|error| format!("{}: {error}", self.setting(name)))
        };
        write("scheduler", "none")?;
        write("nr_requests", &(depth - 1).max(4).to_string())?;
        write("nr_requests", &depth.to_string())?;
        write("scheduler", scheduler)?;
        if scheduler == "bfq" {
            // Its heuristics favour the process that started last, which would distort the comparison.
            write("iosched/low_latency", "0")?;
        }
        Ok(())
    }

    /// The model starts again in its first state, and the statistics from zero.
    pub fn reset(&self) -> Result<(), String> {
        let mut control = Control::connect(&self.state).map_err(text)?;
        control.timing(false).map_err(text)?;
        control.timing(true).map_err(text)?;
        control.stats(true).map(|_| ()).map_err(text)
    }

    pub fn stats(&self) -> Result<Stats, String> {
        Control::connect(&self.state).and_then(|mut control| control.stats(false)).map_err(text)
    }

    /// Processor time that the server has used, in us.
    pub fn used_us(&self) -> Result<f64, String> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id())).map_err(text)?;
        // The first number: time on a processor in ns. A thread that has just ended used none that matters.
        let of_task = |folder: fs::DirEntry| {
            let line = fs::read_to_string(folder.path().join("schedstat")).ok()?;
            line.split(' ').next()?.parse::<f64>().ok()
        };
        Ok(tasks.flatten().filter_map(of_task).sum::<f64>() / 1e3)
    }

    /// Random 4 KiB reads for so many seconds; the requests a second of each job.
    pub fn fio(&self, seconds: u32, jobs: &[Jobs]) -> Result<Vec<f64>, String> {
        let mut command = Command::new("fio");
        command.args(["--output-format=json", "--ioengine=libaio", "--direct=1", "--rw=randread", "--bs=4k"]);
        command.args(["--time_based", "--thread", &format!("--runtime={seconds}")]);
        command.arg(format!("--filename={}", self.device().display()));
        for (number, Jobs { depth, priority }) in jobs.iter().enumerate() {
            command.arg(format!("--name=job{number}")).arg(format!("--iodepth={depth}"));
            if let Some((class, level)) = priority {
                command.arg(format!("--prioclass={class}")).arg(format!("--prio={level}"));
            }
        }
        let output = command.output().map_err(|error| format!("cannot run fio ({error}): install it"))?;
        if !output.status.success() {
            return Err(format!("fio: {}", String::from_utf8_lossy(&output.stderr).trim()));
        }
        let result: serde_json::Value = serde_json::from_slice(&output.stdout).map_err(text)?;
        let rate = |job: &serde_json::Value| job["read"]["iops"].as_f64();
        let rates = result["jobs"].as_array().map(|jobs| jobs.iter().filter_map(rate).collect::<Vec<_>>());
        rates.filter(|rates| rates.len() == jobs.len()).ok_or_else(|| "fio's report lacks a job".to_owned())
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let Queue { scheduler, requests } = self.original.clone();
        if requests > 1
            && let Err(message) = self.queue(&scheduler, requests)
        {
            eprintln!("the queue was not put back: {message}");
        }
        match down(&state_path(self.folder.path(), &self.state.spec.name)) {
            Ok(report) => report.left.iter().for_each(|line| eprintln!("left: {line}")),
            Err(error) => eprintln!("{error}"),
        }
        let _ = self.child.wait();
    }
}

/// fio jobs: queue depth, and I/O priority as (class, level).
pub struct Jobs {
    depth: u32,
    priority: Option<(u32, u32)>,
}

impl Jobs {
    pub fn new(depth: u32) -> Self {
        Self { depth, priority: None }
    }

    pub fn priority(self, priority: (u32, u32)) -> Self {
        Self { priority: Some(priority), ..self }
    }
}

/// The server's process.
pub fn serve_child(spec: &str, folder: &str) -> ExitCode {
    let served = serde_json::from_str(spec)
        .map_err(text)
        .and_then(|spec: ServeSpec| serve(&spec, Path::new(folder), None, |_| ()).map_err(text));
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

pub fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Standard deviation (of a sample) over mean.
pub fn coefficient_of_variation(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    variance.sqrt() / mean
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
