//! What the collector costs: fio's rate with it and without, in interleaved pairs, and the BPF time per request.
//!
//! ```text
//! cargo run --release -p weir-collectors --example bench_collect [-- [--rounds N] [--seconds S] [DEVICE[=RATIO]...]]
//! ```
//!
//! First a loop device over a file in `/dev/shm` is made, which saturates the CPUs, and read one request at a time and in
//! batches, for the highest rate; then every device that is named is read. RATIO is the share of the rate that must be left. Every round has five arms in changing order: nothing, nothing
//! again (the control, which shows the noise), the collector in mode `full`, in mode `lean`, and `full` with the ftrace
//! events of completions beside it. Needs root, fio and, for the BPF time, permission to set `kernel.bpf_stats_enabled`.

use std::error::Error;
use std::fs;
use std::os::fd::{FromRawFd, OwnedFd};
use std::process::Command;
use std::time::Duration;

use weir_collectors::Disk;
use weir_collectors::block::{Mode, Options};
use weir_collectors::paired::{Collector, Second};
use weir_collectors::reconcile::Reconciliation;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Least share of the rate that a collector should leave on a loop device that saturates the CPUs.
const SATURATED_RATIO: f64 = 0.85;
/// Longest time in BPF programs per request that is aimed at.
const BPF_TIME_NS: f64 = 350.0;

struct Settings {
    rounds: usize,
    seconds: f64,
    /// With the share of the rate that must be left.
    devices: Vec<(String, Option<f64>)>,
}

fn settings() -> Outcome<Settings> {
    let mut found = Settings { rounds: 9, seconds: 3.0, devices: Vec::new() };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--rounds" => found.rounds = value()?.parse()?,
            "--seconds" => found.seconds = value()?.parse()?,
            other if other.starts_with('-') => return Err(format!("unknown option {other}").into()),
            device => found.devices.push(match device.split_once('=') {
                Some((device, ratio)) => (device.to_owned(), Some(ratio.parse()?)),
                None => (device.to_owned(), None),
            }),
        }
    }
    Ok(found)
}

/// What runs beside fio.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Arm {
    Nothing,
    Control,
    Collector(Mode, Second),
}

const ARMS: [Arm; 5] = [
    Arm::Nothing,
    Arm::Control,
    Arm::Collector(Mode::Full, Second::No),
    Arm::Collector(Mode::Lean, Second::No),
    Arm::Collector(Mode::Full, Second::Required),
];

impl Arm {
    fn name(self) -> &'static str {
        match self {
            Arm::Nothing => "without",
            Arm::Control => "control",
            Arm::Collector(Mode::Lean, _) => "lean",
            Arm::Collector(Mode::Full, Second::No) => "full",
            Arm::Collector(Mode::Full, _) => "full and ftrace",
        }
    }
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

/// What fio does.
struct Load {
    about: &'static str,
    arguments: &'static [&'static str],
}

const SINGLY: Load = Load {
    about: "4 KiB random reads at queue depth 32",
    arguments: &["--bs=4k", "--ioengine=libaio", "--iodepth=32"],
};

/// The highest rate that one job gets from a loop device: requests submitted and reaped in batches, without a map of blocks.
const BATCHES: Load = Load {
    about: "512-byte random reads in batches of 16 at queue depth 64",
    arguments: &[
        "--bs=512",
        "--ioengine=io_uring",
        "--iodepth=64",
        "--iodepth_batch_submit=16",
        "--iodepth_batch_complete_min=8",
        "--iodepth_batch_complete_max=32",
        "--fixedbufs",
        "--registerfiles",
        "--norandommap",
        "--gtod_reduce=1",
    ],
};

/// The rate per second.
fn fio(device: &str, load: &Load, seconds: f64) -> Outcome<f64> {
    let output = Command::new("fio")
        .args(["--name=bench", "--rw=randread", "--direct=1"])
        .args(load.arguments)
        .args(["--readonly", "--time_based", "--output-format=json"])
        .arg(format!("--runtime={seconds}"))
        .arg(format!("--filename={device}"))
        .output()?;
    if !output.status.success() {
        return Err(format!("fio failed: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let report: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    report["jobs"][0]["read"]["iops"].as_f64().ok_or_else(|| "fio's report has no iops".into())
}

/// Loads one device while another, or the same, is recorded.
fn with_collector(
    recorded: &str,
    loaded: &str,
    (load, seconds): (&Load, f64),
    (mode, second): (Mode, Second),
) -> Outcome<(f64, Reconciliation)> {
    let folder = std::env::temp_dir();
    let options = Options { mode, ..Options::spooled_to(&folder) };
    let collector = Collector::start(&[Disk::find(recorded)?], options, second, &folder, &folder)?;
    let rate = fio(loaded, load, seconds)?;
    let capture = collector.stop()?;
    // The rows only where there is something to fill: millions of them take their time.
    let fill = second != Second::No && capture.reconciliation().lost > 0;
    let found = if fill { capture.into_rows(0)?.1 } else { capture.reconciliation().clone() };
    Ok((rate, found))
}

/// The kernel's accounting of BPF time: on until this is closed, or the process ends.
struct BpfStatistics {
    _on: OwnedFd,
}

impl BpfStatistics {
    fn on() -> Outcome<Self> {
        // The attributes of BPF_ENABLE_STATS (include/uapi/linux/bpf.h): the type, here that of run times.
        let (command, kind) = (32, 0_u32);
        // SAFETY: the attributes are as long as said; the call returns a new descriptor or -1.
        let descriptor = unsafe { libc::syscall(libc::SYS_bpf, command, &raw const kind, size_of::<u32>()) };
        let Some(descriptor) = i32::try_from(descriptor).ok().filter(|descriptor| *descriptor >= 0) else {
            return Err(std::io::Error::last_os_error().into());
        };
        // SAFETY: the kernel has just given this descriptor, and no one else owns it.
        let on = unsafe { OwnedFd::from_raw_fd(descriptor) };
        Ok(BpfStatistics { _on: on })
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 }
}

/// What one arm came to in all rounds.
#[derive(Default)]
struct Results {
    rates: Vec<f64>,
    ratios: Vec<f64>,
    requests: u64,
    lost: u64,
    filled: u64,
    unexplained: u64,
}

fn print_arm(arm: Arm, found: &mut Results, at_least: Option<f64>) {
    let rate = median(&mut found.rates);
    let ratio = median(&mut found.ratios);
    let (low, high) = (found.ratios[0], found.ratios[found.ratios.len() - 1]);
    print!(
        "  {:<16} {rate:>7.0} requests/s  {ratio:.3} of the rate without ({low:.3} to {high:.3})",
        arm.name()
    );
    if let Arm::Collector(..) = arm {
        print!(
            "  {} requests, {} lost, {} filled, {} unexplained",
            found.requests, found.lost, found.filled, found.unexplained
        );
    }
    match at_least.filter(|_| matches!(arm, Arm::Collector(_, Second::No))) {
        Some(at_least) if ratio < at_least => println!("  (at least {at_least}: missed)"),
        Some(at_least) => println!("  (at least {at_least}: met)"),
        None => println!(),
    }
}

fn bench(device: &str, load: &Load, at_least: Option<f64>, settings: &Settings) -> Outcome<()> {
    println!("{device}, fio {}, {} rounds of {} s:", load.about, settings.rounds, settings.seconds);
    fio(device, load, 1.0)?;
    let mut results: [Results; ARMS.len()] = std::array::from_fn(|_| Results::default());
    for round in 0..settings.rounds {
        let mut rates = [0.0; ARMS.len()];
        for step in 0..ARMS.len() {
            let at = (round + if round % 2 == 0 { step } else { ARMS.len() - 1 - step }) % ARMS.len();
            rates[at] = match ARMS[at] {
                Arm::Nothing | Arm::Control => fio(device, load, settings.seconds)?,
                Arm::Collector(mode, second) => {
                    let (rate, found) =
                        with_collector(device, device, (load, settings.seconds), (mode, second))?;
                    results[at].requests +=
                        found.devices.iter().map(|device| device.kernel.requests()).sum::<u64>();
                    results[at].lost += found.lost;
                    results[at].filled += found.filled;
                    results[at].unexplained += found.unexplained;
                    rate
                }
            };
        }
        for (found, rate) in results.iter_mut().zip(rates) {
            found.rates.push(rate);
            found.ratios.push(rate / rates[0]);
        }
    }
    for (arm, found) in ARMS.into_iter().zip(&mut results).filter(|_| settings.rounds > 0) {
        print_arm(arm, found, at_least);
    }
    for mode in [Mode::Full, Mode::Lean] {
        bpf_time(device, load, mode, settings.seconds)?;
    }
    Ok(())
}

/// Prints the time in the programs of a mode, by the kernel's own accounting.
fn bpf_time(device: &str, load: &Load, mode: Mode, seconds: f64) -> Outcome<()> {
    let statistics = BpfStatistics::on()?;
    let (_, found) = with_collector(device, device, (load, seconds), (mode, Second::No))?;
    // A collector of another, idle device leaves every program at once: what remains is the accounting's own clock.
    let idle = MemoryLoop::new(1)?;
    let (_, unused) = with_collector(&idle.device, device, (load, seconds), (mode, Second::No))?;
    drop(statistics);
    // Programs run for every disk of the host, so it is their own runs that count, not only fio's requests.
    let per_request = |found: &Reconciliation| {
        let completions = found.programs.iter().filter(|program| program.name.starts_with("rq_complete"));
        let requests: u64 = completions.map(|program| program.runs).sum();
        found.programs.iter().map(|program| program.run_time_ns).sum::<u64>() as f64 / requests.max(1) as f64
    };
    let (total_ns, own_ns) = (per_request(&found), per_request(&unused));
    let verdict = if total_ns < BPF_TIME_NS { "met" } else { "missed" };
    println!(
        "  BPF time, {}: {total_ns:.0} ns per request (below {BPF_TIME_NS}: {verdict}), of which {own_ns:.0} ns for leaving a program at once and the accounting itself",
        mode.name()
    );
    for program in found.programs.iter().filter(|program| program.runs > 100) {
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
    let memory = MemoryLoop::new(256)?;
    println!("a loop device over memory, which saturates the CPUs:");
    bench(&memory.device, &SINGLY, Some(SATURATED_RATIO), &settings)?;
    bench(&memory.device, &BATCHES, None, &settings)?;
    drop(memory);
    settings.devices.iter().try_for_each(|(device, at_least)| bench(device, &SINGLY, *at_least, &settings))
}
