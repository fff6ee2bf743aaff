//! Part of one host in a run of several hosts.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use weir_coordination::{Coordination, Ended, JoinConfig, Record, Timeouts};
use weir_study::Run;

use crate::Error;
use crate::context::options::{CoordinationOptions, Options};
use crate::context::testbed::Testbed;
use crate::context::write_json;
use crate::run::carry_out::attempt;
use crate::run::folder::{PART, RunFolder};
use crate::run::outcome::Outcome;
use crate::run::sweep::remove_published;

/// Configuration with which this host joins the others for a run.
fn config(coordination: &CoordinationOptions, run: &str, stop: &Arc<AtomicBool>) -> JoinConfig {
    let CoordinationOptions { roster, address, token } = coordination.clone();
    let (run, stop) = (run.to_owned(), Arc::clone(stop));
    JoinConfig { roster, address, token, run, timeouts: Timeouts::default(), stop }
}

/// Carries out the part of a client.
pub(crate) fn carry_out(
    run: &Run,
    testbed: &Testbed,
    options: &Options,
    coordination: &CoordinationOptions,
) -> Result<Outcome, Error> {
    let Some(client) = coordination.roster.client() else {
        return Err(Error::Refused(format!(
            "host {} is a server of this run. Use weir observe",
            coordination.roster.me()
        )));
    };
    part(run, options, coordination, |peers, folder| {
        attempt(&run.part(client), testbed, options, folder, 1, Some(peers))
    })
}

/// Joins the other hosts, carries out this host's part, and reports its end to the others and in the part's folder.
pub(super) fn part(
    run: &Run,
    options: &Options,
    coordination: &CoordinationOptions,
    work: impl FnOnce(&mut Coordination, &RunFolder) -> Result<Outcome, Error>,
) -> Result<Outcome, Error> {
    let (named, wanted) =
        (coordination.roster.clients(), run.hosts.map_or(1, |hosts| hosts.clients as usize));
    if named != wanted {
        return Err(Error::Refused(format!(
            "run {}: wrong number of client hosts (found {named}, expected {wanted})",
            run.id
        )));
    }
    let folder = RunFolder::take_part(&options.results, &run.id, coordination.roster.me())?;
    // Left by an earlier attempt.
    if let Some(left) = remove_published(folder.path(), &run.id)? {
        return Err(Error::Refused(format!("{left}. Move it away: this part needs the name")));
    }
    let began = Instant::now();
    let mut peers = match Coordination::join(config(coordination, &run.id, &options.stop)) {
        Ok(peers) => peers,
        Err(weir_coordination::Error::Ended(ended)) => {
            let record = Record::of_none(&coordination.roster, &run.id, Some(ended.clone()));
            return leave(&folder, &record, ended, began);
        }
        Err(error) => return Err(error.into()),
    };
    let done = work(&mut peers, &folder);
    if done.is_err() {
        folder.discard();
    }
    match (done, peers.ended()) {
        (Ok(outcome), _) => Ok(outcome),
        (Err(error), Some(ended)) => {
            // Mostly a consequence of the other host's end; not if something could not be undone.
            eprintln!("{error}");
            leave(&folder, &peers.record(), ended, began)
        }
        (Err(error), None) => {
            peers.fail(&error.to_string());
            Err(error)
        }
    }
}

/// Publishes the record of a run that another host ended, without data.
fn leave(folder: &RunFolder, record: &Record, ended: Ended, began: Instant) -> Result<Outcome, Error> {
    folder.make()?;
    write_json(&folder.partial().join(PART), record)?;
    folder.publish()?;
    let spent_s = began.elapsed().as_secs_f64();
    Ok(Outcome::Ended { ended, spent_s })
}
