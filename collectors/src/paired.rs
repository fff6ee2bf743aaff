//! The BPF programs with a second source that fills missed completions.

use std::path::Path;

use weir_records::{BlockRequest, write_all};

use crate::block::{self, Options};
use crate::disk::Disk;
use crate::error::Error;
use crate::fill::fill;
use crate::ftrace;
use crate::reconcile::Reconciliation;

/// Whether trace events are recorded beside the programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Second {
    /// No: what BPF misses stays missed, and is counted.
    No,
    /// Where the kernel has them.
    IfPossible,
    /// Yes, or nothing is recorded at all.
    Required,
}

/// A collection under way. Dropping it ends it and forgets what was recorded.
pub struct Collector {
    first: block::Collector,
    second: Option<ftrace::Collector>,
}

/// What was recorded.
pub struct Capture {
    first: block::Capture,
    second: Option<ftrace::Capture>,
}

impl Collector {
    /// Starts both; returns when both record. What does not fit into memory waits in unlinked files in `directory`; `state` has a
    /// record of what the second source must undo.
    ///
    /// # Errors
    /// As [`block::Collector::start`]; a second source is required and cannot be had.
    pub fn start(
        devices: &[Disk],
        options: Options,
        second: Second,
        directory: &Path,
        state: &Path,
    ) -> Result<Self, Error> {
        // The second begins before the first and ends after it, so that it has seen whatever the first began to see.
        let second = match second {
            Second::No => None,
            Second::IfPossible => ftrace::Collector::start(devices, directory, state).ok(),
            Second::Required => Some(ftrace::Collector::start(devices, directory, state)?),
        };
        Ok(Collector { first: block::Collector::start(devices, options)?, second })
    }

    /// Ends the recording; the second source's trace instance is gone then.
    ///
    /// # Errors
    /// The statistics of a device cannot be read any more.
    pub fn stop(self) -> Result<Capture, Error> {
        let first = self.first.stop();
        // Stopped whatever became of the first. If it fails, losses stay losses, and are counted.
        let second = self.second.and_then(|second| second.stop().ok());
        Ok(Capture { first: first?, second })
    }
}

impl Capture {
    /// Whether what BPF recorded agrees with what the kernel counted; nothing is filled yet.
    pub fn reconciliation(&self) -> &Reconciliation {
        self.first.reconciliation()
    }

    /// All rows; one whose completion BPF did not see carries what the second source saw of it.
    ///
    /// # Errors
    /// The file of events that did not fit into memory cannot be written or read.
    pub fn into_rows(self, epoch_ns: i64) -> Result<(Vec<BlockRequest>, Reconciliation), Error> {
        let (mut rows, mut reconciliation) = self.first.into_rows(epoch_ns)?;
        if reconciliation.lost > 0
            && let Some(Ok(other)) = self.second.map(|second| second.into_rows(epoch_ns))
        {
            reconciliation.filled = fill(&mut rows, &other.rows);
        }
        Ok((rows, reconciliation))
    }

    /// Writes `block.parquet`. Only if something is missing are all rows in memory at once.
    ///
    /// # Errors
    /// As [`Capture::into_rows`]; the disk is full.
    pub fn write(self, path: &Path, epoch_ns: i64) -> Result<Reconciliation, Error> {
        if self.second.is_none() || self.first.reconciliation().lost == 0 {
            return self.first.write(path, epoch_ns);
        }
        let (rows, reconciliation) = self.into_rows(epoch_ns)?;
        write_all(path, epoch_ns, &rows)?;
        Ok(reconciliation)
    }
}
