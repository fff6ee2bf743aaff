//! What the collector costs: fio's rate with it and without, in interleaved pairs, and the BPF time per request.
//!
//! ```text
//! cargo run --release -p weir-collectors --example bench_collect [-- [--rounds N] [--seconds S] [--lean] [DEVICE...]]
//! ```
//!
//! Without a device a loop device over a file in `/dev/shm` is made, which saturates the CPUs. A device that is named is
//! only read. With `--rounds 0` only the BPF time is measured. Every round has three arms in changing order: nothing, nothing again (the control, which shows the
//! noise), and the collector. Needs root, fio and, for the BPF time, permission to set `kernel.bpf_stats_enabled`.

use std::error::Error;
use std::fs;
use std::process::Command;
use std::time::Duration;

use weir_collectors::Disk;
use weir_collectors::block::{Collector, Mode, Options};
use weir_collectors::reconcile::Reconciliation;

type Outcome<T> = Result<T, Box<dyn Error>>;

const STATS_SWITCH: &str = "/proc/sys/kernel/bpf_stats_enabled";

struct Settings {
    rounds: usize,
    seconds: f64,
    mode: Mode,
    devices: Vec<String>,
}

fn settings() -> Outcome<Settings> {
    let mut found = Settings { rounds: 9, seconds: 3.0, mode: Mode::Full, devices: Vec::new() };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--rounds" => found.rounds = value()?.parse()?,
            "--seconds" => found.seconds = value()?.parse()?,
            "--lean" => found.mode = Mode::Lean,
            other if other.starts_with('-') => return Err(format!("unknown option {other}").into()),
            device => found.devices.push(device.to_owned()),
        }
    }
    Ok(found)
}

/// A loop device over a file in memory; both go when it is dropped.
struct MemoryLoop {
    device: String,
    _file: tempfile::NamedTempFile,
}

impl MemoryLoop {
    fn new(mib: usize) -> Outcome<Self> {
        let file = tempfile::NamedTempFile::new_in("/dev/shm")?;
        // Written, not sparse: holes would be read faster than data.
        fs::write(file.path(), vec![0x5a; mib << 20])?;
        for _ in 0..10 {
            let output = Command::new("losetup")
                .args(["--find", "--show", "--direct-io=on"])
                .arg(file.path())
                .output()?;
            if output.status.success() {
                let device = String::from_utf8(output.stdout)?.trim().to_owned();
                return Ok(MemoryLoop { device, _file: file });
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        Err("losetup found no free loop device".into())
    }
}

impl Drop for MemoryLoop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.device]).status();
    }
}

/// 4 KiB random reads at queue depth 32; the rate per second and the number.
fn fio(device: &str, seconds: f64) -> Outcome<(f64, u64)> {
    let output = Command::new("fio")
        .args(["--name=bench", "--rw=randread", "--bs=4k", "--direct=1", "--ioengine=libaio", "--iodepth=32"])
        .args(["--readonly", "--time_based", "--output-format=json"])
        .arg(format!("--runtime={seconds}"))
        .arg(format!("--filename={device}"))
        .output()?;
    if !output.status.success() {
        return Err(format!("fio failed: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let report: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let read = &report["jobs"][0]["read"];
    let (Some(rate), Some(count)) = (read["iops"].as_f64(), read["total_ios"].as_u64()) else {
        return Err("fio's report has no iops".into());
    };
    Ok((rate, count))
}

/// Loads one device while another, or the same, is recorded.
fn with_collector(
    recorded: &str,
    loaded: &str,
    settings: &Settings,
) -> Outcome<((f64, u64), Reconciliation)> {
    let mut options = Options::spooled_to(&std::env::temp_dir());
    options.mode = settings.mode;
    let collector = Collector::start(&[Disk::find(recorded)?], options)?;
    let rate = fio(loaded, settings.seconds)?;
    Ok((rate, collector.stop()?.reconciliation().clone()))
}

/// Turns the kernel's accounting of BPF time on, and off again when dropped.
struct BpfStatistics {
    before: String,
}

impl BpfStatistics {
    fn on() -> Outcome<Self> {
        let before = fs::read_to_string(STATS_SWITCH)?;
        fs::write(STATS_SWITCH, "1")?;
        Ok(BpfStatistics { before })
    }
}

impl Drop for BpfStatistics {
    fn drop(&mut self) {
        let _ = fs::write(STATS_SWITCH, &self.before);
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 }
}

fn print_ratio(name: &str, ratios: &mut [f64]) {
    let middle = median(ratios);
    println!(
        "  {name:<10} median {middle:.3} of the rate without, range {:.3} to {:.3}, n = {}",
        ratios[0],
        ratios[ratios.len() - 1],
        ratios.len()
    );
}

fn bench(device: &str, settings: &Settings) -> Outcome<()> {
    println!("{device}, mode {}, fio 4 KiB random reads at queue depth 32:", settings.mode.name());
    fio(device, 1.0)?;
    let (mut alone, mut control, mut collected) = (Vec::new(), Vec::new(), Vec::new());
    let (mut requests, mut lost, mut unexplained) = (0, 0, 0);
    for round in 0..settings.rounds {
        let mut rates = [0.0; 3];
        for step in 0..3 {
            let arm = (round + if round % 2 == 0 { step } else { 2 - step }) % 3;
            rates[arm] = if arm == 2 {
                let ((rate, count), found) = with_collector(device, device, settings)?;
                requests += count;
                lost += found.lost;
                unexplained += found.unexplained;
                rate
            } else {
                fio(device, settings.seconds)?.0
            };
        }
        alone.push(rates[0]);
        control.push(rates[1] / rates[0]);
        collected.push(rates[2] / rates[0]);
    }
    if settings.rounds > 0 {
        println!("  without    median {:.0} requests/s", median(&mut alone));
        print_ratio("control", &mut control);
        print_ratio("collector", &mut collected);
        println!("  {requests} requests by fio, {lost} lost, {unexplained} unexplained");
    }
    let statistics = BpfStatistics::on()?;
    let (_, found) = with_collector(device, device, settings)?;
    // A collector of another, idle device leaves every program at once: what remains is the accounting's own clock.
    let idle = MemoryLoop::new(1)?;
    let (_, unused) = with_collector(&idle.device, device, settings)?;
    drop(statistics);
    // Programs run for every disk of the host, so it is their own runs that count, not only fio's requests.
    let per_request = |found: &Reconciliation| {
        let completions = found.programs.iter().filter(|program| program.name.starts_with("rq_complete"));
        let requests: u64 = completions.map(|program| program.runs).sum();
        found.programs.iter().map(|program| program.run_time_ns).sum::<u64>() as f64 / requests.max(1) as f64
    };
    let (total_ns, own_ns) = (per_request(&found), per_request(&unused));
    println!("  BPF time   {total_ns:.0} ns per request, of which {own_ns:.0} ns are the accounting's own");
    for program in found.programs.iter().filter(|program| program.runs > 0) {
        println!(
            "    {:<16} {:>9} runs, {:>4.0} ns each",
            program.name,
            program.runs,
            program.run_time_ns as f64 / program.runs as f64
        );
    }
    Ok(())
}

fn main() -> Outcome<()> {
    let settings = settings()?;
    if settings.devices.is_empty() {
        let memory = MemoryLoop::new(256)?;
        return bench(&memory.device, &settings);
    }
    settings.devices.iter().try_for_each(|device| bench(device, &settings))
}
