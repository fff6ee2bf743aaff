//! Capture of block-layer requests during a run.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use weir_collectors::block::Options;
use weir_collectors::paired::{Collector, Second};
use weir_collectors::{Disk, Reconciliation};
use weir_study::{Capture as Wanted, Run};

use crate::Error;

/// A running capture.
pub(crate) struct Capture {
    /// The collector, or why none was started.
    collector: Result<Collector, String>,
    out: PathBuf,
}

/// Recording of a capture: its reconciliation with the kernel's counters, or why there is none.
pub(crate) struct Recording(Result<Reconciliation, String>);

impl Capture {
    /// Starts a capture of some disks; `None` if none is wanted or there is no disk.
    ///
    /// # Errors
    /// A capture is required, and this host cannot capture.
    pub(crate) fn start(run: &Run, disks: &[&str], out: &Path, state: &Path) -> Result<Option<Self>, Error> {
        let wanted = run.capture;
        if wanted == Wanted::None || disks.is_empty() {
            return Ok(None);
        }
        let folder = out.parent().unwrap_or(Path::new("."));
        let begin = |disks: &[&str]| {
            let disks = disks.iter().map(|disk| Disk::find(disk)).collect::<Result<Vec<_>, _>>()?;
            let second = if run.fill_losses { Second::IfPossible } else { Second::No };
            Collector::start(&disks, Options::spooled_to(folder), second, folder, state)
        };
        let collector = match begin(disks) {
            Ok(collector) => Ok(collector),
            Err(error) if wanted == Wanted::Optional => Err(format!("nothing was captured: {error}")),
            Err(error) => {
                return Err(Error::Failed(format!(
                    "{error}. If the study does not need block requests, write `capture: optional`"
                )));
            }
        };
        Ok(Some(Capture { collector, out: out.to_owned() }))
    }

    /// Ends the capture and writes `block.parquet`, with times relative to the epoch.
    pub(crate) fn stop(self, epoch_ns: i64) -> Recording {
        let Capture { collector, out } = self;
        let write = |collector: Collector| collector.stop()?.write(&out, epoch_ns);
        Recording(collector.and_then(|collector| write(collector).map_err(|error| error.to_string())))
    }
}

impl Recording {
    /// Share of requests lost, with a text; or why nothing was captured.
    pub(crate) fn loss(&self) -> Result<(f64, String), String> {
        let reconciliation = self.0.as_ref().map_err(Clone::clone)?;
        Ok((reconciliation.loss_share(), reconciliation.summary()))
    }

    /// Report for `observed.json`.
    pub(crate) fn report(&self) -> Value {
        match &self.0 {
            Ok(reconciliation) => json!(reconciliation),
            Err(reason) => json!({"absent": reason}),
        }
    }
}
