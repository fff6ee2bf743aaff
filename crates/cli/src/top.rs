//! `weir top`: what becomes of each class of a running server.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use weir_blockserver::SchedulingStats;

use crate::class::{Which, refused};
use crate::exit;
use crate::output::{self, Output};

/// Watch the classes of a running block server: rate, share, queue, deadline misses, tokens or tags.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    which: Which,
    /// Print once, and end.
    #[arg(long)]
    once: bool,
    /// Seconds between updates.
    #[arg(long, value_name = "S", default_value_t = 1.0, value_parser = interval)]
    interval: f64,
}

fn interval(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(s) if (0.1..=3600.0).contains(&s) => Ok(s),
        _ => Err("give a time from 0.1 to 3600 s".to_owned()),
    }
}

pub fn run(args: Args, output: Output) -> anyhow::Result<ExitCode> {
    exit::quiet_on_closed_pipe();
    let mut control = args.which.connect()?;
    loop {
        let stats = control.live().map_err(refused)?;
        if output.is_json() {
            output::line(&stats)?;
        } else {
            if !args.once && std::io::stdout().is_terminal() {
                // Home, and clear what is below.
                print!("\x1b[H\x1b[J");
            }
            print!("{}", table(&stats));
        }
        std::io::stdout().flush()?;
        if args.once {
            return Ok(ExitCode::SUCCESS);
        }
        thread::sleep(Duration::from_secs_f64(args.interval));
    }
}

fn table(stats: &SchedulingStats) -> String {
    let mut text = format!(
        "{}: up {:.0} s, {} requests under way\n{:<16}{:>10}{:>10}{:>8}{:>8}{:>10}{:>11}{:>11}  account\n",
        stats.policy,
        stats.uptime_s,
        stats.outstanding,
        "class",
        "req/s",
        "MB/s",
        "share",
        "queue",
        "misses",
        "mean ms",
        "p99 ms"
    );
    for class in &stats.classes {
        let account: Vec<String> =
            class.accounts.iter().map(|(name, value)| format!("{name} {value:.0}")).collect();
        let _ = writeln!(
            text,
            "{:<16}{:>10.0}{:>10.2}{:>8.3}{:>8}{:>10}{:>11.3}{:>11.3}  {}",
            class.name,
            class.requests_per_s,
            class.bytes_per_s / 1e6,
            class.share,
            class.queue,
            class.misses,
            class.mean_ms,
            class.p99_ms,
            account.join(", ")
        );
    }
    for (number, head) in stats.heads.iter().enumerate() {
        let slack = head.slack_ms.map_or(String::new(), |ms| format!(", deltaL {ms:.3} ms"));
        let account: Vec<String> =
            head.accounts.iter().map(|(name, value)| format!(", {name} {value:.3}")).collect();
        let _ = writeln!(
            text,
            "head {number}: {} wait, {} in service{slack}{}",
            head.waiting,
            head.in_service,
            account.concat()
        );
    }
    text
}
