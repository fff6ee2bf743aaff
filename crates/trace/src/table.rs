//! Reader of weir's own `requests.parquet` as a trace, for the same statistics and filters as recorded traces.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use weir_records::{Request, TableReader};

use crate::reader::Skipping;
use crate::request::{Devices, TraceRequest};
use crate::{Error, Reader};

/// Reader of a table of requests. Arrivals are intended times; an unnamed device has the name of its class; the object is the
/// file's number.
pub struct Table {
    rows: TableReader<Request>,
    devices: Devices,
    skipping: Skipping,
}

impl Table {
    /// Whether a file begins like Parquet. The format needs a regular file, not a pipe.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn is_one(path: &Path) -> Result<bool, Error> {
        let io = |source| Error::Io { path: path.to_owned(), source };
        let file = File::open(path).map_err(io)?;
        if !file.metadata().map_err(io)?.is_file() {
            return Ok(false);
        }
        let mut magic = Vec::new();
        file.take(4).read_to_end(&mut magic).map_err(io)?;
        Ok(magic == b"PAR1")
    }

    /// Opens a table.
    ///
    /// # Errors
    /// The table is damaged, or is no table of requests.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Ok(Table {
            rows: TableReader::open(path)?,
            devices: Devices::default(),
            skipping: Skipping::new(false),
        })
    }
}

impl Reader for Table {
    fn next_request(&mut self) -> Result<Option<TraceRequest>, Error> {
        let Some(row) = self.rows.next().transpose()? else { return Ok(None) };
        let since = |time: Option<i64>| time.and_then(|time| time.checked_sub(row.intended_ns));
        Ok(Some(TraceRequest {
            arrival_ns: row.intended_ns,
            queueing_ns: since(row.served_ns),
            response_ns: since(row.completed_ns),
            device: self.devices.number(row.device.as_deref().unwrap_or(&row.class).as_bytes()),
            op: row.op.into(),
            offset_bytes: row.offset,
            size_bytes: row.size_bytes,
            object: row.file.map(u64::from),
            queue_length: None,
            pid: None,
        }))
    }

    fn devices(&self) -> &Devices {
        &self.devices
    }

    fn skipped(&self) -> &Skipping {
        &self.skipping
    }
}
