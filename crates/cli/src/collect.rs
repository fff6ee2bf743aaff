//! `weir collect`.

mod by;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::json;
use weir_collectors::assemble::Recorded;
use weir_collectors::block::{Delivery, Mode, Options};
use weir_collectors::paired::{self, Second};
use weir_collectors::{Disk, Error, blktrace_tool, block, files, ftrace, host, live, to_blktrace};
use weir_host::clock::monotonic_ns;
use weir_records::{BlockRequest, TableWriter};
use weir_trace::blktrace::{Record, write_per_cpu};

use self::by::By;
use crate::exit;
use crate::output::{self, Output};

/// Record every block request of a disk: times of queueing, issue and completion, process, result.
///
/// Without --duration or a command it records until Ctrl-C. The recording is compared with the kernel's counters, and
/// every difference is reported.
#[derive(clap::Args)]
pub struct Args {
    /// Disk to record, as a path or kernel name; up to 8
    #[arg(long, value_name = "DEV")]
    device: Vec<String>,

    /// Table to write, such as block.parquet
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Seconds to record
    #[arg(long, value_name = "S", conflicts_with = "command")]
    duration: Option<f64>,

    /// Source of the recording: BPF programs, trace events of ftrace or blktrace(8); auto takes the first that works
    #[arg(long, value_enum, default_value_t)]
    backend: Backend,

    /// How much BPF records: full from the arrival of the first bio on, lean only what the kernel keeps in the
    /// request itself (no task, no wait for a tag)
    #[arg(long, value_enum, default_value_t)]
    mode: ModeName,

    /// Fill completions that BPF missed from trace events of ftrace, which are recorded beside it
    #[arg(long, value_enum, value_name = "SOURCE")]
    second_source: Option<SecondSource>,

    /// Record the requests of COMMAND (or of --pid) on files, too: system calls, io_uring and FUSE
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "files.parquet")]
    files: Option<PathBuf>,

    /// Process whose requests on files are recorded, with all that it forks
    #[arg(long, requires = "files")]
    pid: Option<u32>,

    /// Write PREFIX.blktrace.CPU, too, for blkparse, btt and fio
    #[arg(long, value_name = "PREFIX")]
    blktrace: Option<PathBuf>,

    /// Folder for a record of the trace instance that is made, so that it is removed even after a crash
    #[arg(long, value_name = "DIR", default_value = "/run/weir")]
    state: PathBuf,

    /// Print latencies by process, control group, device or operation; needs no --out
    #[arg(long, value_enum, value_name = "GROUP")]
    by: Option<By>,

    /// Print requests as they complete
    #[arg(long, conflicts_with_all = ["out", "host", "second_source", "files", "blktrace", "by"])]
    live: bool,

    /// Print the record of this host, with the disks given, as JSON
    #[arg(long, conflicts_with_all = ["out", "duration", "command"])]
    host: bool,

    /// Command to record
    #[arg(last = true)]
    command: Vec<String>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
enum Backend {
    #[default]
    Auto,
    Bpf,
    Ftrace,
    Blktrace,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
enum ModeName {
    #[default]
    Full,
    Lean,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum SecondSource {
    Ftrace,
}

/// Set by SIGINT and SIGTERM.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

extern "C" fn on_signal(_: libc::c_int) {
    INTERRUPTED.store(true, Ordering::Relaxed);
}

fn catch_signals() {
    let handler = on_signal as extern "C" fn(libc::c_int);
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: the handler only stores to an atomic, which is allowed in a signal handler.
        unsafe { libc::signal(signal, handler as libc::sighandler_t) };
    }
}

/// The recording source.
enum Running {
    Bpf(paired::Collector),
    Ftrace(ftrace::Collector),
    Blktrace(blktrace_tool::Collector, tempfile::TempDir),
}

/// Bad input gets exit code 2.
fn classify(error: Error) -> anyhow::Error {
    if error.is_bad_input() { exit::bad_input(error) } else { error.into() }
}

pub fn run(mut args: Args, output: Output) -> anyhow::Result<ExitCode> {
    let disks: Vec<Disk> =
        args.device.iter().map(|device| Disk::find(device).map_err(classify)).collect::<Result<_, _>>()?;
    if args.host {
        output::document(&host::record(&disks, &[]))?;
        return Ok(ExitCode::SUCCESS);
    }
    check(&args, &disks)?;
    // Changes that other recordings left do not prevent this one.
    match weir_collectors::recover(&args.state) {
        Ok(undone) => undone.iter().for_each(|line| eprintln!("undone of a recording that died: {line}")),
        Err(error) => eprintln!("warning: {error}"),
    }
    catch_signals();
    if args.live { watch(&args, &disks, output) } else { record(&mut args, &disks, output) }
}

fn check(args: &Args, disks: &[Disk]) -> anyhow::Result<()> {
    if args.duration.is_some_and(|seconds| !seconds.is_finite() || seconds <= 0.0) {
        return Err(exit::bad_input("--duration must be a number of seconds above 0"));
    }
    if disks.is_empty() && (args.files.is_none() || args.out.is_some() || args.live) {
        return Err(exit::bad_input("name a disk with --device (or only --files, for requests on files)"));
    }
    if !disks.is_empty() && args.out.is_none() && args.blktrace.is_none() && args.by.is_none() && !args.live {
        return Err(exit::bad_input("say where to write with --out, sum up with --by, or watch with --live"));
    }
    if disks.is_empty() && args.by.is_some() {
        return Err(exit::bad_input("--by sums up the requests of a disk: name one with --device"));
    }
    if args.files.is_some() && args.pid.is_none() && args.command.is_empty() {
        return Err(exit::bad_input(
            "--files needs a command or --pid: it records one process and what that forks",
        ));
    }
    if args.second_source.is_some() && !matches!(args.backend, Backend::Auto | Backend::Bpf) {
        return Err(exit::bad_input("--second-source fills what BPF missed: use it with --backend bpf"));
    }
    if let Some(out) = &args.out {
        let folder = folder_of(out);
        if !folder.is_dir() {
            return Err(exit::bad_input(format!("{}: no such folder", folder.display())));
        }
    }
    Ok(())
}

fn folder_of(file: &Path) -> PathBuf {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

fn mode(args: &Args) -> Mode {
    match args.mode {
        ModeName::Full => Mode::Full,
        ModeName::Lean => Mode::Lean,
    }
}

fn start_one(args: &Args, disks: &[Disk], scratch: &Path, backend: Backend) -> Result<Running, Error> {
    Ok(match backend {
        Backend::Auto | Backend::Bpf => {
            let options = Options { mode: mode(args), ..Options::spooled_to(scratch) };
            let second = args.second_source.map_or(Second::No, |SecondSource::Ftrace| Second::Required);
            Running::Bpf(paired::Collector::start(disks, options, second, scratch, &args.state)?)
        }
        Backend::Ftrace => Running::Ftrace(ftrace::Collector::start(disks, scratch, &args.state)?),
        Backend::Blktrace => {
            let io = |source| Error::Io { path: scratch.to_owned(), source };
            let folder = tempfile::tempdir_in(scratch).map_err(io)?;
            Running::Blktrace(blktrace_tool::Collector::start(disks, folder.path())?, folder)
        }
    })
}

/// Starts the requested source. `auto` tries the next source with a warning if one cannot record; so does blktrace(8).
fn start(args: &Args, disks: &[Disk], scratch: &Path) -> anyhow::Result<Running> {
    let order: &[Backend] = match args.backend {
        // Only BPF has anything to be filled.
        Backend::Auto if args.second_source.is_some() => &[Backend::Bpf],
        Backend::Auto => &[Backend::Bpf, Backend::Ftrace, Backend::Blktrace],
        Backend::Bpf => &[Backend::Bpf],
        Backend::Ftrace => &[Backend::Ftrace],
        Backend::Blktrace => &[Backend::Blktrace, Backend::Ftrace],
    };
    let mut last = None;
    for backend in order {
        if let Some(error) = last.take() {
            eprintln!("warning: {error}; trying the next source");
        }
        match start_one(args, disks, scratch, *backend) {
            Ok(running) => return Ok(running),
            Err(error) if error.is_bad_input() => return Err(classify(error)),
            Err(error) => last = Some(error),
        }
    }
    Err(last.map_or_else(|| anyhow::anyhow!("no source can record here"), Into::into))
}

/// Runs the command, or waits. Returns how the command ended.
fn measure(args: &Args, follow: Option<&files::Collector>) -> anyhow::Result<Option<ExitStatus>> {
    let started = Instant::now();
    let Some((program, arguments)) = args.command.split_first() else {
        let limit = args.duration.map(Duration::from_secs_f64);
        while !INTERRUPTED.load(Ordering::Relaxed) && limit.is_none_or(|limit| started.elapsed() < limit) {
            let left = limit.map_or(Duration::MAX, |limit| limit.saturating_sub(started.elapsed()));
            std::thread::sleep(left.min(Duration::from_millis(20)));
        }
        return Ok(None);
    };
    // The child is followed from its first instruction; this process is not measured.
    if let Some(collector) = follow {
        collector.follow(std::process::id())?;
    }
    let child = Command::new(program).args(arguments).spawn();
    if let Some(collector) = follow {
        collector.leave(std::process::id());
    }
    let mut child: Child = child.map_err(|error| exit::bad_input(format!("{program}: {error}")))?;
    loop {
        if let Some(status) = child.try_wait().with_context(|| format!("waiting for {program}"))? {
            return Ok(Some(status));
        }
        // A terminal sends Ctrl-C to the command as well: its end is awaited in any case.
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn record(args: &mut Args, disks: &[Disk], output: Output) -> anyhow::Result<ExitCode> {
    // A table that is only summed up is removed at the end.
    let temporary = match (&args.out, args.by) {
        (None, Some(_)) => Some(tempfile::tempdir().context("cannot make a temporary folder")?),
        _ => None,
    };
    if let Some(folder) = &temporary {
        args.out = Some(folder.path().join("block.parquet"));
    }
    let args = &*args;
    let scratch = args.out.as_deref().map_or_else(std::env::temp_dir, folder_of);
    let epoch_ns = monotonic_ns();
    let file_collector = match &args.files {
        Some(_) => Some(files::Collector::start(&scratch)?),
        None => None,
    };
    if let (Some(collector), Some(pid)) = (&file_collector, args.pid) {
        collector.follow(pid)?;
    }
    let running = if disks.is_empty() { None } else { Some(start(args, disks, &scratch)?) };
    let ended = measure(args, file_collector.as_ref());
    let mut report = json!({"epoch_monotonic_ns": epoch_ns});
    let mut lines = Vec::new();
    if let Some(running) = running {
        let reconciliation = write_block(args, disks, running, epoch_ns)?;
        lines.push(reconciliation.summary());
        if let (Some(by), Some(out)) = (args.by, &args.out) {
            let groups = by::groups(out, by)?;
            report["by"] = groups.json();
            lines.push(groups.text().trim_end().to_owned());
        }
        if !reconciliation.agrees {
            eprintln!("warning: the recording and the kernel's statistics differ; see --json for how");
        }
        report["block"] = serde_json::to_value(&reconciliation)?;
    }
    if let (Some(collector), Some(path)) = (file_collector, &args.files) {
        let path = if path.parent() == Some(Path::new("")) && args.out.is_some() {
            scratch.join(path)
        } else {
            path.clone()
        };
        let capture = collector.stop()?;
        let counters = capture.counters();
        let rows = capture.write(&path, epoch_ns)?;
        lines.push(format!("files: {rows} rows, {} lost", counters.lost()));
        report["files"] = json!({"rows": rows, "counters": counters, "lost": counters.lost()});
    }
    let status = ended?;
    if let Some(status) = status {
        report["command"] = json!({"code": status.code(), "success": status.success()});
    }
    if output.is_json() {
        output::line(&report)?;
    } else {
        lines.iter().for_each(|line| println!("{line}"));
    }
    match status.filter(|status| !status.success()) {
        Some(status) => Err(anyhow::anyhow!("the command failed: {status}")),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Writes the table, and the blktrace files if requested.
fn write_block(
    args: &Args,
    disks: &[Disk],
    running: Running,
    epoch_ns: i64,
) -> anyhow::Result<weir_collectors::Reconciliation> {
    let mut raw: Option<Vec<Record>> = None;
    let recorded = match running {
        Running::Bpf(collector) => {
            let capture = collector.stop()?;
            // The common case needs no rows in memory.
            if let (Some(out), None) = (&args.out, &args.blktrace) {
                return Ok(capture.write(out, epoch_ns)?);
            }
            let (rows, reconciliation) = capture.into_rows(epoch_ns)?;
            Recorded { rows, reconciliation }
        }
        Running::Ftrace(collector) => {
            let capture = collector.stop()?;
            if args.blktrace.is_some() {
                raw = Some(capture.records()?);
            }
            capture.into_rows(epoch_ns)?
        }
        Running::Blktrace(collector, _folder) => {
            let capture = collector.stop()?;
            if args.blktrace.is_some() {
                raw = Some(capture.records()?);
            }
            capture.into_rows(epoch_ns)?
        }
    };
    if let Some(prefix) = &args.blktrace {
        let mut records = raw.unwrap_or_else(|| to_blktrace::records(&recorded.rows, disks, epoch_ns));
        write_per_cpu(prefix, &mut records)?;
    }
    if let Some(out) = &args.out {
        let mut table: TableWriter<BlockRequest> = TableWriter::create(out, epoch_ns)?;
        recorded.rows.iter().try_for_each(|row| table.write(row))?;
        table.close()?;
    }
    Ok(recorded.reconciliation)
}

fn watch(args: &Args, disks: &[Disk], output: Output) -> anyhow::Result<ExitCode> {
    let epoch_ns = monotonic_ns();
    let (sender, rows) = channel();
    let options = Options {
        mode: mode(args),
        delivery: Delivery::Live { rows: sender, epoch_ns },
        ..Options::spooled_to(&std::env::temp_dir())
    };
    let collector = block::Collector::start(disks, options).map_err(classify)?;
    let printer = std::thread::spawn(move || print_rows(&rows, output));
    let ended = measure(args, None);
    let reconciliation = collector.stop()?.reconciliation().clone();
    // The collector's end of the channel is gone, so the printer ends when it has printed all.
    let _ = printer.join();
    eprintln!("{}", reconciliation.summary());
    match ended?.filter(|status| !status.success()) {
        Some(status) => Err(anyhow::anyhow!("the command failed: {status}")),
        None => Ok(ExitCode::SUCCESS),
    }
}

fn print_rows(rows: &std::sync::mpsc::Receiver<BlockRequest>, output: Output) {
    use std::io::Write;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut write = |line: String, flush: bool| {
        let written = writeln!(out, "{line}").and_then(|()| if flush { out.flush() } else { Ok(()) });
        // Whoever read has gone.
        if written.is_err() {
            INTERRUPTED.store(true, Ordering::Relaxed);
        }
        written.is_ok()
    };
    let line =
        |row: &BlockRequest| if output.is_json() { live::document(row).to_string() } else { live::line(row) };
    if !output.is_json() && !write(live::header(), true) {
        return;
    }
    let mut pending = rows.recv().ok();
    while let Some(row) = pending {
        let next = rows.try_recv().ok();
        if !write(line(&row), next.is_none()) {
            break;
        }
        pending = next.or_else(|| rows.recv().ok());
    }
}
