//! Capturing what the block layer does while a run's requests are sent.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use weir_collectors::block::{Collector, Options};
use weir_collectors::ftrace::BlindSpot;
use weir_collectors::{Disk, Reconciliation};
use weir_records::TableWriter;
use weir_studies::Capture as Wanted;

use crate::Error;

/// A capture under way.
pub(crate) struct Capture {
    /// The collector, or why there is none.
    collector: Result<Collector, String>,
    /// Sees what this kernel hides from BPF; absent where tracing is not to be had.
    blind_spot: Option<BlindSpot>,
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
            Ok::<_, weir_collectors::Error>((collector, BlindSpot::watch(&disks).ok()))
        };
        let (collector, blind_spot) = match begin(disks) {
            Ok((collector, blind_spot)) => (Ok(collector), blind_spot),
            Err(error) if wanted == Wanted::Optional => (Err(format!("nothing was captured: {error}")), None),
            Err(error) => {
                return Err(Error::Failed(format!(
                    "{error}; a study that can do without the block layer's view says `capture: optional`"
                )));
            }
        };
        Ok(Some(Capture { collector, blind_spot, out: out.to_owned() }))
    }

    /// Ends the capture and writes `block.parquet`, times relative to the epoch.
    pub(crate) fn stop(self, epoch_ns: i64) -> Recording {
        let Capture { collector, blind_spot, out } = self;
        Recording(collector.and_then(|collector| {
            write(collector, blind_spot, &out, epoch_ns).map_err(|error| error.to_string())
        }))
    }
}

fn write(
    collector: Collector,
    blind_spot: Option<BlindSpot>,
    out: &Path,
    epoch_ns: i64,
) -> Result<Reconciliation, weir_collectors::Error> {
    let capture = collector.stop()?;
    let mut hidden = blind_spot.map(BlindSpot::end).transpose()?.unwrap_or_default();
    let mut table = TableWriter::create(out, epoch_ns)?;
    let mut filled = 0;
    let mut reconciliation = capture.for_each(epoch_ns, |mut row| {
        filled += u64::from(hidden.fill(&mut row, epoch_ns));
        Ok(table.write(&row)?)
    })?;
    table.close()?;
    reconciliation.filled += filled;
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
