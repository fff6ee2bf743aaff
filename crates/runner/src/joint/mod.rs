//! A run that several hosts carry out together: the part of each, and putting the parts together.

mod attend;
mod join;
mod join_tables;
mod ruling;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::sleep;
use std::time::{Duration, Instant};

pub use attend::observe;
pub use join::{Joined, join};
use weir_coordination::{Coordination, Ended, JoinConfig, Record, Roster, Timeouts, Token};
use weir_study::Run;

use crate::Error;
use crate::carry_out::{Options, Outcome, alone};
use crate::run_folder::{RunFolder, remove_published, write_json};
use crate::testbed::Testbed;

/// A part's record of the meeting, in its folder.
pub(crate) const PART: &str = "part.json";

/// Where this host meets the others of a run.
#[derive(Debug, Clone)]
pub struct Meet {
    /// The hosts of the run, and which of them this is.
    pub roster: Roster,
    /// Address at which the coordinator listens.
    pub address: SocketAddr,
    /// What lets a host in.
    pub token: Token,
}

impl Meet {
    /// What this host knows before it joins the others for a run.
    fn config(&self, run: &str, stop: &Arc<AtomicBool>) -> JoinConfig {
        let Meet { roster, address, token } = self.clone();
        let (run, stop) = (run.to_owned(), Arc::clone(stop));
        JoinConfig { roster, address, token, run, timeouts: Timeouts::default(), stop }
    }
}

pub(crate) fn from_coordination(error: weir_coordination::Error) -> Error {
    match error {
        weir_coordination::Error::Refused(why) => Error::Refused(why),
        other => Error::Failed(other.to_string()),
    }
}

/// Waits until a run of several hosts begins. Returns its epoch on this host's clock, as close ahead as that of a run alone.
pub(crate) fn begin(meeting: &mut Coordination, lead: Duration) -> Result<i64, Error> {
    let epoch_ns = meeting.begin().map_err(from_coordination)?;
    let left_ns = epoch_ns - weir_host::clock::monotonic_ns();
    sleep(Duration::from_nanos(u64::try_from(left_ns).unwrap_or(0)).saturating_sub(lead));
    Ok(epoch_ns)
}

/// Carries out the part of a client.
pub(crate) fn carry_out(
    run: &Run,
    testbed: &Testbed,
    options: &Options,
    meet: &Meet,
) -> Result<Outcome, Error> {
    let Some(client) = meet.roster.client() else {
        return Err(Error::Refused(format!("{} is a server of this run: weir observe", meet.roster.me())));
    };
    part(run, options, meet, |meeting, place| {
        alone(&run.part(client), testbed, options, Some(meeting), place, 1)
    })
}

/// Meets the others, does the work, and says how that ended: to the others, and in the part's folder.
fn part(
    run: &Run,
    options: &Options,
    meet: &Meet,
    work: impl FnOnce(&mut Coordination, &RunFolder) -> Result<Outcome, Error>,
) -> Result<Outcome, Error> {
    let (named, wanted) = (meet.roster.clients(), run.hosts.map_or(1, |hosts| hosts.clients as usize));
    if named != wanted {
        return Err(Error::Refused(format!("run {} takes {wanted} clients; {named} are named", run.id)));
    }
    let place = RunFolder::take_part(&options.results, &run.id, meet.roster.me())?;
    // Of an attempt before this one.
    if let Some(left) = remove_published(place.folder(), &run.id)? {
        return Err(Error::Refused(format!("{left}. Move it away: this part needs its name")));
    }
    let began = Instant::now();
    let mut meeting = match Coordination::join(meet.config(&run.id, &options.stop)) {
        Ok(meeting) => meeting,
        Err(weir_coordination::Error::Ended(ended)) => {
            let record = Record::of_none(&meet.roster, &run.id, Some(ended.clone()));
            return leave(&place, &record, ended, began);
        }
        Err(error) => return Err(from_coordination(error)),
    };
    let done = work(&mut meeting, &place);
    if done.is_err() {
        place.discard();
    }
    match (done, meeting.ended()) {
        (Ok(outcome), _) => Ok(outcome),
        (Err(error), Some(ended)) => {
            // Mostly a consequence; not if something could not be undone.
            eprintln!("{error}");
            leave(&place, &meeting.record(), ended, began)
        }
        (Err(error), None) => {
            meeting.fail(&error.to_string());
            Err(error)
        }
    }
}

/// Leaves a record of a run that another host ended, in place of data.
fn leave(place: &RunFolder, record: &Record, ended: Ended, began: Instant) -> Result<Outcome, Error> {
    place.make()?;
    write_json(&place.partial().join(PART), record)?;
    place.publish()?;
    let spent_s = began.elapsed().as_secs_f64();
    Ok(Outcome::Ended { ended, spent_s })
}
