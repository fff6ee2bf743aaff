//! Capturing what the block layer does while a run's requests are sent.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use weir_collectors::block::{Collector, Options};
use weir_collectors::{Disk, Reconciliation, fill, ftrace};
use weir_records::write_all;
use weir_studies::Capture as Wanted;

use crate::Error;

/// A capture under way.
pub(crate) struct Capture {
    /// The collector, or why there is none.
    collector: Result<Collector, String>,
    /// The kernel's own trace of the same disks, for completions that BPF missed; absent where it is not to be had.
    second: Option<ftrace::Collector>,
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
        let begin = |disks: &[&str]| {
            let disks = disks.iter().map(|disk| Disk::find(disk)).collect::<Result<Vec<_>, _>>()?;
            let collector = Collector::start(&disks, Options::spooled_to(folder))?;
            Ok::<_, weir_collectors::Error>((collector, ftrace::Collector::start(&disks, folder).ok()))
        };
        let (collector, second) = match begin(disks) {
            Ok((collector, second)) => (Ok(collector), second),
            Err(error) if wanted == Wanted::Optional => (Err(format!("nothing was captured: {error}")), None),
            Err(error) => {
                return Err(Error::Failed(format!(
                    "{error}; a study that can do without the block layer's view says `capture: optional`"
                )));
            }
        };
        Ok(Some(Capture { collector, second, out: out.to_owned() }))
    }

    /// Ends the capture and writes `block.parquet`, times relative to the epoch.
    pub(crate) fn stop(self, epoch_ns: i64) -> Recording {
        let Capture { collector, second, out } = self;
        Recording(collector.and_then(|collector| {
            write(collector, second, &out, epoch_ns).map_err(|error| error.to_string())
        }))
    }
}

fn write(
    collector: Collector,
    second: Option<ftrace::Collector>,
    out: &Path,
    epoch_ns: i64,
) -> Result<Reconciliation, weir_collectors::Error> {
    let capture = collector.stop();
    // Stopped whatever became of the first: it has settings to put back. Without it the loss stays a loss.
    let second = second.and_then(|second| second.stop().ok());
    let (mut rows, mut reconciliation) = capture?.into_rows(epoch_ns)?;
    if reconciliation.lost > reconciliation.filled
        && let Some(Ok(other)) = second.map(|second| second.into_rows(epoch_ns))
    {
        reconciliation.filled += fill::fill(&mut rows, &other.rows);
    }
    write_all(out, epoch_ns, &rows)?;
    Ok(reconciliation)
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
