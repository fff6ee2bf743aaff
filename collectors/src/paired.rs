//! BPF collector paired with a second source, which fills missed completions.

use std::path::Path;
use std::sync::Arc;

use weir_records::{BlockRequest, TableWriter};

use crate::block::{self, Options};
use crate::disk::Disk;
use crate::error::Error;
use crate::fill::{Completion, Gaps};
use crate::ftrace;
use crate::reconcile::Reconciliation;

/// Whether ftrace records completions beside the BPF programs.
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
        let losses = Arc::clone(&options.losses);
        let start = || ftrace::Collector::start_for_losses(devices, directory, state, losses);
        let second = match second {
            Second::No => None,
            Second::IfPossible => start().ok(),
            Second::Required => Some(start()?),
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
    pub fn into_rows(mut self, epoch_ns: i64) -> Result<(Vec<BlockRequest>, Reconciliation), Error> {
        let mut rows = Vec::new();
        let reconciliation = self.for_each(epoch_ns, |row| {
            rows.push(row);
            Ok(())
        })?;
        Ok((rows, reconciliation))
    }

    /// Writes `block.parquet`. Of the rows, those without a completion are in memory.
    ///
    /// # Errors
    /// As [`Capture::into_rows`], or the disk is full.
    pub fn write(mut self, path: &Path, epoch_ns: i64) -> Result<Reconciliation, Error> {
        let mut table = TableWriter::create(path, epoch_ns)?;
        let reconciliation = self.for_each(epoch_ns, |row| Ok(table.write(&row)?))?;
        table.close()?;
        Ok(reconciliation)
    }

    /// Calls `each` with every row, filled.
    fn for_each(
        &mut self,
        epoch_ns: i64,
        mut each: impl FnMut(BlockRequest) -> Result<(), Error>,
    ) -> Result<Reconciliation, Error> {
        let mut gaps = Gaps::default();
        if let Some(second) = self.second.take_if(|_| self.first.reconciliation().lost > 0) {
            self.first.for_each(epoch_ns, |row| {
                gaps.note(&row);
                Ok(())
            })?;
            let ended_ns = self.first.ended_ns() - epoch_ns;
            let offer = |completion: Completion| {
                if completion.completed_ns <= ended_ns {
                    gaps.offer(completion);
                }
            };
            // Without the second source losses are counted, and not filled.
            if second.each_completion(epoch_ns, offer).is_ok() {
                self.first.for_each(epoch_ns, |row| {
                    gaps.exclude(&row);
                    Ok(())
                })?;
            } else {
                gaps = Gaps::default();
            }
        }
        let mut filled = 0;
        self.first.for_each(epoch_ns, |mut row| {
            filled += u64::from(gaps.fill(&mut row, "ftrace"));
            each(row)
        })?;
        Ok(Reconciliation { filled, ..self.first.reconciliation().clone() })
    }
}
