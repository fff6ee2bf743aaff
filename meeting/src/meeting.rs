//! One host's part in a meeting.

use std::time::Duration;

use crate::attendant::Attendant;
use crate::conductor::Conductor;
use crate::{Ended, Error, Invitation, Record};

/// How long things take in a meeting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Manners {
    /// Each side says so often that it is there.
    pub beat: Duration,
    /// Who says nothing for so long is lost.
    pub silence: Duration,
    /// Who has not come after so long is not waited for.
    pub patience: Duration,
    /// The run begins so long after all are ready: time for the word to reach everyone.
    pub lead: Duration,
    /// Times that the conductor is asked for its clock, before and after.
    pub exchanges: u32,
}

impl Default for Manners {
    fn default() -> Self {
        Manners {
            beat: Duration::from_millis(500),
            silence: Duration::from_secs(5),
            patience: Duration::from_secs(60),
            lead: Duration::from_millis(300),
            exchanges: 40,
        }
    }
}

/// One host's part in a meeting. When it is dropped without [`Meeting::end`], the run is over for the others, too.
pub enum Meeting {
    /// This host conducts.
    Conductor(Conductor),
    /// It does not.
    Attendant(Box<Attendant>),
}

impl Meeting {
    /// Comes together with the others.
    ///
    /// # Errors
    /// [`Error::Refused`] where the address cannot be had or this host is not let in, [`Error::Ended`] where the conductor does
    /// not come.
    pub fn join(invitation: Invitation) -> Result<Self, Error> {
        if invitation.company.conducts() {
            Conductor::open(invitation).map(Meeting::Conductor)
        } else {
            Attendant::come(invitation).map(|attendant| Meeting::Attendant(Box::new(attendant)))
        }
    }

    /// Says that all is prepared, and waits until it is so on every host. Returns the run's beginning on this host's clock
    /// (`CLOCK_MONOTONIC`, ns), which lies ahead.
    ///
    /// # Errors
    /// A host ended the run.
    pub fn begin(&mut self) -> Result<i64, Error> {
        match self {
            Meeting::Conductor(conductor) => conductor.begin(),
            Meeting::Attendant(attendant) => attendant.begin(),
        }
    }

    /// Waits until all clients have asked what they had to ask: for servers, which have nothing else to do meanwhile.
    ///
    /// # Errors
    /// A host ended the run.
    pub fn wait_for_clients(&mut self) -> Result<(), Error> {
        match self {
            Meeting::Conductor(_) => Ok(()),
            Meeting::Attendant(attendant) => attendant.wait_for_clients(),
        }
    }

    /// Says that this part is done, and waits until all are.
    ///
    /// # Errors
    /// A host ended the run.
    pub fn end(&mut self) -> Result<Record, Error> {
        match self {
            Meeting::Conductor(conductor) => conductor.end(),
            Meeting::Attendant(attendant) => attendant.end(),
        }
    }

    /// Ends the run for all, since this host cannot go on.
    pub fn fail(&mut self, reason: &str) {
        match self {
            Meeting::Conductor(conductor) => conductor.fail(reason),
            Meeting::Attendant(attendant) => attendant.fail(reason),
        }
    }

    /// Who ended the run before its end, if it was another host.
    pub fn ended(&self) -> Option<Ended> {
        match self {
            Meeting::Conductor(conductor) => conductor.ended(),
            Meeting::Attendant(attendant) => attendant.ended(),
        }
    }

    /// What this part leaves of the meeting, whatever became of it.
    pub fn record(&self) -> Record {
        match self {
            Meeting::Conductor(conductor) => conductor.record(),
            Meeting::Attendant(attendant) => attendant.record(),
        }
    }
}
