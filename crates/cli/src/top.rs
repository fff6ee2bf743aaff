//! `weir top`: what becomes of each class of a running server.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use weir_blockserver::SchedulingStats;

use crate::class::{Which, refused};
use crate::exit;

/// Watch the classes of a running block server: rate, share, queue, deadline misses, tokens or tags.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    which: Which,
    /// Print once, and end.
    #[arg(long)]
    once: bool,
    /// Print JSON, a line each time.
    #[arg(long)]
    json: bool,
    /// Print once in the text format of Prometheus.
    #[arg(long, conflicts_with = "json")]
    prometheus: bool,
    /// With --prometheus: keep writing to this file, for the textfile collector of node_exporter.
    #[arg(long, value_name = "FILE.prom", requires = "prometheus")]
    out: Option<PathBuf>,
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

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    exit::quiet_on_closed_pipe();
    let mut control = args.which.connect()?;
    let is_once = args.once || (args.prometheus && args.out.is_none());
    loop {
        let stats = control.live().map_err(refused)?;
        match (&args.out, args.prometheus, args.json) {
            (Some(file), true, _) => write_whole(file, &prometheus(&stats))?,
            (None, true, _) => print!("{}", prometheus(&stats)),
            (_, _, true) => println!("{}", serde_json::to_string(&stats)?),
            _ => {
                if !is_once && std::io::stdout().is_terminal() {
                    // Home, and clear what is below.
                    print!("\x1b[H\x1b[J");
                }
                print!("{}", table(&stats));
            }
        }
        std::io::stdout().flush()?;
        if is_once {
            return Ok(ExitCode::SUCCESS);
        }
        thread::sleep(Duration::from_secs_f64(args.interval));
    }
}

/// Replaces a file atomically: a reader sees the old or the new content.
fn write_whole(file: &Path, text: &str) -> anyhow::Result<()> {
    let aside = file.with_extension("prom.new");
    std::fs::write(&aside, text).with_context(|| format!("cannot write {}", aside.display()))?;
    std::fs::rename(&aside, file).with_context(|| format!("cannot write {}", file.display()))
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

/// The text format of Prometheus, version 0.0.4.
fn prometheus(stats: &SchedulingStats) -> String {
    let mut text = String::new();
    let mut metric = |name: &str, kind: &str, help: &str, values: &mut dyn Iterator<Item = (String, f64)>| {
        let _ = writeln!(text, "# HELP weir_{name} {help}\n# TYPE weir_{name} {kind}");
        for (labels, value) in values {
            let _ = writeln!(text, "weir_{name}{{{labels}}} {value}");
        }
    };
    // Names of classes are letters, digits, `-` and `_`, which need no escapes.
    macro_rules! of_classes {
        ($name:expr, $kind:expr, $help:expr, $class:ident => $value:expr) => {
            let mut values =
                stats.classes.iter().map(|$class| (format!("class=\"{}\"", $class.name), $value));
            metric($name, $kind, $help, &mut values);
        };
    }
    of_classes!("requests_total", "counter", "Requests done.", class => class.requests as f64);
    of_classes!("bytes_total", "counter", "Bytes of requests done.", class => class.bytes as f64);
    of_classes!("errors_total", "counter", "Requests that failed.", class => class.errors as f64);
    of_classes!("deadline_misses_total", "counter", "Requests done after their deadlines.", class => class.misses as f64);
    of_classes!("queue", "gauge", "Requests that are not done.", class => class.queue as f64);
    of_classes!("share", "gauge", "Part of the bytes of the last second.", class => class.share);
    of_classes!("response_mean_seconds", "gauge", "Mean response time.", class => class.mean_ms / 1e3);
    of_classes!("response_p99_seconds", "gauge", "99th percentile of response time.", class => class.p99_ms / 1e3);
    let mut accounts = stats.classes.iter().flat_map(|class| {
        let labels = |name: &String| format!("class=\"{}\",account=\"{name}\"", class.name);
        class.accounts.iter().map(move |(name, value)| (labels(name), *value))
    });
    metric("class_account", "gauge", "What the policy has in account for a class.", &mut accounts);
    let heads = || stats.heads.iter().enumerate().map(|(number, head)| (format!("head=\"{number}\""), head));
    metric(
        "head_waiting",
        "gauge",
        "Parts of requests that wait.",
        &mut heads().map(|(l, h)| (l, h.waiting as f64)),
    );
    let mut slack = heads().filter_map(|(labels, head)| Some((labels, head.slack_ms? / 1e3)));
    metric("slack_seconds", "gauge", "By how much all promises can be put off (deltaL).", &mut slack);
    let mut accounts = heads().flat_map(|(labels, head)| {
        let with = move |name: &String| format!("{labels},account=\"{name}\"");
        head.accounts.iter().map(move |(name, value)| (with(name), *value))
    });
    metric("head_account", "gauge", "What the policy has in account for all classes.", &mut accounts);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_of_the_text_format() {
        let class = weir_blockserver::ClassStats {
            name: "video".into(),
            requests: 3,
            accounts: [("tokens_kb".to_owned(), 1.5)].into(),
            ..Default::default()
        };
        let head = weir_blockserver::HeadStats { slack_ms: Some(12.5), ..Default::default() };
        let stats = SchedulingStats { classes: vec![class], heads: vec![head], ..SchedulingStats::default() };
        let text = prometheus(&stats);
        assert!(text.contains("weir_requests_total{class=\"video\"} 3\n"), "{text}");
        assert!(text.contains("weir_class_account{class=\"video\",account=\"tokens_kb\"} 1.5\n"), "{text}");
        assert!(text.contains("weir_slack_seconds{head=\"0\"} 0.0125\n"), "{text}");
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (metric, value) = line.rsplit_once(' ').unwrap();
            assert!(metric.starts_with("weir_") && metric.ends_with('}'), "{line}");
            assert!(value.parse::<f64>().is_ok(), "{line}");
        }
    }
}
