//! Part of a server in a run of several hosts: the capture of its disks' requests while clients send theirs.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Instant;

use serde_json::json;
use weir_collectors::{Disk, host};
use weir_coordination::Coordination;
use weir_study::{Capture as Wanted, Run};

use super::part::part;
use crate::Error;
use crate::context::journal::{Change, Journal};
use crate::context::options::Options;
use crate::context::write_json;
use crate::device::capture::{Capture, Recording};
use crate::run::barrier;
use crate::run::folder::{PART, RunFolder};
use crate::run::outcome::{Outcome, Timing};
use crate::validity::facts::Facts;
use crate::validity::rule::Validity;
use crate::validity::testbed_rules::{clock, loss};

/// Captures the requests of some disks of this host while the clients of a run send theirs.
///
/// # Errors
/// [`Error::Refused`] if nothing was touched, [`Error::Failed`] if something went wrong on the way.
pub fn observe(run: &Run, devices: &[String], options: &Options) -> Result<Outcome, Error> {
    let Some(coordination) = &options.coordination else {
        return Err(Error::Refused(
            "weir observe is for runs of several hosts. Give the coordinator's address (--meet)".to_owned(),
        ));
    };
    if coordination.roster.client().is_some() {
        return Err(Error::Refused(format!(
            "host {} is a client of this run. Use weir run",
            coordination.roster.me()
        )));
    }
    part(run, options, coordination, |peers, folder| watch(run, devices, options, peers, folder))
}

fn watch(
    run: &Run,
    devices: &[String],
    options: &Options,
    peers: &mut Coordination,
    folder: &RunFolder,
) -> Result<Outcome, Error> {
    let began = Instant::now();
    let disks = devices
        .iter()
        .map(|device| Disk::find(device))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| Error::Refused(error.to_string()))?;
    if disks.is_empty() && run.capture == Wanted::Required {
        return Err(Error::Refused(format!(
            "{}: no disk to observe is named. List disks in the inventory (weir_observed), or write `capture: optional` in the study",
            peers.record().host
        )));
    }
    let (mut journal, undone) = Journal::begin(&options.state.join("journal"))?;
    undone.iter().for_each(|line| eprintln!("undone after a run that was killed: {line}"));
    journal.note(Change::Partial(folder.partial().to_owned()))?;
    let made = folder.make();
    let done = made.and_then(|()| record(run, &disks, options, folder.partial(), peers, began));
    // A complete folder is renamed before the journal removes partial ones.
    let done = done.and_then(|outcome| folder.publish().map(|()| outcome));
    match (done, journal.undo()) {
        (Ok(_), left) if !left.is_empty() => {
            Err(Error::Failed(format!("not all changes of the host were undone: {}", left.join("; "))))
        }
        (done, _) => done,
    }
}

fn record(
    run: &Run,
    disks: &[Disk],
    options: &Options,
    partial: &Path,
    peers: &mut Coordination,
    began: Instant,
) -> Result<Outcome, Error> {
    write_json(&partial.join("host.json"), &host::record(disks, &[]))?;
    let names: Vec<&str> = disks.iter().map(|disk| &*disk.name).collect();
    let capture = Capture::start(run, &names, &partial.join("block.parquet"), &options.state)?;
    let wall_before = weir_host::clock::wall_minus_monotonic_ns();
    let setup_s = began.elapsed().as_secs_f64();
    let epoch_ns = barrier::begin(peers, std::time::Duration::ZERO)?;
    peers.wait_for_clients()?;
    let measured_s = began.elapsed().as_secs_f64() - setup_s;
    let clock_step_ns = (weir_host::clock::wall_minus_monotonic_ns() - wall_before) as f64;
    let capture = capture.map(|capture| capture.stop(epoch_ns));
    let record = peers.end()?;
    if options.stop.load(Ordering::Relaxed) {
        return Err(Error::Failed("interrupted; undone".to_owned()));
    }
    let facts = Facts {
        loss: capture.as_ref().map(Recording::loss),
        allowed_loss: run.allowed_loss,
        capture_required: run.capture == Wanted::Required,
        clock_step_ns,
        ..Facts::default()
    };
    let validity = Validity::of(vec![loss(&facts), clock(&facts)]);
    let teardown_s = began.elapsed().as_secs_f64() - setup_s - measured_s;
    let timing = Timing { setup_s, measured_s, teardown_s };
    write_json(&partial.join(PART), &record)?;
    write_json(&partial.join("verdict.json"), &validity)?;
    let observed = json!({
        "capture": capture.as_ref().map(Recording::report),
        "clock_step_ns": clock_step_ns,
        "timing": timing,
    });
    write_json(&partial.join("observed.json"), &observed)?;
    Ok(Outcome::Done { validity, timing, requests: 0 })
}
