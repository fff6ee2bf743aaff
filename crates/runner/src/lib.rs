//! Runs of a study on this host.
//!
//! [`carry_out`] puts the devices in the state that the run asks for, writes its files, sends its requests, captures the block
//! layer's, judges whether the data may be used, and leaves a folder that is complete or absent. Every change of the host is
//! recorded on disk before it is made, so that a run that is killed is undone by the next one ([`recover`]).

mod cgroup;
mod context;
mod daemon;
mod device;
mod error;
mod files;
mod filesystem;
#[doc(hidden)]
pub mod fuzzing;
mod joint;
mod load;
mod run;
mod simulate;
mod validity;

pub use context::child_processes::wait_for_children;
pub use context::options::{CoordinationOptions, Options};
pub use context::testbed::{Device, Disk, Testbed};
pub use daemon::site::remove_kept;
pub use device::medium::{Medium, of_classes, of_devices};
pub use device::queue_record::{PutBack, put_back as put_queues_back};
pub use error::Error;
pub use joint::{Joined, join, observe};
pub use run::folder::Durability;
pub use run::gather::{Gathered, Gathering};
pub use run::outcome::{Outcome, Timing};
pub use run::sweep::{sweep, sweep_parts};
pub use run::undo::{Recovered, recover};
pub use simulate::simulate;
pub use validity::rule::{RuleOutcome, Status, Validity, is_invalid, is_skipped};

/// Carries out one run: on this host alone, or this host's part of it.
///
/// # Errors
/// [`Error::Refused`] if nothing was touched, [`Error::Failed`] if something went wrong on the way; what had been
/// done was undone then.
pub fn carry_out(run: &weir_study::Run, testbed: &Testbed, options: &Options) -> Result<Outcome, Error> {
    match (&run.hosts, &options.coordination) {
        (Some(_), Some(coordination)) => joint::carry_out(run, testbed, options, coordination),
        (None, None) => run::carry_out::carry_out(run, testbed, options),
        (Some(hosts), None) => Err(Error::Refused(format!(
            "run {} takes {} client hosts: give the coordinator's address (--meet), as the playbook does",
            run.id, hosts.clients
        ))),
        (None, Some(_)) => Err(Error::Refused(format!("run {} takes one host: leave out --meet", run.id))),
    }
}
