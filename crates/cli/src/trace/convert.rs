//! `weir trace convert`.

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;
use weir_trace::filter::SinceFirst;
use weir_trace::write;

use super::source::{Source, apart, refused};
use super::written::{self, Classes};

use crate::output::{self, Output};

/// Write a trace in another format, with times since its first request.
///
/// parquet is weir's requests.parquet, which `weir replay` sends; weir is weir's own format for long
/// traces, which holds all that a trace has; iolog is fio's I/O log, version 3 (times in us); blktrace is one stream, OUT.blktrace.0; disksim is DiskSim's ASCII format. What the
/// format cannot hold is counted.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    source: Source,
    /// Format to write: parquet, weir, iolog, blktrace or disksim
    #[arg(long, value_name = "FORMAT")]
    to: String,
    /// File to write
    #[arg(long, value_name = "OUT")]
    out: PathBuf,
    #[command(flatten)]
    classes: Classes,
}

pub fn run(args: Args, output: Output) -> anyhow::Result<ExitCode> {
    let target = written::target("--to", &args.to)?;
    apart(&args.source.path, &args.out)?;
    let mut reader = SinceFirst::new(&args.source.path, args.source.open()?.reader);
    let writer = target.create(&args.out, &args.classes.class()).map_err(refused)?;
    let found = write::all(&mut reader, writer).map_err(refused)?;
    if output.is_json() {
        let report =
            json!({"files": [written::document(&found)?], "source": written::document_of_source(&reader)});
        output::document(&report)?;
        return Ok(ExitCode::SUCCESS);
    }
    written::say(&found);
    written::say_of_source(&reader);
    Ok(ExitCode::SUCCESS)
}
