//! Simulation of a run in virtual time: the same specification, the same folder, no device.

mod admission;
mod admission_run;
mod bound;
mod clients;
mod places;
mod series;
mod server;
mod streams;
mod summary;

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use serde_json::json;
use weir_records::{Request, TableWriter};
use weir_simulator::server::{Limits, Outcome as Simulated, Served};
use weir_simulator::{FLASH_UNIT_BYTES, Preconditioning, Steadiness};
use weir_study::{Records, Run, Testbed};

use crate::Error;
use crate::context::write_json;
use crate::run::folder::{Durability, RunFolder};
use crate::run::outcome::{Outcome, Timing};
use crate::run::series as responses;
use crate::validity::rule::{RuleOutcome, Status, Validity, is_invalid, outcome};
use series::Series;
use summary::Summary;

/// Number of outstanding requests at which a run is ended: the queue only grows.
const MOST_OUTSTANDING: usize = 200_000;
/// The same for each client, where that is more: clients of a video server send their rounds at the same time.
const MOST_OUTSTANDING_OF_CLIENT: usize = 16;
/// Time after the end during which answers still count, as on testbed `device`.
const GRACE_NS: u64 = 10_000_000_000;

/// Carries out one run in virtual time. It needs no privileges and writes only to the run's folder.
///
/// # Errors
/// [`Error::Refused`] if the run cannot be simulated, [`Error::Failed`] if its folder cannot be written.
pub fn simulate(
    run: &Run,
    results: &Path,
    retry_invalid: bool,
    durability: Durability,
) -> Result<Outcome, Error> {
    let folder = results.join(&run.id);
    let is_present = || folder.is_dir() && !(retry_invalid && is_invalid(&folder));
    if is_present() {
        return Ok(Outcome::Present);
    }
    // Another process may carry out the same run; its outcome is the same.
    let place = RunFolder::wait(results, &run.id)?.outliving(durability);
    if is_present() {
        return Ok(Outcome::Present);
    }
    let outcome = match run.testbed {
        Testbed::Admission => admit(run, &place),
        _ => serve(run, &place),
    };
    if outcome.is_err() {
        place.discard();
    }
    outcome
}

/// Carries out one run of a simulated server.
fn serve(run: &Run, place: &RunFolder) -> Result<Outcome, Error> {
    let began = Instant::now();
    let server = server::build(run)?;
    place.make()?;
    place.write_run(run)?;
    let partial = place.partial();
    let setup_s = began.elapsed().as_secs_f64();
    if let Some(document) = server.admission(run) {
        write_json(&partial.join("admission.json"), &document)?;
    }
    let (simulated, summary, series, requests) = measure(run, server, partial)?;
    let measured_s = began.elapsed().as_secs_f64() - setup_s;
    let validity = judge(run, &simulated, &summary);
    write_json(&partial.join("summary.json"), &summary.document(&simulated))?;
    if let Some(series) = series {
        write_json(&partial.join("series.json"), &series.document())?;
    }
    write_json(&partial.join("verdict.json"), &validity)?;
    let timing =
        Timing { setup_s, measured_s, teardown_s: began.elapsed().as_secs_f64() - setup_s - measured_s };
    write_json(&partial.join("observed.json"), &observed(&simulated, timing))?;
    place.publish()?;
    Ok(Outcome::Done { validity, timing, requests })
}

/// Carries out one run of admission control alone.
fn admit(run: &Run, place: &RunFolder) -> Result<Outcome, Error> {
    let began = Instant::now();
    place.make()?;
    place.write_run(run)?;
    let partial = place.partial();
    let found = admission_run::carry_out(run, partial)?;
    let asked: u32 = found.asked.iter().sum();
    let refused = found.refused.as_ref().map(|refused| format!("refused: {refused}"));
    let because = refused.unwrap_or_else(|| "none was refused".to_owned());
    let reason = format!("{asked} streams asked, {} admitted; {because}", found.streams.len());
    let validity = Validity::of(vec![outcome("R-PLANNED", Status::Valid, reason)]);
    write_json(&partial.join("verdict.json"), &validity)?;
    let timing = Timing { setup_s: 0.0, measured_s: began.elapsed().as_secs_f64(), teardown_s: 0.0 };
    write_json(&partial.join("observed.json"), &json!({"timing": timing}))?;
    place.publish()?;
    Ok(Outcome::Done { validity, timing, requests: u64::from(asked) })
}

/// Outcome of a run, its summary, its series if one is kept, and its number of requests.
type Measured = (Simulated, Summary, Option<Series>, u64);

fn measure(run: &Run, server: server::Built, partial: &Path) -> Result<Measured, Error> {
    let names: Vec<(Arc<str>, Arc<str>)> =
        run.classes.iter().map(|class| (class.name.as_str().into(), class.device.as_str().into())).collect();
    let mut tables = match run.records {
        Records::Requests => {
            let requests =
                TableWriter::create(&partial.join("requests.parquet"), 0).map_err(Error::failed)?;
            Some((requests, responses::create(run, partial, 0)?))
        }
        Records::Summary => None,
    };
    let mut summary = Summary::new(run)?;
    let mut bins = Series::new(run);
    let warmup_ns = run.warmup_ns();
    let (mut number, mut broken) = (0u64, None);
    let end_ns = u64::try_from(run.length_ns()).unwrap_or(0);
    let clients: usize = run.classes.iter().map(|class| class.clients as usize).sum();
    let most_outstanding = MOST_OUTSTANDING.max(MOST_OUTSTANDING_OF_CLIENT * clients);
    let limits = Limits { end_ns: end_ns.saturating_add(GRACE_NS), most_outstanding };
    let mut record = |served: &Served| {
        let intended_ns = served.ask.intended_ns as i64;
        let warmup = intended_ns < warmup_ns;
        summary.add(served);
        if let Some(bins) = &mut bins {
            bins.add(served);
        }
        number += 1;
        if let (Some((requests, series)), None) = (&mut tables, &broken) {
            let (class, device) = &names[usize::from(served.class)];
            let row = row(served, number - 1, Arc::clone(class), Arc::clone(device), warmup);
            broken = requests.write(&row).and_then(|()| series.add(&row)).err();
        }
    };
    let simulated = server.run(limits, &mut record).map_err(|error| Error::Refused(error.to_string()))?;
    if let Some(error) = broken {
        return Err(Error::failed(error));
    }
    if let Some((requests, series)) = tables {
        requests.close().map_err(Error::failed)?;
        series.close().map_err(Error::failed)?;
    }
    Ok((simulated, summary, bins, number))
}

fn row(served: &Served, number: u64, class: Arc<str>, device: Arc<str>, warmup: bool) -> Request {
    let ask = &served.ask;
    let ns = |at_ns: u64| at_ns as i64;
    Request {
        request: number,
        class,
        client: ask.client,
        device: Some(device),
        file: Some(ask.file),
        op: ask.op.into(),
        offset: ask.offset_bytes,
        size_bytes: ask.size_bytes,
        intended_ns: ns(ask.intended_ns),
        submitted_ns: Some(ns(ask.intended_ns)),
        completed_ns: served.completed_ns.map(ns),
        deadline_ns: ask.deadline_ns.map(ns),
        served_ns: served.served_ns.map(ns),
        status: 0,
        warmup,
    }
}

/// Validity of a simulated run. In virtual time nothing is late or lost; a server may be saturated, or a run without requests.
fn judge(run: &Run, simulated: &Simulated, summary: &Summary) -> Validity {
    let planned = outcome(
        "R-PLANNED",
        Status::Valid,
        format!("{} requests were sent, {} completed", simulated.asked, simulated.answered),
    );
    let saturated = match simulated.saturation {
        None => outcome("R-SATURATED", Status::Valid, "every queue drained".to_owned()),
        // Saturation is a result, not an error: the load exceeds the server's capacity.
        Some(saturation) => outcome(
            "R-SATURATED",
            Status::Valid,
            format!(
                "saturated: the queue of head {} did not drain after {:.3} s; ended at {:.3} s of {:.3} s, with {} requests \
                 unanswered, which count as never answered",
                saturation.head,
                saturation.since_ns as f64 / 1e9,
                saturation.at_ns as f64 / 1e9,
                run.length_ns() as f64 / 1e9,
                simulated.asked - simulated.answered
            ),
        ),
    };
    let asked = summary.measured();
    let some = if asked > 0 {
        outcome("R-SOME", Status::Valid, format!("{asked} requests in the measured interval"))
    } else {
        outcome(
            "R-SOME",
            Status::Invalid,
            "no request in the measured interval. Make it longer, or use more clients".to_owned(),
        )
    };
    let preconditioned = simulated.heads.iter().enumerate();
    let preconditioned =
        preconditioned.filter_map(|(head, report)| Some((head, report.flash?.preconditioning?)));
    let rules = [planned, some, saturated].into_iter().chain(steady(preconditioned));
    Validity::of(rules.collect())
}

/// Whether the flash devices that start in steady state attained it, of the preconditioning of each such head; `None` without.
fn steady(heads: impl Iterator<Item = (usize, Preconditioning)>) -> Option<RuleOutcome> {
    let is_steady = |steadiness: &Option<Steadiness>| steadiness.is_some_and(|found| found.is_steady());
    let found = heads.map(|(head, done)| (head, done.rounds, Steadiness::of(&done.amplifications())));
    // The first head that is not steady, else the last one.
    let mut chosen = None;
    for one in found {
        chosen = Some(one);
        if !is_steady(&one.2) {
            break;
        }
    }
    let (head, rounds, steadiness) = chosen?;
    let text = steadiness.map_or_else(String::new, |found| {
        format!(
            "write amplification of the last 5 of {rounds} rounds of random writes on head {head}: mean {:.3}, range {:.1} %, \
             slope {:+.1} %; steady are up to {:.0} % and {:.0} %",
            found.mean,
            found.range_share * 100.0,
            found.slope_share * 100.0,
            Steadiness::MOST_RANGE * 100.0,
            Steadiness::MOST_SLOPE * 100.0
        )
    });
    Some(if is_steady(&steadiness) {
        outcome("R-STEADY", Status::Valid, text)
    } else {
        let remedy = "The device did not become steady. Make it larger, or give it more over-provisioning";
        outcome("R-STEADY", Status::Invalid, format!("{text}. {remedy}"))
    })
}

/// Rounds of a preconditioning for `observed.json`.
fn rounds(preconditioning: &Preconditioning) -> serde_json::Value {
    let amplifications = preconditioning.amplifications();
    let steadiness = Steadiness::of(&amplifications);
    json!({
        "round_bytes": preconditioning.round_units * FLASH_UNIT_BYTES,
        "write_amplification": amplifications,
        "mean": steadiness.map(|found| found.mean),
        "range_share": steadiness.map(|found| found.range_share),
        "slope_share": steadiness.map(|found| found.slope_share),
        "is_steady": steadiness.is_some_and(|found| found.is_steady()),
    })
}

fn observed(simulated: &Simulated, timing: Timing) -> serde_json::Value {
    let heads: Vec<_> = simulated
        .heads
        .iter()
        .map(|head| {
            let mut found = json!({
                "requests": head.requests,
                "bytes": head.bytes,
                "busy_s": head.busy_ns as f64 / 1e9,
                "most_waiting": head.most_waiting,
            });
            if let Some(flash) = head.flash {
                found["flash"] = json!({
                    "written_bytes": flash.host_units * FLASH_UNIT_BYTES,
                    "folded_bytes": flash.folded_units * FLASH_UNIT_BYTES,
                    "copied_bytes": flash.copied_units * FLASH_UNIT_BYTES,
                    "write_amplification": flash.write_amplification(),
                    "erased_blocks": flash.erased_blocks,
                    "fewest_erases": flash.fewest_erases,
                    "most_erases": flash.most_erases,
                    "repeated_reads": flash.retries,
                });
                if let Some(preconditioning) = flash.preconditioning {
                    found["flash"]["preconditioning"] = rounds(&preconditioning);
                }
            }
            found
        })
        .collect();
    json!({
        "simulator": {
            "asked": simulated.asked,
            "answered": simulated.answered,
            "cache_hits": simulated.cache_hits,
            "cache_misses": simulated.cache_misses,
            "simulated_s": simulated.now_ns as f64 / 1e9,
            "saturation": simulated.saturation.map(|saturation| json!({
                "head": saturation.head,
                "since_s": saturation.since_ns as f64 / 1e9,
                "at_s": saturation.at_ns as f64 / 1e9,
            })),
            "heads": heads,
        },
        "timing": timing,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds of 1000 units with so many copied ones each.
    fn preconditioning(copied: impl IntoIterator<Item = u64>) -> Preconditioning {
        let mut made = Preconditioning::new(1000);
        copied.into_iter().for_each(|units| made.add(units));
        made
    }

    #[test]
    fn a_device_that_does_not_become_steady_makes_the_run_invalid() {
        let steady_one = preconditioning([100, 900, 1000, 1010, 990, 1000, 1000]);
        // It rises by 0.3 in each of 25 rounds.
        let rising = preconditioning((0..25).map(|round| 1000 + 300 * round));
        let rule = steady([(0, steady_one), (1, rising), (2, steady_one)].into_iter()).unwrap();
        assert_eq!((rule.rule.as_str(), rule.status), ("R-STEADY", Status::Invalid));
        let told = "write amplification of the last 5 of 25 rounds of random writes on head 1: mean 8.600, range 14.0 %, slope \
                    +14.0 %; steady are up to 20 % and 10 %. The device did not become steady.";
        assert!(rule.reason.starts_with(told), "{}", rule.reason);
        let rule = steady([(0, steady_one), (1, steady_one)].into_iter()).unwrap();
        assert_eq!(rule.status, Status::Valid);
        assert!(
            rule.reason.contains("of 7 rounds of random writes on head 1: mean 2.000"),
            "{}",
            rule.reason
        );
        assert_eq!(steady(std::iter::empty()), None);
        assert_eq!(steady([(0, preconditioning([1; 4]))].into_iter()).unwrap().status, Status::Invalid);
        let document = rounds(&rising);
        assert_eq!(
            (document["is_steady"].as_bool(), document["round_bytes"].as_u64()),
            (Some(false), Some(4_096_000))
        );
        assert_eq!(document["write_amplification"].as_array().unwrap().len(), 25);
    }
}
