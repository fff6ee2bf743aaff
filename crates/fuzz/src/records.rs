//! Fuzz targets of the files of a run and of recorded events.

use std::io::Write as _;

use weir_records::{BlockRequest, Page, Record, Request, TableReader};

/// A table of any kind.
///
/// The library that decodes tables panics at some damage. The reader catches this and returns an error. Only a panic that
/// the reader does not catch fails this target.
pub(crate) fn parquet(data: &[u8]) {
    #[cfg(feature = "libfuzzer")]
    {
        static QUIET: std::sync::Once = std::sync::Once::new();
        QUIET.call_once(|| std::panic::set_hook(Box::new(|_| ())));
    }
    let Some((kind, file)) = crate::choice(data, 3) else { return };
    match kind {
        0 => table::<Request>(file),
        1 => table::<BlockRequest>(file),
        _ => table::<Page>(file),
    }
}

/// The rows of a table. Its reader needs a file, which is in memory.
fn table<R: Record>(bytes: &[u8]) {
    let memory = std::path::Path::new("/dev/shm");
    let made = if memory.is_dir() {
        tempfile::NamedTempFile::new_in(memory)
    } else {
        tempfile::NamedTempFile::new()
    };
    let Ok(mut file) = made else { return };
    if file.write_all(bytes).is_err() {
        return;
    }
    let Ok(reader) = TableReader::<R>::open(file.path()) else { return };
    for row in reader {
        if row.is_err() {
            break;
        }
    }
}

/// JSON of runs, plans, testbeds, verdicts and servers' states.
pub(crate) fn json(data: &[u8]) {
    weir_runner::fuzzing::json(data);
    weir_blockserver::fuzzing::state(data);
}

/// fio's logs.
pub(crate) fn fio_log(data: &[u8]) {
    weir_runner::fuzzing::fio_logs(data);
}

/// The binary events of ftrace and blktrace.
pub(crate) fn block_events(data: &[u8]) {
    weir_collectors::fuzzing::events(data);
}
