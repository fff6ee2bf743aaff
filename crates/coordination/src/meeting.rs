//! One host's part in a coordinated run.

use crate::coordinator::Coordinator;
use crate::participant::Participant;
use crate::{Ended, Error, JoinConfig, Record};

/// One host's part in a coordinated run. When it is dropped without [`Meeting::end`], the run is over for the others, too.
pub enum Meeting {
    /// This host is the coordinator.
    Coordinator(Coordinator),
    /// It is not.
    Participant(Box<Participant>),
}

impl Meeting {
    /// Joins the other hosts.
    ///
    /// # Errors
    /// [`Error::Refused`] where the address cannot be had or this host is not let in, [`Error::Ended`] where the coordinator does
    /// not come or the run is over.
    pub fn join(config: JoinConfig) -> Result<Self, Error> {
        if config.roster.coordinates() {
            Coordinator::open(config).map(Meeting::Coordinator)
        } else {
            Participant::join(config).map(|participant| Meeting::Participant(Box::new(participant)))
        }
    }

    /// Says that all is prepared, and waits until it is so on every host. Returns the run's beginning on this host's clock
    /// (`CLOCK_MONOTONIC`, ns), which lies ahead.
    ///
    /// # Errors
    /// A host ended the run.
    pub fn begin(&mut self) -> Result<i64, Error> {
        match self {
            Meeting::Coordinator(coordinator) => coordinator.begin(),
            Meeting::Participant(participant) => participant.begin(),
        }
    }

    /// Waits until all clients are done: for servers, which have nothing else to do meanwhile.
    ///
    /// # Errors
    /// A host ended the run.
    pub fn wait_for_clients(&mut self) -> Result<(), Error> {
        match self {
            Meeting::Coordinator(_) => Ok(()),
            Meeting::Participant(participant) => participant.wait_for_clients(),
        }
    }

    /// Says that this part is done, and waits until all are.
    ///
    /// # Errors
    /// A host ended the run.
    pub fn end(&mut self) -> Result<Record, Error> {
        match self {
            Meeting::Coordinator(coordinator) => coordinator.end(),
            Meeting::Participant(participant) => participant.end(),
        }
    }

    /// Ends the run for all, since this host cannot go on.
    pub fn fail(&mut self, reason: &str) {
        match self {
            Meeting::Coordinator(coordinator) => coordinator.fail(reason),
            Meeting::Participant(participant) => participant.fail(reason),
        }
    }

    /// Who ended the run before its end, if it was another host.
    pub fn ended(&self) -> Option<Ended> {
        match self {
            Meeting::Coordinator(coordinator) => coordinator.ended(),
            Meeting::Participant(participant) => participant.ended(),
        }
    }

    /// This part's record of the coordination, whatever became of it.
    pub fn record(&self) -> Record {
        match self {
            Meeting::Coordinator(coordinator) => coordinator.record(),
            Meeting::Participant(participant) => participant.record(),
        }
    }
}
