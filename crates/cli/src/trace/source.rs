//! Opening a trace as the arguments have it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value, json};
use weir_trace::filter::Sorted;
use weir_trace::{Error, FORMATS, Options, Reader, Table};

use crate::exit::{self, bad_input};
use crate::output::{self, Output};

/// Name of weir's own table among the formats.
const TABLE: &str = "requests";

/// Which trace, and how to read it.
#[derive(clap::Args)]
pub struct Source {
    /// The trace, compressed (gz, bz2, xz, zst) or not; or a requests.parquet
    #[arg(value_name = "FILE")]
    pub path: PathBuf,
    /// Trace format. Default: detected from the content (see `weir trace formats`)
    #[arg(long, value_name = "FORMAT")]
    format: Option<String>,
    /// Option of the format, such as unit=bits (repeatable; see `weir trace formats`)
    #[arg(long = "option", value_name = "KEY=VALUE")]
    options: Vec<String>,
    /// Skip damaged records and count them
    #[arg(long)]
    skip_bad: bool,
    /// Sort by time
    #[arg(long)]
    sort: bool,
    /// Memory for sorting; more goes to temporary files, up to 512 times this
    #[arg(long, value_name = "MIB", default_value_t = 256)]
    sort_memory_mib: usize,
}

/// A trace that has been opened.
pub struct Opened {
    /// Name of its format.
    pub format: &'static str,
    /// Its requests.
    pub reader: Box<dyn Reader>,
}

impl Source {
    /// Opens the trace.
    pub fn open(&self) -> anyhow::Result<Opened> {
        let options = self.options()?;
        let opened = self.opened(&options).map_err(refused)?;
        if !self.sort {
            return Ok(opened);
        }
        let Some(bytes) = self.sort_memory_mib.checked_mul(1 << 20).filter(|bytes| *bytes > 0) else {
            let text = format!("--sort-memory-mib {}: it must be at least 1", self.sort_memory_mib);
            return Err(bad_input(text));
        };
        Ok(Opened { reader: Box::new(Sorted::new(&self.path, opened.reader, bytes)), ..opened })
    }

    fn options(&self) -> anyhow::Result<Options> {
        let mut options =
            Options { format: self.format.clone(), skip_bad: self.skip_bad, ..Options::default() };
        for option in &self.options {
            let Some((key, value)) = option.split_once('=') else {
                return Err(bad_input(format!("--option {option}: it must be KEY=VALUE")));
            };
            options.set(key, value).map_err(|error| bad_input(format!("--option {option}: {error}")))?;
        }
        Ok(options)
    }

    fn opened(&self, options: &Options) -> Result<Opened, Error> {
        let named = self.format.as_deref();
        if named == Some(TABLE) || named.is_none() && Table::is_one(&self.path)? {
            return Ok(Opened { format: TABLE, reader: Box::new(Table::open(&self.path)?) });
        }
        let (format, reader) = weir_trace::open(&self.path, options)?;
        Ok(Opened { format: format.name, reader })
    }
}

/// An error of a trace is bad input; an I/O error of the machine is not.
pub fn refused(error: Error) -> anyhow::Error {
    match &error {
        Error::Io { source, .. }
            if !matches!(
                source.kind(),
                std::io::ErrorKind::NotFound
                    | std::io::ErrorKind::PermissionDenied
                    | std::io::ErrorKind::IsADirectory
                    | std::io::ErrorKind::InvalidData
                    | std::io::ErrorKind::InvalidInput
                    | std::io::ErrorKind::UnexpectedEof
            ) =>
        {
            anyhow::Error::new(error)
        }
        _ => bad_input(error),
    }
}

/// Refuses an output that is the input.
pub fn apart(from: &Path, out: &Path) -> anyhow::Result<()> {
    let same = from.canonicalize().is_ok_and(|from| out.canonicalize().is_ok_and(|out| from == out));
    if same {
        return Err(bad_input(format!("--out {}: it is the trace itself; name another file", out.display())));
    }
    Ok(())
}

/// List trace formats.
#[derive(clap::Args)]
pub struct FormatsArgs {}

pub fn formats(_: FormatsArgs, output: Output) -> anyhow::Result<ExitCode> {
    exit::quiet_on_closed_pipe();
    let of_weir = (TABLE, "weir's own requests.parquet; since the start of the run");
    let formats = || FORMATS.iter().map(|format| (format.name, format.about)).chain([of_weir]);
    if output.is_json() {
        let named = |(name, about): (&str, &str)| json!({"name": name, "description": about});
        let formats: Vec<Value> = formats().map(named).collect();
        let options: Vec<Value> = Options::KEYS.iter().copied().map(named).collect();
        output::document(&json!({"formats": formats, "options": options}))?;
        return Ok(ExitCode::SUCCESS);
    }
    for (name, about) in formats() {
        println!("{name:<18} {about}");
    }
    println!("\nWhat some of them have to be told, with --option KEY=VALUE:");
    for (key, says) in Options::KEYS {
        println!("{key:<18} {says}");
    }
    Ok(ExitCode::SUCCESS)
}
