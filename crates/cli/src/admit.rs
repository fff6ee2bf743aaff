//! `weir admit`: can a disk promise these streams their deadlines?

use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;
use serde_json::{Value, json};
use weir_scheduler::guarantee::{
    Mode, Rejection, Slack, Task, Tightest, Utilisation, rate_monotonic_bound, slack,
};
use weir_specs::Document;
use weir_study::TaskFile;

use crate::exit::{self, bad_input};
use crate::output::{self, Output};

/// Test whether a disk can guarantee the deadlines of periodic streams, and compute the slack.
///
/// The file has a list `tasks` of streams: name, cost_ms, period_ms and, if there are several, streams. A disk
/// does not preempt a request: the test is Jeffay's (non-preemptive EDF), with the slack deltaL of Clockwise.
///
/// Exit codes: 0 admitted, 1 rejected, 2 bad input.
#[derive(clap::Args)]
pub struct Args {
    /// File of tasks; `weir schema tasks` prints its schema.
    tasks: PathBuf,
    /// How the slack deltaL is computed.
    #[arg(long, value_enum, default_value = "exact")]
    mode: ModeName,
}

#[derive(Clone, Copy, ValueEnum)]
enum ModeName {
    /// The least slack over all intervals.
    Exact,
    /// The least slack over intervals up to the longest period, as in the thesis on Clockwise.
    Thesis,
}

pub fn run(args: Args, output: Output) -> anyhow::Result<ExitCode> {
    exit::quiet_on_closed_pipe();
    let document = Document::read(&args.tasks).map_err(bad_input)?;
    let (file, streams) = TaskFile::from_document(&document).map_err(bad_input)?;
    let tasks: Vec<Task> = streams.iter().map(|(_, task)| *task).collect();
    let (mode, mode_name) = match args.mode {
        ModeName::Exact => (Mode::Exact, "exact"),
        ModeName::Thesis => (Mode::Thesis, "thesis"),
    };
    let outcome = slack(&tasks, mode);
    let name_of = |task: usize| streams.get(task).map_or("", |(place, _)| file.tasks[*place].name.as_str());
    let utilisation = Utilisation::of(&tasks);
    // More streams never leave more: there is one place from which on nothing fits.
    let fits_to = |count: &usize| slack(&tasks[..*count], mode).is_ok();
    let fit = || (1..=tasks.len()).collect::<Vec<usize>>().partition_point(fits_to);
    if output.is_json() {
        let bound = rate_monotonic_bound(u32::try_from(tasks.len()).unwrap_or(u32::MAX));
        let mut report = json!({
            "file": args.tasks,
            "mode": mode_name,
            "verdict": if outcome.is_ok() { "admitted" } else { "rejected" },
            "streams": tasks.len(),
            "utilisation": utilisation.share(),
            "sum_test": utilisation.fits(),
            "rate_monotonic_bound": bound,
        });
        match &outcome {
            Ok(slack) => report["slack"] = slack.map_or(Value::Null, slack_json),
            Err(rejection) => {
                let fit = fit();
                report["rejection"] = rejection_json(rejection, name_of);
                report["rejection"]["first_streams_that_fit"] = json!(fit);
                report["rejection"]["first_that_does_not"] = json!(name_of(fit));
            }
        }
        output::document(&report)?;
    } else {
        let verdict = if outcome.is_ok() { "admitted" } else { "rejected" };
        println!("{verdict}: {} streams, utilisation {:.4}", tasks.len(), utilisation.share());
        match &outcome {
            Ok(slack) => slack.iter().for_each(print_slack),
            Err(rejection) => {
                let fit = fit();
                println!("  {}", reason(rejection, name_of));
                println!(
                    "  the first {fit} streams of the file can be admitted, not the next one, of `{}`",
                    name_of(fit)
                );
            }
        }
    }
    Ok(if outcome.is_ok() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

fn print_slack(slack: &Slack) {
    let line = |name: &str, tightest: Tightest, what: &str| {
        println!(
            "  {name:<8}{:>14.6} ms at L = {:.6} ms, {what}",
            ms(tightest.slack_ns),
            ms(tightest.interval_ns)
        );
    };
    line("deltaLm", slack.in_order, "all in the order of deadlines");
    match slack.out_of_order {
        Some(out) => line("deltaLn", out, "when one that is due later has just been begun"),
        None => println!(
            "  {:<8}{:>14}    no request is ever begun before others that are due earlier",
            "deltaLn", "-"
        ),
    }
    let at_least = if slack.is_exact { "" } else { " at least: there are too many intervals to look at" };
    println!("  {:<8}{:>14.6} ms{at_least}", "deltaL", ms(slack.slack_ns()));
}

fn reason<'a>(rejection: &Rejection, name_of: impl Fn(usize) -> &'a str) -> String {
    match rejection {
        Rejection::Overload { utilisation } => {
            format!("overload: {:.6} more than the disk has is asked for", utilisation.share() - 1.0)
        }
        Rejection::Blocked { task, interval_ns, shortfall_ns } => format!(
            "blocked: a request of `{}` that was just begun leaves an interval of L = {:.6} ms short by {:.6} ms for \
             those that are due within it",
            name_of(*task),
            ms(*interval_ns),
            ms(*shortfall_ns),
        ),
        Rejection::Undecided { .. } => format!("undecided: {rejection}"),
    }
}

fn slack_json(slack: Slack) -> Value {
    let tightest = |of: Tightest| json!({"slack_ns": of.slack_ns, "interval_ns": of.interval_ns});
    json!({
        "deltaL_ns": slack.slack_ns(),
        "deltaLm": tightest(slack.in_order),
        "deltaLn": slack.out_of_order.map(tightest),
        "is_exact": slack.is_exact,
    })
}

fn rejection_json<'a>(rejection: &Rejection, name_of: impl Fn(usize) -> &'a str) -> Value {
    match rejection {
        Rejection::Overload { utilisation } => {
            json!({"reason": "overload", "excess_utilisation": utilisation.share() - 1.0})
        }
        Rejection::Blocked { task, interval_ns, shortfall_ns } => json!({
            "reason": "blocked",
            "task": name_of(*task),
            "interval_ns": interval_ns,
            "shortfall_ns": shortfall_ns,
        }),
        Rejection::Undecided { points } => json!({"reason": "undecided", "intervals": points}),
    }
}
