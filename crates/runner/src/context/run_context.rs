//! Run, testbed, options and folder that every step of a run on this host works with.

use std::path::{Path, PathBuf};
use std::time::Instant;

use weir_study::{FileSystem, Run};

use crate::context::options::Options;
use crate::context::testbed::Testbed;

/// Context of every step of a run on this host.
pub(crate) struct RunContext<'a> {
    pub(crate) run: &'a Run,
    pub(crate) testbed: &'a Testbed,
    pub(crate) options: &'a Options,
    /// Folder of the run's data until it is complete.
    pub(crate) partial: &'a Path,
    /// The file system of the run as this host has it.
    pub(crate) filesystem: &'a FileSystem,
    /// When the attempt began.
    pub(crate) began: Instant,
    /// Number of the attempt, from 1.
    pub(crate) attempt: u32,
}

impl RunContext<'_> {
    /// The state folder.
    pub(crate) fn state(&self) -> &Path {
        &self.options.state
    }

    /// Folder of other programs' output.
    pub(crate) fn logs(&self) -> PathBuf {
        self.partial.join("logs")
    }
}
