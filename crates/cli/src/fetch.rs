//! `weir trace list` and `weir trace fetch`: public traces, and how to get them.

mod download;

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use weir_trace::catalog::{Catalog, Entry, Get};

use crate::exit::{self, bad_input};
use crate::output::{self, Output, WrittenFile};
use download::{Download, Failure, Progress};

/// List public traces and how to get them.
#[derive(clap::Args)]
pub struct ListArgs {
    /// Read this list instead of the built-in one (the same fields as traces/catalog.yml).
    #[arg(long, value_name = "FILE")]
    catalog: Option<PathBuf>,
}

/// Download a public trace, or print how to get it.
///
/// The same command resumes an interrupted download. A file appears under its name
/// only when it is whole and its checksum, where one is known, is right.
#[derive(clap::Args)]
pub struct Args {
    /// Name of the trace (`weir trace list`).
    name: String,
    /// Folder to put it into; made if it is not there.
    #[arg(long, value_name = "DIR", default_value = ".")]
    to: PathBuf,
    /// Read this list instead of the built-in one, such as that of a mirror.
    #[arg(long, value_name = "FILE")]
    catalog: Option<PathBuf>,
}

fn catalog(file: Option<&Path>) -> anyhow::Result<Catalog> {
    match file {
        Some(file) => Catalog::read(file),
        None => Catalog::built_in(),
    }
    .map_err(bad_input)
}

/// Name, description and JSON of each trace of a list.
pub fn listed(catalog: &Catalog) -> Vec<(String, String, serde_json::Value)> {
    let describe = |entry: &Entry| {
        let text = format!(
            "{:7}  {:>9}  {}",
            entry.get.word(),
            entry.size_bytes.map_or("-".into(), size),
            entry.about
        );
        (entry.name.clone(), text, json!(entry))
    };
    catalog.entries().iter().map(describe).collect()
}

/// Bytes in the unit that suits them.
fn size(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} B"),
        10_000..10_000_000 => format!("{} kB", bytes / 1000),
        10_000_000..10_000_000_000 => format!("{} MB", bytes / 1_000_000),
        _ => format!("{} GB", bytes / 1_000_000_000),
    }
}

pub fn list(args: ListArgs, output: Output) -> anyhow::Result<ExitCode> {
    exit::quiet_on_closed_pipe();
    let rows = listed(&catalog(args.catalog.as_deref())?);
    if output.is_json() {
        let rows: Vec<_> = rows.into_iter().map(|(_, _, value)| value).collect();
        output::document(&rows)?;
    } else {
        let width = rows.iter().map(|(name, _, _)| name.len()).max().unwrap_or(0);
        for (name, text, _) in &rows {
            println!("{name:width$}  {text}");
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub fn run(args: Args, output: Output) -> anyhow::Result<ExitCode> {
    let catalog = catalog(args.catalog.as_deref())?;
    let entry = catalog.find(&args.name).map_err(bad_input)?;
    let (url, sha256) = match &entry.get {
        Get::Fetch { url, sha256 } => (url, sha256.as_deref()),
        other => {
            eprintln!("{}", by_hand(entry, other));
            return Ok(ExitCode::FAILURE);
        }
    };
    let name = entry.file_name().context("its address names no file")?;
    std::fs::create_dir_all(&args.to)
        .map_err(|error| bad_input(format!("--to {}: {error}", args.to.display())))?;
    let file = args.to.join(name);
    let download = Download { url, sha256, size_bytes: entry.size_bytes, file: &file };
    let mut bar = Bar::new(name);
    match download.run(&mut bar) {
        Ok(done) => {
            bar.clear();
            let checked = if sha256.is_some() { "checksum right" } else { "no checksum known" };
            let how = if done.was_there { "is there already" } else { "downloaded" };
            let mut text = format!(
                "{}: {how}, {} bytes, {checked}\n  licence: {}\n  cite: {}",
                file.display(),
                done.size_bytes,
                entry.licence,
                entry.citation
            );
            if let Some(format) = &entry.format {
                let options: String =
                    entry.options.iter().map(|(key, value)| format!(" --option {key}={value}")).collect();
                text += &format!("\n  read it with --format {format}{options}");
            }
            let document = json!({
                "changed": !done.was_there,
                "checksum": if sha256.is_some() { "right" } else { "unknown" },
                "files": [WrittenFile::at(&file)?],
                "trace": entry,
            });
            output.result(&document, text)?;
            Ok(ExitCode::SUCCESS)
        }
        Err(failure) => {
            bar.clear();
            let advice = match (&failure, &entry.stand_in) {
                (Failure::Unreachable { .. } | Failure::Refused { .. }, Some(workload)) => format!(
                    "\n  without it: workload `{workload}` resembles it and needs no network \
                     (weir generate {workload} --out F)"
                ),
                _ => String::new(),
            };
            Err(anyhow::anyhow!("{}: {failure}{advice}", entry.name))
        }
    }
}

/// What to do where nothing can be downloaded.
fn by_hand(entry: &Entry, get: &Get) -> String {
    let way = match get {
        Get::Form { page } => format!(
            "{}: has to be fetched by hand: accept its terms or fill in the form at {page}",
            entry.name
        ),
        Get::Request(whom) => format!("{}: has to be requested by hand: {whom}", entry.name),
        Get::Fetch { url, .. } => format!("{}: {url}", entry.name),
    };
    let mut text = format!("{way}\n  licence: {}\n  cite: {}", entry.licence, entry.citation);
    if let Some(format) = &entry.format {
        text += &format!("\n  once you have it: --format {format} reads it");
    }
    if let Some(workload) = &entry.stand_in {
        text +=
            &format!("\n  meanwhile: workload `{workload}` resembles it (weir generate {workload} --out F)");
    }
    text
}

/// A bar on a terminal, else a line for each tenth.
struct Bar {
    name: String,
    bar: ProgressBar,
    tenths: u64,
}

impl Bar {
    fn new(name: &str) -> Self {
        Bar { name: name.to_owned(), bar: ProgressBar::hidden(), tenths: 0 }
    }

    fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

impl Progress for Bar {
    fn begin(&mut self, from_bytes: u64, total_bytes: Option<u64>) {
        if std::io::stderr().is_terminal() {
            let style =
                ProgressStyle::with_template("{msg} {bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta}");
            self.bar = ProgressBar::new(total_bytes.unwrap_or(0))
                .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
                .with_message(self.name.clone());
        } else {
            let total = total_bytes.map_or_else(String::new, |total| format!(" of {}", size(total)));
            let from =
                if from_bytes > 0 { format!(", going on after {from_bytes} bytes") } else { String::new() };
            eprintln!("{}: downloading{total}{from}", self.name);
            self.tenths = total_bytes.map_or(0, |total| from_bytes * 10 / total.max(1));
        }
    }

    fn at(&mut self, bytes: u64, total_bytes: Option<u64>) {
        self.bar.set_position(bytes);
        let Some(total) = total_bytes.filter(|_| self.bar.is_hidden()) else { return };
        let tenths = bytes.saturating_mul(10) / total.max(1);
        // A line for each tenth of what takes a while only.
        if tenths > self.tenths && total > 10_000_000 {
            eprintln!("{}: {} % ({bytes} bytes)", self.name, tenths * 10);
        }
        self.tenths = self.tenths.max(tenths);
    }

    fn broken(&mut self, bytes: u64, reason: &str) {
        self.bar.suspend(|| eprintln!("{}: broke off after {bytes} bytes ({reason}); going on", self.name));
    }
}
