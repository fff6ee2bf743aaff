//! BPF collector paired with a second source, which fills missed completions.

use std::path::Path;

use weir_records::{BlockRequest, TableWriter};

use crate::block::{self, Options};
use crate::disk::Disk;
use crate::error::Error;
use crate::fill::{Gaps, fill};
use crate::ftrace;
use crate::reconcile::Reconciliation;

/// Whether ftrace events are recorded beside the BPF programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Second {
    /// No: completions missed by BPF are counted as losses.
    No,
    /// If the kernel supports them.
    IfPossible,
    /// Yes, or the collection fails.
    Required,
}

/// A running collection. Dropping it ends it and discards its events.
pub struct Collector {
    first: block::Collector,
    second: Option<ftrace::Collector>,
}

/// Recording of a collection.
pub struct Capture {
    first: block::Capture,
    second: Option<ftrace::Capture>,
}

impl Collector {
    /// Starts both sources; returns when both record. Events beyond the memory limit go to unlinked files in `directory`; `state`
    /// has a record for undo of the second source.
    ///
    /// # Errors
    /// As [`block::Collector::start`], or a required second source is not available.
    pub fn start(
        devices: &[Disk],
        options: Options,
        second: Second,
        directory: &Path,
        state: &Path,
    ) -> Result<Self, Error> {
        // The second source begins before the first and ends after it: it sees every request of the first.
        let second = match second {
            Second::No => None,
            Second::IfPossible => ftrace::Collector::start(devices, directory, state).ok(),
            Second::Required => Some(ftrace::Collector::start(devices, directory, state)?),
        };
        Ok(Collector { first: block::Collector::start(devices, options)?, second })
    }

    /// Ends the recording, and removes the second source's trace instance.
    ///
    /// # Errors
    /// The statistics of a device cannot be read.
    pub fn stop(self) -> Result<Capture, Error> {
        let first = self.first.stop();
        // Stopped also after a failure of the first. If it fails, losses are counted and not filled.
        let second = self.second.and_then(|second| second.stop().ok());
        Ok(Capture { first: first?, second })
    }
}

impl Capture {
    /// Reconciliation of the BPF recording with the kernel's counters, before filling.
    pub fn reconciliation(&self) -> &Reconciliation {
        self.first.reconciliation()
    }

    /// All rows, with missed completions filled from the second source.
    ///
    /// # Errors
    /// The overflow file of events cannot be written or read.
    pub fn into_rows(self, epoch_ns: i64) -> Result<(Vec<BlockRequest>, Reconciliation), Error> {
        let (mut rows, mut reconciliation) = self.first.into_rows(epoch_ns)?;
        if reconciliation.lost > 0
            && let Some(Ok(other)) = self.second.map(|second| second.into_rows(epoch_ns))
        {
            reconciliation.filled = fill(&mut rows, &other.rows);
        }
        Ok((rows, reconciliation))
    }

    /// Writes `block.parquet`. Of the rows, those without a completion are in memory.
    ///
    /// # Errors
    /// As [`Capture::into_rows`], or the disk is full.
    pub fn write(self, path: &Path, epoch_ns: i64) -> Result<Reconciliation, Error> {
        if self.second.is_none() || self.first.reconciliation().lost == 0 {
            return self.first.write(path, epoch_ns);
        }
        let Capture { mut first, second } = self;
        let mut gaps = Gaps::default();
        first.for_each(epoch_ns, |row| {
            gaps.note(&row);
            Ok(())
        })?;
        let other = second.and_then(|second| second.rows_where(epoch_ns, |row| gaps.wants(row)).ok());
        other.into_iter().flatten().for_each(|other| gaps.offer(&other));
        let mut table = TableWriter::create(path, epoch_ns)?;
        let mut filled = 0;
        first.for_each(epoch_ns, |mut row| {
            filled += u64::from(gaps.fill(&mut row));
            Ok(table.write(&row)?)
        })?;
        table.close()?;
        Ok(Reconciliation { filled, ..first.reconciliation().clone() })
    }
}
