//! `series.parquet` of a run: responses over time.

use std::path::Path;

use weir_records::SeriesWriter;
use weir_study::Run;

use crate::Error;

/// Length of an interval, and of those of runs that are longer than `LONG_NS`.
const INTERVAL_NS: i64 = 100_000_000;
const LONG_INTERVAL_NS: i64 = 1_000_000_000;
const LONG_NS: i64 = 3_600_000_000_000;

/// Creates the table in a folder.
///
/// # Errors
/// The file cannot be created.
pub(crate) fn create(run: &Run, folder: &Path, epoch_ns: i64) -> Result<SeriesWriter, Error> {
    let interval_ns = if run.length_ns() > LONG_NS { LONG_INTERVAL_NS } else { INTERVAL_NS };
    SeriesWriter::create(&folder.join("series.parquet"), epoch_ns, interval_ns).map_err(Error::failed)
}
