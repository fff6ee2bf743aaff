//! Capturing what the block layer does while a run's requests are sent.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use weir_collectors::block::{Collector, Options};
use weir_collectors::{Disk, Reconciliation};
use weir_studies::Capture as Wanted;

use crate::Error;

/// A capture under way.
pub(crate) struct Capture {
    /// The collector, or why there is none.
    collector: Result<Collector, String>,
    out: PathBuf,
}

/// What a capture recorded: how it agrees with the kernel's counters, or why there is nothing.
pub(crate) struct Recording(Result<Reconciliation, String>);

impl Capture {
    /// Begins a capture of some disks; `None` where none is wanted or there is no disk.
    ///
    /// # Errors
    /// A capture is required, and this kernel allows none.
    pub(crate) fn start(wanted: Wanted, disks: &[&str], out: &Path) -> Result<Option<Self>, Error> {
        if wanted == Wanted::None || disks.is_empty() {
            return Ok(None);
        }
        let folder = out.parent().unwrap_or(Path::new("."));
        let begin = || {
            let disks = disks.iter().map(|disk| Disk::find(disk)).collect::<Result<Vec<_>, _>>()?;
            Collector::start(&disks, Options::spooled_to(folder))
        };
        let collector = match begin() {
            Ok(collector) => Ok(collector),
            Err(error) if wanted == Wanted::Optional => Err(format!("nothing was captured: {error}")),
            Err(error) => {
                return Err(Error::Failed(format!(
                    "{error}; a study that can do without the block layer's view says `capture: optional`"
                )));
            }
        };
        Ok(Some(Capture { collector, out: out.to_owned() }))
    }

    /// Ends the capture and writes `block.parquet`, times relative to the epoch.
    pub(crate) fn stop(self, epoch_ns: i64) -> Recording {
        let recorded = self.collector.and_then(|collector| {
            let capture = collector.stop().map_err(|error| error.to_string())?;
            capture.write(&self.out, epoch_ns).map_err(|error| error.to_string())
        });
        Recording(recorded)
    }
}

impl Recording {
    /// Share of requests lost, and the words for it; or why nothing was captured.
    pub(crate) fn loss(&self) -> Result<(f64, String), String> {
        let reconciliation = self.0.as_ref().map_err(Clone::clone)?;
        Ok((reconciliation.loss_share(), reconciliation.summary()))
    }

    /// For `observed.json`.
    pub(crate) fn report(&self) -> Value {
        match &self.0 {
            Ok(reconciliation) => json!(reconciliation),
            Err(reason) => json!({"absent": reason}),
        }
    }
}
