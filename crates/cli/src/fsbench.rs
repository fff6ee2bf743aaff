//! `weir fsbench`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use weir_fsbench::{Cold, Error, Latency, Options, Report, Verified, bench};

use crate::exit::bad_input;
use crate::output::Output;

/// Measure the time to open and read files, cached and uncached.
///
/// Writes files of each size to a new folder in DIR, which is removed at the end. Each read is of a whole file and is
/// compared with the written bytes. The kernel's list of cached pages, before and after, shows whether it was cached.
/// Times are medians of the repetitions' medians, in microseconds, with the range of these medians.
#[derive(clap::Args)]
pub struct Args {
    /// A folder on the file system
    dir: PathBuf,
    /// Sizes of files: bytes, or with KiB or MiB
    #[arg(long, value_delimiter = ',', value_parser = weir_study::size_bytes, default_value = "4KiB,64KiB,256KiB,1MiB")]
    sizes: Vec<u64>,
    /// Repetitions
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    repeat: u32,
    /// Files of each size: as many uncached reads a repetition
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    files: u32,
    /// How pages are dropped: fadvise, all caches of the host, or remount
    #[arg(long, value_enum, default_value_t)]
    cold: ColdName,
    /// Shell command that unmounts the file system of DIR and mounts it again
    #[arg(long, value_name = "COMMAND", required_if_eq("cold", "remount"))]
    remount_command: Option<String>,
    /// Write the report as JSON, such as fsbench.json
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, Default, clap::ValueEnum)]
enum ColdName {
    #[default]
    Fadvise,
    Drop,
    Remount,
}

pub fn run(args: Args, output: Output) -> anyhow::Result<ExitCode> {
    let cold = match args.cold {
        ColdName::Fadvise => Cold::Fadvise,
        ColdName::Drop => Cold::Drop,
        ColdName::Remount => Cold::Remount(args.remount_command.unwrap_or_default()),
    };
    let (sizes_bytes, repetitions, files) = (args.sizes, args.repeat, args.files);
    let options = Options { sizes_bytes, repetitions, files, cold, ..Options::default() };
    let stop = crate::run::stop_on_signal();
    let report = measured(&args.dir, &options, &stop)?;
    let text = serde_json::to_string_pretty(&report)? + "\n";
    if let Some(out) = &args.out {
        std::fs::write(out, &text).with_context(|| format!("cannot write {}", out.display()))?;
    }
    if output.is_json() {
        print!("{text}");
    } else {
        print(&report);
    }
    Ok(if stop.load(Ordering::Relaxed) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn measured(dir: &std::path::Path, options: &Options, stop: &Arc<AtomicBool>) -> anyhow::Result<Report> {
    bench(dir, options, stop).map_err(|error| match error {
        Error::Refused(_) => bad_input(error),
        _ => anyhow::Error::new(error),
    })
}

fn print(report: &Report) {
    let asked = report.asked_by.map_or("not known".to_owned(), |method| format!("{method:?}").to_lowercase());
    println!(
        "{}: {} at {}; cold by {}; what is cached by {asked}; us: median (range of {} repetitions) 95th percentile",
        report.folder.display(),
        report.file_system.fs_type,
        report.file_system.mounted_at.display(),
        report.cold.name(),
        report.repetitions
    );
    println!("{:>10}  {:<38}{:<38}read, uncached", "bytes", "open and close", "read, cached");
    for size in &report.sizes {
        let columns = [&size.open_close, &size.read_cached, &size.read_uncached].map(column);
        println!("{:>10}  {:<38}{:<38}{}", size.size_bytes, columns[0], columns[1], columns[2]);
    }
    let mut said: Vec<&str> = Vec::new();
    for latency in report.sizes.iter().flat_map(|size| [&size.read_cached, &size.read_uncached]) {
        if !latency.reason.is_empty() && !said.contains(&latency.reason.as_str()) {
            said.push(&latency.reason);
        }
    }
    said.extend((!report.note.is_empty()).then_some(report.note.as_str()));
    said.iter().for_each(|line| println!("* {line}"));
}

fn column(latency: &Latency) -> String {
    let Some(found) = &latency.summary else { return "none".to_owned() };
    let doubt = if latency.verified == Verified::NotKnown { " not known" } else { "" };
    let [low, high] = found.range_us;
    format!("{:.1} ({low:.1}-{high:.1}) {:.1}{doubt}", found.median_us, found.quantiles_us[3])
}
