//! Part of one host in a coordinated run: as coordinator or as participant.

use crate::coordinator::Coordinator;
use crate::participant::Participant;
use crate::{Ended, Error, JoinConfig, Record};

/// Part of one host in a coordinated run. Dropping it without [`Coordination::end`] ends the run for all hosts.
pub enum Coordination {
    /// This host is the coordinator.
    Coordinator(Coordinator),
    /// Another host is the coordinator.
    Participant(Box<Participant>),
}

impl Coordination {
    /// Joins the other hosts.
    ///
    /// # Errors
    /// [`Error::Refused`] if the address cannot be used or this host is refused, [`Error::Ended`] if the coordinator does not
    /// listen or the run has ended.
    pub fn join(config: JoinConfig) -> Result<Self, Error> {
        if config.roster.coordinates() {
            Coordinator::open(config).map(Coordination::Coordinator)
        } else {
            Participant::join(config).map(|participant| Coordination::Participant(Box::new(participant)))
        }
    }

    /// Barrier: reports that this host is ready, and waits until every host is. Returns the run's epoch on this host's clock
    /// (`CLOCK_MONOTONIC`, ns), which lies ahead.
    ///
    /// # Errors
    /// A host ended the run.
    pub fn begin(&mut self) -> Result<i64, Error> {
        match self {
            Coordination::Coordinator(coordinator) => coordinator.begin(),
            Coordination::Participant(participant) => participant.begin(),
        }
    }

    /// Waits until all clients are done; for servers.
    ///
    /// # Errors
    /// A host ended the run.
    pub fn wait_for_clients(&mut self) -> Result<(), Error> {
        match self {
            Coordination::Coordinator(_) => Ok(()),
            Coordination::Participant(participant) => participant.wait_for_clients(),
        }
    }

    /// Reports that this host is done, and waits until every host is.
    ///
    /// # Errors
    /// A host ended the run.
    pub fn end(&mut self) -> Result<Record, Error> {
        match self {
            Coordination::Coordinator(coordinator) => coordinator.end(),
            Coordination::Participant(participant) => participant.end(),
        }
    }

    /// Ends the run for all hosts, because this one cannot go on.
    pub fn fail(&mut self, reason: &str) {
        match self {
            Coordination::Coordinator(coordinator) => coordinator.fail(reason),
            Coordination::Participant(participant) => participant.fail(reason),
        }
    }

    /// The host that ended the run early, if it was another host.
    pub fn ended(&self) -> Option<Ended> {
        match self {
            Coordination::Coordinator(coordinator) => coordinator.ended(),
            Coordination::Participant(participant) => participant.ended(),
        }
    }

    /// This host's record of the coordination, also of a run that failed.
    pub fn record(&self) -> Record {
        match self {
            Coordination::Coordinator(coordinator) => coordinator.record(),
            Coordination::Participant(participant) => participant.record(),
        }
    }
}
