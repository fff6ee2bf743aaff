//! `weir generate`: the request stream of a workload, as a file that `weir replay` sends.

use std::path::PathBuf;
use std::process::ExitCode;

use weir_records::TableWriter;
use weir_workloads::{Stream, StreamOptions};

use crate::exit::bad_input;
use crate::project::Project;

/// Write the requests of an open-loop workload to a file, without sending them.
#[derive(clap::Args)]
pub struct Args {
    /// Name of the workload.
    workload: String,
    /// File to write (Parquet, the columns of requests.parquet).
    #[arg(long, value_name = "F")]
    out: PathBuf,
    /// Number of clients.
    #[arg(long, default_value_t = 1)]
    clients: u32,
    /// Length of the stream, in seconds.
    #[arg(long, default_value_t = 10.0)]
    duration_s: f64,
    /// Seed; the same seed gives the same requests.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Name of the class; the workload's own if absent.
    #[arg(long)]
    class: Option<String>,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let catalog = Project::find()?.workloads()?;
    let workload = catalog.load(&args.workload).map_err(bad_input)?;
    if !(args.duration_s > 0.0 && args.duration_s < 1e7) || args.clients == 0 {
        return Err(bad_input("--duration-s must be above 0 and --clients at least 1"));
    }
    let options = StreamOptions {
        class: args.class.unwrap_or(args.workload),
        clients: args.clients,
        seed: args.seed,
        duration_ns: (args.duration_s * 1e9) as i64,
        warmup_ns: 0,
        folder: catalog.folder().to_owned(),
    };
    let stream = Stream::new(&workload, options).map_err(bad_input)?;
    let files = stream.files().sizes_bytes().len();
    let total_bytes = stream.files().total_bytes();
    let mut writer = TableWriter::create(&args.out, 0).map_err(bad_input)?;
    for request in stream {
        writer.write(&request)?;
    }
    let rows = writer.close()?;
    println!("{}: {rows} requests to {files} files of {total_bytes} bytes in all", args.out.display());
    Ok(ExitCode::SUCCESS)
}
