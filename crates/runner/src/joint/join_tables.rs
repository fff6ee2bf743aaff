//! Merged tables of all parts of a run, on the coordinator's clock.

use std::iter::Peekable;
use std::path::Path;
use std::sync::Arc;

use weir_coordination::Record;
use weir_records::{BlockRequest, OfHost, Request, SeriesWriter, TableReader, TableWriter};

use crate::Error;

/// Converts a part's times, relative to the run's epoch on that host's clock, to the coordinator's clock.
pub(super) struct Teller {
    record: Record,
}

impl Teller {
    pub(super) fn new(record: &Record) -> Self {
        Teller { record: record.clone() }
    }

    fn tell(&self, time_ns: i64) -> i64 {
        match (&self.record.clocks, self.record.local_epoch_ns, self.record.epoch_ns) {
            (Some(clocks), Some(local), Some(epoch)) => {
                clocks.to_coordinator_ns(local.saturating_add(time_ns)).saturating_sub(epoch)
            }
            _ => time_ns,
        }
    }

    fn request(&self, mut row: Request) -> Request {
        row.intended_ns = self.tell(row.intended_ns);
        for time in [&mut row.submitted_ns, &mut row.completed_ns, &mut row.deadline_ns, &mut row.served_ns] {
            *time = time.map(|time_ns| self.tell(time_ns));
        }
        row
    }

    fn block(&self, mut row: BlockRequest) -> BlockRequest {
        for time in [&mut row.queued_ns, &mut row.inserted_ns, &mut row.issued_ns, &mut row.completed_ns] {
            *time = time.map(|time_ns| self.tell(time_ns));
        }
        row
    }
}

/// Table of one part.
struct Source {
    rows: Peekable<TableReader<Request>>,
    teller: Teller,
    host: Arc<str>,
    client: u64,
}

/// Merges `requests.parquet` of the clients in order of intended time, with their series, and renumbers requests and clients: clients of the
/// second host follow those of the first. Returns the number of rows.
///
/// # Errors
/// A table is absent or damaged, or the disk is full.
pub(super) fn requests(
    parts: &Path,
    records: &[Record],
    clients_of: impl Fn(&str) -> u32,
    epoch_ns: i64,
    out: &Path,
    mut series: SeriesWriter,
) -> Result<u64, Error> {
    let mut sources = Vec::new();
    for record in records {
        let Some(client) = record.client else { continue };
        let table =
            TableReader::open(&parts.join(&record.host).join("requests.parquet")).map_err(Error::failed)?;
        sources.push(Source {
            rows: table.peekable(),
            teller: Teller::new(record),
            host: record.host.as_str().into(),
            client: client as u64,
        });
    }
    let mut writer = TableWriter::create(out, epoch_ns).map_err(Error::failed)?;
    let mut number = 0;
    loop {
        // A part keeps its own order: converted times keep their order.
        let mut next: Option<(i64, usize)> = None;
        for (at, source) in sources.iter_mut().enumerate() {
            let due_ns = match source.rows.peek() {
                None => continue,
                // Damage is reported first.
                Some(Err(_)) => i64::MIN,
                Some(Ok(row)) => source.teller.tell(row.intended_ns),
            };
            if next.is_none_or(|(known_ns, _)| due_ns < known_ns) {
                next = Some((due_ns, at));
            }
        }
        let Some((_, at)) = next else { break };
        let source = &mut sources[at];
        let Some(row) = source.rows.next() else { break };
        let mut row = source.teller.request(row.map_err(Error::failed)?);
        let through = u64::from(row.client) + source.client * u64::from(clients_of(&row.class));
        row.client = u32::try_from(through).map_err(|_| {
            Error::Failed(format!(
                "class {}: more clients than a 32-bit number can count. Use fewer",
                row.class
            ))
        })?;
        row.request = number;
        number += 1;
        series.add(&row).map_err(Error::failed)?;
        writer.write(&OfHost { row, host: Arc::clone(&source.host) }).map_err(Error::failed)?;
    }
    series.close().map_err(Error::failed)?;
    writer.close().map_err(Error::failed)
}

/// Concatenates `block.parquet` of all parts that have one; writes nothing if none has.
///
/// # Errors
/// A table is damaged, or the disk is full.
pub(super) fn blocks(parts: &Path, records: &[Record], epoch_ns: i64, out: &Path) -> Result<(), Error> {
    let mut writer: Option<TableWriter<OfHost<BlockRequest>>> = None;
    for record in records {
        let path = parts.join(&record.host).join("block.parquet");
        if !path.exists() {
            continue;
        }
        let (teller, host): (_, Arc<str>) = (Teller::new(record), record.host.as_str().into());
        if writer.is_none() {
            writer = Some(TableWriter::create(out, epoch_ns).map_err(Error::failed)?);
        }
        for row in TableReader::<BlockRequest>::open(&path).map_err(Error::failed)? {
            let row = teller.block(row.map_err(Error::failed)?);
            if let Some(writer) = &mut writer {
                writer.write(&OfHost { row, host: Arc::clone(&host) }).map_err(Error::failed)?;
            }
        }
    }
    writer.map(TableWriter::close).transpose().map(drop).map_err(Error::failed)
}
