//! The part of a server in a run of several hosts: it is asked, and records what its disks do.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Instant;

use serde_json::json;
use weir_collectors::{Disk, host};
use weir_coordination::Coordination;
use weir_study::{Capture as Wanted, Run};

use super::{Meet, PART, begin, from_coordination, part};
use crate::Error;
use crate::capture::{Capture, Recording};
use crate::carry_out::{Options, Outcome, Timing};
use crate::journal::{Change, Journal};
use crate::run_folder::{RunFolder, write_json};
use crate::verdict::{Facts, Verdict, clock, loss};

/// Records the requests of some disks of this host, and the host, while the clients of a run ask.
///
/// # Errors
/// [`Error::Refused`] if nothing was touched, [`Error::Failed`] if something went wrong on the way.
pub fn observe(run: &Run, devices: &[String], options: &Options) -> Result<Outcome, Error> {
    let Some(meet) = &options.meet else {
        return Err(Error::Refused(
            "a server observes a run of several hosts: give the coordinator's address (--meet)".to_owned(),
        ));
    };
    if meet.roster.client().is_some() {
        return Err(Error::Refused(format!("{} is a client of this run: weir run", meet.roster.me())));
    }
    part(run, options, meet, |meeting, place| watch(run, devices, options, meet, meeting, place))
}

fn watch(
    run: &Run,
    devices: &[String],
    options: &Options,
    meet: &Meet,
    meeting: &mut Coordination,
    place: &RunFolder,
) -> Result<Outcome, Error> {
    let began = Instant::now();
    let disks = devices
        .iter()
        .map(|device| Disk::find(device))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| Error::Refused(error.to_string()))?;
    if disks.is_empty() && run.capture == Wanted::Required {
        return Err(Error::Refused(format!(
            "{}: no disk is named whose requests are to be recorded: list them in the inventory (weir_observed), or say `capture: optional` in the study",
            meet.roster.me()
        )));
    }
    let (mut journal, undone) = Journal::begin(&options.state.join("journal"))?;
    undone.iter().for_each(|line| eprintln!("undone of a run that died: {line}"));
    journal.note(Change::Partial(place.partial().to_owned()))?;
    let made = place.make();
    let done = made.and_then(|()| record(run, &disks, options, place.partial(), meeting, began));
    // What is whole is moved before the journal takes away what is not.
    let done = done.and_then(|outcome| place.publish().map(|()| outcome));
    match (done, journal.undo()) {
        (Ok(_), left) if !left.is_empty() => Err(Error::Failed(format!("not undone: {}", left.join("; ")))),
        (done, _) => done,
    }
}

fn record(
    run: &Run,
    disks: &[Disk],
    options: &Options,
    partial: &Path,
    meeting: &mut Coordination,
    began: Instant,
) -> Result<Outcome, Error> {
    write_json(&partial.join("host.json"), &host::record(disks, &[]))?;
    let names: Vec<&str> = disks.iter().map(|disk| &*disk.name).collect();
    let capture = Capture::start(run, &names, &partial.join("block.parquet"), &options.state)?;
    let wall_before = weir_host::clock::wall_minus_monotonic_ns();
    let setup_s = began.elapsed().as_secs_f64();
    let epoch_ns = begin(meeting, std::time::Duration::ZERO)?;
    meeting.wait_for_clients().map_err(from_coordination)?;
    let measured_s = began.elapsed().as_secs_f64() - setup_s;
    let clock_step_ns = (weir_host::clock::wall_minus_monotonic_ns() - wall_before) as f64;
    let capture = capture.map(|capture| capture.stop(epoch_ns));
    let record = meeting.end().map_err(from_coordination)?;
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
    let verdict = Verdict::of(vec![loss(&facts), clock(&facts)]);
    let teardown_s = began.elapsed().as_secs_f64() - setup_s - measured_s;
    let timing = Timing { setup_s, measured_s, teardown_s };
    write_json(&partial.join(PART), &record)?;
    write_json(&partial.join("verdict.json"), &verdict)?;
    let observed = json!({
        "capture": capture.as_ref().map(Recording::report),
        "clock_step_ns": clock_step_ns,
        "timing": timing,
    });
    write_json(&partial.join("observed.json"), &observed)?;
    Ok(Outcome::Done { verdict, timing, requests: 0 })
}
