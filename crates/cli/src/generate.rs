//! `weir generate`: the request stream of a workload, as a file that `weir replay` sends; or the interactions of a
//! workload of sessions.

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;
use weir_records::TableWriter;
use weir_workload::sessions::{AnyWorkload, SessionModel, SessionStream, SessionWorkload};
use weir_workload::{Stream, StreamOptions, Workload};

use crate::exit::bad_input;
use crate::memory;
use crate::output::{Output, WrittenFile};
use crate::project::Project;

/// Write the requests of a workload to a file, without sending them.
#[derive(clap::Args)]
pub struct Args {
    /// Name of the workload.
    workload: String,
    /// File to write (Parquet): the columns of requests.parquet; of sessions, those of sessions.parquet.
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
    /// Of sessions: time that every answer is taken to need, in milliseconds; 0 if absent.
    #[arg(long)]
    response_ms: Option<f64>,
}

pub fn run(args: Args, output: Output) -> anyhow::Result<ExitCode> {
    let catalog = Project::find()?.workloads()?;
    let workload = catalog.load_any(&args.workload).map_err(bad_input)?;
    if !(args.duration_s > 0.0 && args.duration_s < 1e7) || args.clients == 0 {
        return Err(bad_input("--duration-s must be above 0 and --clients at least 1"));
    }
    let options = StreamOptions {
        class: args.class.clone().unwrap_or_else(|| args.workload.clone()),
        clients: args.clients,
        seed: args.seed,
        duration_ns: (args.duration_s * 1e9) as i64,
        warmup_ns: 0,
        folder: catalog.folder_of(&args.workload).to_owned(),
    };
    let demand = workload.demand(args.clients, args.duration_s);
    if let Some(beyond) = demand.beyond() {
        return Err(bad_input(format!(
            "--clients {} for --duration-s {}: {} makes {beyond}: use fewer clients or less time",
            args.clients, args.duration_s, args.workload
        )));
    }
    memory::fits_here("this stream", demand.memory_bytes as u64, "use fewer --clients")?;
    match workload {
        AnyWorkload::Requests(workload) => requests(&args, &workload, options, output),
        AnyWorkload::Sessions(workload) => interactions(&args, &workload, options, output),
    }
}

fn requests(
    args: &Args,
    workload: &Workload,
    options: StreamOptions,
    output: Output,
) -> anyhow::Result<ExitCode> {
    if args.response_ms.is_some() {
        return Err(bad_input(format!(
            "--response-ms is for sessions, and `{}` is a workload of requests: leave it out",
            workload.name
        )));
    }
    let stream = Stream::new(workload, options).map_err(bad_input)?;
    let files = stream.files().sizes_bytes().len();
    let total_bytes = stream.files().total_bytes();
    let notes = stream.notes().to_vec();
    let mut writer = TableWriter::create(&args.out, 0).map_err(bad_input)?;
    for request in stream {
        writer.write(&request)?;
    }
    let rows = writer.close()?;
    let mut text =
        format!("{}: {rows} requests to {files} files of {total_bytes} bytes in all", args.out.display());
    for note in &notes {
        text += &format!("\n  {note}");
    }
    let document = json!({
        "workload": args.workload,
        "files": [WrittenFile::at(&args.out)?],
        "requests": rows,
        "target_files": files,
        "target_bytes": total_bytes,
        "notes": notes,
    });
    output.result(&document, text)?;
    Ok(ExitCode::SUCCESS)
}

fn interactions(
    args: &Args,
    workload: &SessionWorkload,
    options: StreamOptions,
    output: Output,
) -> anyhow::Result<ExitCode> {
    let response_ms = args.response_ms.unwrap_or(0.0);
    if !(0.0..1e9).contains(&response_ms) {
        return Err(bad_input(format!("--response-ms is {response_ms}; it must be from 0 to 1e9")));
    }
    let model = SessionModel::open(workload, &options.folder).map_err(bad_input)?;
    let mut writer = TableWriter::create(&args.out, 0).map_err(bad_input)?;
    let mut sessions = 0u64;
    for interaction in SessionStream::new(&model, options, (response_ms * 1e6) as i64) {
        sessions += u64::from(interaction.step == 0);
        writer.write(&interaction)?;
    }
    let rows = writer.close()?;
    let text = format!(
        "{}: {rows} interactions in {sessions} sessions of {} clients, each answered after {response_ms} ms",
        args.out.display(),
        args.clients
    );
    let document = json!({
        "workload": args.workload,
        "files": [WrittenFile::at(&args.out)?],
        "interactions": rows,
        "sessions": sessions,
        "clients": args.clients,
        "response_ms": response_ms,
    });
    output.result(&document, text)?;
    Ok(ExitCode::SUCCESS)
}
