//! Testbed rules: devices, file systems, control groups and clocks were as the study says, before and after.

use weir_blockserver::Stats;
use weir_study::{FileSystem, Run};

use super::facts::Facts;
use super::rule::{RuleOutcome, Status, at_most, outcome};
use super::transit::Transit;
use crate::daemon::site::{self, Findings};

/// Limit on median error of a modelled disk: one that answers later than its model is another disk.
const MODEL_MEDIAN_LIMIT_NS: f64 = 250_000.0;
pub(super) const MODEL_P99_LIMIT_NS: f64 = 6_000_000.0;
/// Limit on the share of bytes read that did not come from the device; files that share a block explain this much.
const CACHED_SHARE_LIMIT: f64 = 0.02;
/// Limit on the step of the wall clock: a larger one means that the clock was set.
const CLOCK_STEP_LIMIT_NS: f64 = 50_000_000.0;
/// Limit on mean transit. With idle CPUs io_uring, block layer, loop device and FUSE take 0.2 to 0.3 ms.
const WAY_LIMIT_MS: f64 = 1.0;

pub(crate) fn loss(facts: &Facts<'_>) -> RuleOutcome {
    match &facts.loss {
        None => outcome("R-LOSS", Status::Skipped, "the study captures no block requests, or has no disk"),
        Some(Ok((share, words))) => at_most("R-LOSS", *share, facts.allowed_loss, words),
        Some(Err(why)) if facts.capture_required => outcome("R-LOSS", Status::Invalid, why),
        Some(Err(why)) => outcome("R-LOSS", Status::Skipped, why),
    }
}

pub(super) fn cached(facts: &Facts<'_>) -> RuleOutcome {
    if let Some(why) = facts.cached_by_right {
        return outcome("R-CACHED", Status::Skipped, why);
    }
    match facts.read_bytes {
        None => outcome("R-CACHED", Status::Skipped, "the file system has no block device"),
        Some((0, _)) => outcome("R-CACHED", Status::Skipped, "nothing was read"),
        Some((application, device)) => {
            let missing = 1.0 - (device as f64 / application as f64).min(1.0);
            let reason = format!("{device} of {application} bytes read came from the devices");
            at_most("R-CACHED", missing, CACHED_SHARE_LIMIT, &reason)
        }
    }
}

pub(super) fn network(facts: &Facts<'_>) -> RuleOutcome {
    let Some((written, sent)) = facts.written else {
        return outcome(
            "R-NETWORK",
            Status::Skipped,
            "the run mounts no network file system: it is local, or was mounted before",
        );
    };
    if written == 0 {
        return outcome(
            "R-NETWORK",
            Status::Skipped,
            "nothing was written: the files are from an earlier run",
        );
    }
    let reason = format!("{sent} bytes left the client's host for {written} bytes of files written");
    let status = if sent >= written { Status::Valid } else { Status::Invalid };
    RuleOutcome {
        value: Some(sent as f64),
        limit: Some(written as f64),
        ..outcome("R-NETWORK", status, reason)
    }
}

pub(super) fn sites(facts: &Facts<'_>) -> RuleOutcome {
    if facts.sites.is_empty() {
        return outcome("R-SITE", Status::Skipped, "the run has no site");
    }
    let tell = |site: &Findings| match &site.first {
        Some(first) => format!("{}: {} violations, the first {first}", site.site, site.violations),
        None => format!(
            "{}: {} rules hold; {} of {} acknowledged writes were found",
            site.site, site.rules, site.found, site.acknowledged
        ),
    };
    let reason = facts.sites.iter().map(tell).collect::<Vec<_>>().join("; ");
    let lost = |site: &Findings| site.acknowledged.saturating_sub(site.found).max(site.violations);
    at_most("R-SITE", facts.sites.iter().map(lost).sum::<u64>() as f64, 0.0, &reason)
}

pub(super) fn model(facts: &Facts<'_>) -> RuleOutcome {
    let timed: Vec<&(String, Stats)> =
        facts.models.iter().filter(|(_, stats)| stats.service_error.count > 0).collect();
    let Some((name, worst)) = timed.iter().max_by_key(|(_, stats)| stats.service_error.p99_ns) else {
        return outcome("R-MODEL", Status::Skipped, "no device is modelled with service times");
    };
    let error = &worst.service_error;
    let reason = format!(
        "device {name}: requests completed later than the disk model says: median {:.3} ms, 99th percentile {:.3} ms",
        error.median_ns as f64 / 1e6,
        error.p99_ns as f64 / 1e6
    );
    let late = error.median_ns as f64 > MODEL_MEDIAN_LIMIT_NS || error.p99_ns as f64 > MODEL_P99_LIMIT_NS;
    let status = if late { Status::Invalid } else { Status::Valid };
    let (value, limit) = (Some(error.p99_ns as f64), Some(MODEL_P99_LIMIT_NS));
    RuleOutcome { value, limit, ..outcome("R-MODEL", status, reason) }
}

pub(super) fn policy(facts: &Facts<'_>) -> RuleOutcome {
    if facts.schedulers.is_empty() {
        return outcome("R-POLICY", Status::Skipped, "no device has one of weir's schedulers in front of it");
    }
    let words = |broken: bool| {
        let told = facts.schedulers.iter().filter(|(_, found)| found.is_err() == broken);
        let words = told.map(|(device, found)| {
            let (Ok(words) | Err(words)) = found;
            format!("device {device}: {words}")
        });
        words.collect::<Vec<_>>().join("; ")
    };
    let (kept, broken) = (words(false), words(true));
    match broken.is_empty() {
        true => outcome("R-POLICY", Status::Valid, kept),
        false => outcome("R-POLICY", Status::Invalid, broken),
    }
}

/// R-WHOLE: where the kernel splits requests, a scheduler orders other requests than the clients sent.
pub(super) fn whole(facts: &Facts<'_>) -> RuleOutcome {
    if facts.transits.is_empty() {
        return outcome("R-WHOLE", Status::Skipped, "no class is under one of weir's schedulers");
    }
    if !facts.is_raw {
        return outcome("R-WHOLE", Status::Skipped, "a file system may place one file in many extents");
    }
    let cut = facts.transits.iter().find_map(|(class, way)| match way {
        Transit::Cut { asked, came } => Some((class, asked, came)),
        Transit::Whole { .. } => None,
    });
    let Some((class, asked, came)) = cut else {
        return outcome("R-WHOLE", Status::Valid, "the kernel split no request");
    };
    let words = format!(
        "the kernel split {asked} requests of class {class} into {came}. Use requests no larger than the device's limit \
         (queue/max_sectors_kb)"
    );
    at_most("R-WHOLE", *came as f64, *asked as f64, &words)
}

/// R-WAY: a scheduler cannot order requests that wait outside it, for a CPU or for a tag of the device.
pub(super) fn way(facts: &Facts<'_>) -> RuleOutcome {
    let whole = facts.transits.iter().filter_map(|(class, way)| match way {
        Transit::Whole { least_ms, most_ms } => Some((class, *least_ms, *most_ms)),
        Transit::Cut { .. } => None,
    });
    let Some((class, least_ms, most_ms)) = whole.max_by(|a, b| a.1.total_cmp(&b.1)) else {
        return outcome(
            "R-WAY",
            Status::Skipped,
            "no class is under one of weir's schedulers with requests that the kernel did not split",
        );
    };
    let transit_ms = match least_ms < most_ms {
        false => format!("{most_ms:.3} ms"),
        true => format!("{:.3} to {most_ms:.3} ms", least_ms.max(0.0)),
    };
    let words = format!(
        "mean transit of class {class} between client and block server: {transit_ms}, besides queueing and service time in the server"
    );
    at_most("R-WAY", least_ms, WAY_LIMIT_MS, &words)
}

pub(crate) fn clock(facts: &Facts<'_>) -> RuleOutcome {
    let reason = format!("the wall clock moved {:.3} ms against CLOCK_MONOTONIC", facts.clock_step_ns / 1e6);
    at_most("R-CLOCK", facts.clock_step_ns.abs(), CLOCK_STEP_LIMIT_NS, &reason)
}

pub(super) fn state(facts: &Facts<'_>) -> RuleOutcome {
    match facts.state.first() {
        Some(first) => {
            outcome("R-STATE", Status::Invalid, format!("the state differs from the study: {first}"))
        }
        None => outcome("R-STATE", Status::Valid, "mounts and queues were as set, before and after"),
    }
}

pub(super) fn controls(facts: &Facts<'_>) -> RuleOutcome {
    match &facts.controls {
        None => outcome("R-CONTROL", Status::Skipped, "no class has a control group"),
        Some(Ok(words)) => outcome("R-CONTROL", Status::Valid, words),
        Some(Err(problem)) => outcome("R-CONTROL", Status::Invalid, problem),
    }
}

/// Why caches may answer reads of a run (R-CACHED); `None` if the devices must.
pub(crate) fn cached_by_right(run: &Run, filesystem: &FileSystem) -> Option<&'static str> {
    if run.access.is_some() {
        // Client and servers drop the files from their caches before each uncached read.
        None
    } else if site::all(run).next().is_some() {
        Some("a database caches its data")
    } else if run.settings.buffered {
        Some("files are read through the page cache")
    } else if filesystem.mounted {
        Some("the servers of the file system are not part of the run")
    } else if filesystem.network.is_some() {
        Some("servers read their disks through the page cache")
    } else {
        None
    }
}
