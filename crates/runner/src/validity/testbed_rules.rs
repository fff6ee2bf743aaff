//! Rules of what answered: that it was what the study says, and stayed so.

use weir_blockserver::Stats;

use super::{Facts, Ruling, Status, at_most, ruling};
use crate::live::Way;
use crate::site::Findings;

/// A modelled disk that answers later than its model is another disk.
const MODEL_MEDIAN_LIMIT_NS: f64 = 250_000.0;
pub(super) const MODEL_P99_LIMIT_NS: f64 = 6_000_000.0;
/// Reads that never reached the device, as a share of bytes read; sharing of edge blocks explains the rest.
const CACHED_SHARE_LIMIT: f64 = 0.02;
/// A step of the wall clock says that somebody set it.
const CLOCK_STEP_LIMIT_NS: f64 = 50_000_000.0;
/// io_uring, block layer, loop device, FUSE and back take 0.2 to 0.3 ms where processors are free.
const WAY_LIMIT_MS: f64 = 1.0;

pub(crate) fn loss(facts: &Facts<'_>) -> Ruling {
    match &facts.loss {
        None => ruling("R-LOSS", Status::Skipped, "nothing was to be captured at the block layer"),
        Some(Ok((share, words))) => at_most("R-LOSS", *share, facts.allowed_loss, words),
        Some(Err(why)) if facts.capture_required => ruling("R-LOSS", Status::Invalid, why),
        Some(Err(why)) => ruling("R-LOSS", Status::Skipped, why),
    }
}

pub(super) fn cached(facts: &Facts<'_>) -> Ruling {
    if let Some(why) = facts.cached_by_right {
        return ruling("R-CACHED", Status::Skipped, why);
    }
    match facts.read_bytes {
        None => ruling("R-CACHED", Status::Skipped, "no block device lies below"),
        Some((0, _)) => ruling("R-CACHED", Status::Skipped, "nothing was read"),
        Some((application, device)) => {
            let missing = 1.0 - (device as f64 / application as f64).min(1.0);
            let reason = format!("{device} of {application} bytes read came from the devices");
            at_most("R-CACHED", missing, CACHED_SHARE_LIMIT, &reason)
        }
    }
}

pub(super) fn network(facts: &Facts<'_>) -> Ruling {
    let Some((written, sent)) = facts.written else {
        return ruling(
            "R-NETWORK",
            Status::Skipped,
            "no network file system that a run brings up: it is local, or was mounted before",
        );
    };
    if written == 0 {
        return ruling(
            "R-NETWORK",
            Status::Skipped,
            "nothing was written: the files were there from an earlier run",
        );
    }
    let reason = format!("of {written} bytes of files that were written {sent} left the client's host");
    let status = if sent >= written { Status::Valid } else { Status::Invalid };
    Ruling { value: Some(sent as f64), limit: Some(written as f64), ..ruling("R-NETWORK", status, reason) }
}

pub(super) fn sites(facts: &Facts<'_>) -> Ruling {
    if facts.sites.is_empty() {
        return ruling("R-SITE", Status::Skipped, "no site took part");
    }
    let tell = |site: &Findings| match &site.first {
        Some(first) => format!("{}: {} violations, the first {first}", site.site, site.violations),
        None => format!(
            "{}: {} rules hold, of {} acknowledged {} are there",
            site.site, site.rules, site.acknowledged, site.found
        ),
    };
    let reason = facts.sites.iter().map(tell).collect::<Vec<_>>().join("; ");
    let lost = |site: &Findings| site.acknowledged.saturating_sub(site.found).max(site.violations);
    at_most("R-SITE", facts.sites.iter().map(lost).sum::<u64>() as f64, 0.0, &reason)
}

pub(super) fn model(facts: &Facts<'_>) -> Ruling {
    let timed: Vec<&(String, Stats)> =
        facts.models.iter().filter(|(_, stats)| stats.service_error.count > 0).collect();
    let Some((name, worst)) = timed.iter().max_by_key(|(_, stats)| stats.service_error.p99_ns) else {
        return ruling("R-MODEL", Status::Skipped, "no modelled device with service times");
    };
    let error = &worst.service_error;
    let reason = format!(
        "device {name} answered {:.3} ms after its model at the median, {:.3} ms at the 99th percentile",
        error.median_ns as f64 / 1e6,
        error.p99_ns as f64 / 1e6
    );
    let late = error.median_ns as f64 > MODEL_MEDIAN_LIMIT_NS || error.p99_ns as f64 > MODEL_P99_LIMIT_NS;
    let status = if late { Status::Invalid } else { Status::Valid };
    let (value, limit) = (Some(error.p99_ns as f64), Some(MODEL_P99_LIMIT_NS));
    Ruling { value, limit, ..ruling("R-MODEL", status, reason) }
}

pub(super) fn policy(facts: &Facts<'_>) -> Ruling {
    if facts.policies.is_empty() {
        return ruling("R-POLICY", Status::Skipped, "no server with policies stands before a device");
    }
    let words = |broken: bool| {
        let told = facts.policies.iter().filter(|(_, found)| found.is_err() == broken);
        let words = told.map(|(device, found)| {
            let (Ok(words) | Err(words)) = found;
            format!("device {device}: {words}")
        });
        words.collect::<Vec<_>>().join("; ")
    };
    let (kept, broken) = (words(false), words(true));
    match broken.is_empty() {
        true => ruling("R-POLICY", Status::Valid, kept),
        false => ruling("R-POLICY", Status::Invalid, broken),
    }
}

/// A policy does not see what was asked for where the kernel makes many requests of one.
pub(super) fn whole(facts: &Facts<'_>) -> Ruling {
    if facts.ways.is_empty() {
        return ruling("R-WHOLE", Status::Skipped, "no class under a policy of weir's own");
    }
    if !facts.is_raw {
        return ruling("R-WHOLE", Status::Skipped, "a file system may place one file in many extents");
    }
    let cut = facts.ways.iter().find_map(|(class, way)| match way {
        Way::Cut { asked, came } => Some((class, asked, came)),
        Way::Whole { .. } => None,
    });
    let Some((class, asked, came)) = cut else {
        return ruling("R-WHOLE", Status::Valid, "the kernel made one request of each");
    };
    let words = format!(
        "of the {asked} requests of class {class} the kernel made {came}: ask for no more at once than the device takes \
         (queue/max_sectors_kb)"
    );
    at_most("R-WHOLE", *came as f64, *asked as f64, &words)
}

/// What a policy does not see it cannot order: a client that gets no processor, or more requests than a device has tags.
pub(super) fn way(facts: &Facts<'_>) -> Ruling {
    let whole = facts.ways.iter().filter_map(|(class, way)| match way {
        Way::Whole { least_ms, most_ms } => Some((class, *least_ms, *most_ms)),
        Way::Cut { .. } => None,
    });
    let Some((class, least_ms, most_ms)) = whole.max_by(|a, b| a.1.total_cmp(&b.1)) else {
        return ruling(
            "R-WAY",
            Status::Skipped,
            "no class under a policy of weir's own whose requests came whole",
        );
    };
    let way_ms = match least_ms < most_ms {
        false => format!("{most_ms:.3} ms"),
        true => format!("{:.3} to {most_ms:.3} ms", least_ms.max(0.0)),
    };
    let words = format!(
        "requests and answers of class {class} were {way_ms} on their way between client and server on average"
    );
    at_most("R-WAY", least_ms, WAY_LIMIT_MS, &words)
}

pub(crate) fn clock(facts: &Facts<'_>) -> Ruling {
    let reason =
        format!("the wall clock moved {:.3} ms against the monotonic one", facts.clock_step_ns / 1e6);
    at_most("R-CLOCK", facts.clock_step_ns.abs(), CLOCK_STEP_LIMIT_NS, &reason)
}

pub(super) fn state(facts: &Facts<'_>) -> Ruling {
    match facts.state.first() {
        Some(first) => ruling("R-STATE", Status::Invalid, format!("not as it was set: {first}")),
        None => ruling("R-STATE", Status::Valid, "mounts and queues were as set, before and after"),
    }
}

pub(super) fn controls(facts: &Facts<'_>) -> Ruling {
    match &facts.controls {
        None => ruling("R-CONTROL", Status::Skipped, "no class has a control group of its own"),
        Some(Ok(words)) => ruling("R-CONTROL", Status::Valid, words),
        Some(Err(problem)) => ruling("R-CONTROL", Status::Invalid, problem),
    }
}
