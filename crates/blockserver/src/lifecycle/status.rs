//! Status of the servers of a state folder.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::control::Control;
use crate::error::Error;
use crate::state::{State, states};
use crate::stats::Stats;

/// Status of a served device.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Status {
    /// The state file.
    pub state_file: PathBuf,
    /// Its content.
    pub state: State,
    /// Whether the server's process is running.
    pub running: bool,
    /// Its statistics, if it answers.
    pub stats: Option<Stats>,
}

/// Status of every device with a state file in `state_dir`.
///
/// # Errors
/// [`Error::System`] or [`Error::State`] if the folder or a state file cannot be read.
pub fn status(state_dir: &Path) -> Result<Vec<Status>, Error> {
    let mut list = Vec::new();
    for state_file in states(state_dir)? {
        let state = match State::load(&state_file) {
            // Removed by another process.
            Err(Error::System { error, .. }) if error.kind() == io::ErrorKind::NotFound => continue,
            state => state?,
        };
        let running = state.process().is_some();
        let stats =
            if running { Control::connect(&state).and_then(|mut c| c.stats(false)).ok() } else { None };
        list.push(Status { state_file, state, running, stats });
    }
    Ok(list)
}
