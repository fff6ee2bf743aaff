//! The `weir` binary: argument parsing and wiring, nothing else.

mod admit;
mod analysis;
mod browse;
mod cgroup;
mod check;
mod class;
mod clean;
mod cluster;
mod collect;
mod completions;
mod controllers;
mod coordination;
mod device;
mod disks;
mod doctor;
mod documents;
mod exit;
mod fetch;
mod fsbench;
mod gather;
mod generate;
mod help;
mod init;
mod interrupts;
mod join;
mod list;
mod memory;
mod needs;
mod network;
mod observe;
mod output;
mod plan;
mod plan_file;
mod project;
mod queue;
mod replay;
mod run;
mod schema;
mod serve;
mod service;
mod settings;
mod shard;
mod simulate;
mod site;
mod state;
mod top;
mod trace;
mod verify;
mod wanted;
mod with;
mod workload;

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

/// A storage quality-of-service research harness.
///
/// Exit codes: 0 done, 1 the work failed, 2 bad input (nothing was touched), 3 some runs are invalid.
#[derive(Parser)]
#[command(name = "weir", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Admit(admit::Args),
    #[command(alias = "attend")]
    Observe(observe::Args),
    Browse(browse::Args),
    Cgroup(cgroup::Args),
    Documents(documents::Args),
    Check(check::Args),
    Class(class::Args),
    Network(network::Args),
    Plan(plan::Args),
    Queue(queue::Args),
    Schema(schema::Args),
    List(list::Args),
    Gather(gather::Args),
    Device(device::Args),
    Disks(disks::Args),
    Generate(generate::Args),
    Run(run::Args),
    Join(join::Args),
    Clean(clean::Args),
    Cluster(cluster::Args),
    Serve(serve::Args),
    #[command(visible_alias = "daemon")]
    Service(service::Args),
    Simulate(simulate::Args),
    Site(site::Args),
    Replay(replay::Args),
    Collect(collect::Args),
    Controllers(controllers::Args),
    Fsbench(fsbench::Args),
    Top(top::Args),
    Trace(trace::Args),
    Verify(verify::Args),
    Workload(workload::Args),
    Init(init::Args),
    Doctor(doctor::Args),
    Completions(completions::Args),
    Man(completions::ManArgs),
    /// Print the results of a study as tables
    #[command(disable_help_flag = true)]
    Summary(analysis::Args),
    /// Write one self-contained page for each study
    #[command(disable_help_flag = true)]
    Report(analysis::Args),
    /// Show a study while it runs: progress, time left, effects, validity
    #[command(disable_help_flag = true)]
    Watch(analysis::Args),
    /// Show progress of studies and figures of block servers to Prometheus
    #[command(disable_help_flag = true)]
    Exporter(analysis::Args),
    /// Compare two results of one design, such as of two kernels
    #[command(disable_help_flag = true)]
    Compare(analysis::Args),
    /// Print the repetitions that show a change of 5, 10 and 20 %, and their cost
    #[command(disable_help_flag = true)]
    Power(analysis::Args),
    /// Print how much each factor and interaction explains of a metric
    #[command(disable_help_flag = true)]
    Variation(analysis::Args),
    /// Search for the largest number of clients at which all objectives are attained
    #[command(disable_help_flag = true)]
    Capacity(analysis::Args),
    /// Say whether a study with `precision` needs more repetitions
    #[command(disable_help_flag = true)]
    Precision(analysis::Args),
    /// Write the runs and requests of a study as tables for other tools
    #[command(disable_help_flag = true)]
    Export(analysis::Args),
    /// Write one archive of a study: raw rows, numbers, specifications, environment, provenance
    #[command(disable_help_flag = true)]
    Pack(analysis::Args),
    /// Read what other programs measured (fio, blkparse, biosnoop, elbencho) as runs of a study
    #[command(disable_help_flag = true)]
    Import(analysis::Args),
    /// Compute metrics.json of every valid run
    #[command(disable_help_flag = true)]
    Metrics(analysis::Args),
    /// Run the notebooks, and print the claims of papers
    #[command(disable_help_flag = true)]
    Figures(analysis::Args),
    /// Write one page of all claims of papers
    #[command(disable_help_flag = true)]
    Claims(analysis::Args),
    /// Open the notebooks in JupyterLab, on this machine only
    #[command(disable_help_flag = true)]
    Lab(analysis::Args),
    /// Write one page about a trace
    #[command(disable_help_flag = true)]
    TracePage(analysis::Args),
    /// Commands that only the playbook calls
    #[command(hide = true)]
    Internal,
}

/// The command line with all that is not in the types of the arguments.
fn command() -> clap::Command {
    help::grouped(output::with_json(Cli::command()))
}

fn main() -> ExitCode {
    let matches = command().get_matches();
    let output = output::Output::of(&matches);
    let chosen = match Cli::from_arg_matches(&matches) {
        Ok(cli) => cli.command,
        Err(error) => error.exit(),
    };
    exit::undone_on_closed_pipe(|| match chosen {
        Command::Admit(args) => admit::run(args, output),
        Command::Observe(args) => observe::run(args, output),
        Command::Browse(args) => browse::run(args, output),
        Command::Cgroup(args) => cgroup::run(args),
        Command::Documents(args) => documents::run(args, output),
        Command::Check(args) => check::run(args, output),
        Command::Class(args) => class::run(args, output),
        Command::Network(args) => network::run(args, output),
        Command::Plan(args) => plan::run(args, output),
        Command::Queue(args) => queue::run(args),
        Command::Schema(args) => schema::run(args),
        Command::List(args) => list::run(args, output),
        Command::Device(args) => device::run(args, output),
        Command::Disks(args) => disks::run(args, output),
        Command::Gather(args) => gather::run(args, output),
        Command::Generate(args) => generate::run(args, output),
        Command::Run(args) => run::run(args, output),
        Command::Join(args) => join::run(args, output),
        Command::Clean(args) => clean::run(args, output),
        Command::Cluster(args) => cluster::run(args, output),
        Command::Serve(args) => serve::run(args, output),
        Command::Service(args) => service::run(args, output),
        Command::Simulate(args) => simulate::run(args, output),
        Command::Site(args) => site::run(args, output),
        Command::Replay(args) => replay::run(args, output),
        Command::Collect(args) => collect::run(args, output),
        Command::Controllers(args) => controllers::run(args, output),
        Command::Fsbench(args) => fsbench::run(args, output),
        Command::Top(args) => top::run(args, output),
        Command::Trace(args) => trace::run(args, output),
        Command::Verify(args) => verify::run(args, output),
        Command::Workload(args) => workload::run(args, output),
        Command::Init(args) => init::run(args, output),
        Command::Doctor(args) => doctor::run(args, output),
        Command::Completions(args) => completions::run(&args, output),
        Command::Man(args) => completions::man(&args, output),
        Command::Summary(args) => analysis::run("summary", &args),
        Command::Report(args) => analysis::run("report", &args),
        Command::Watch(args) => analysis::run("watch", &args),
        Command::Exporter(args) => analysis::run("exporter", &args),
        Command::Compare(args) => analysis::run("compare", &args),
        Command::Power(args) => analysis::run("power", &args),
        Command::Variation(args) => analysis::run("variation", &args),
        Command::Capacity(args) => analysis::run("capacity", &args),
        Command::Precision(args) => analysis::run("precision", &args),
        Command::Export(args) => analysis::run("export", &args),
        Command::Pack(args) => analysis::run("pack", &args),
        Command::Import(args) => analysis::run("import", &args),
        Command::Metrics(args) => analysis::run("metrics", &args),
        Command::Figures(args) => analysis::run("figures", &args),
        Command::Claims(args) => analysis::run("claims", &args),
        Command::Lab(args) => analysis::run("lab", &args),
        Command::TracePage(args) => analysis::run("trace-page", &args),
        Command::Internal => {
            command().find_subcommand_mut(help::INTERNAL).map_or(Ok(()), |one| one.print_help())?;
            Ok(ExitCode::SUCCESS)
        }
    })
}
