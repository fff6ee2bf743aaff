//! Tables of a run, and what its rules and reports need of its requests, in one pass over them.

use weir_records::{Op, Page, Request, TableWriter};
use weir_study::Run;

use crate::Error;
use crate::cgroup::class_groups::Asked;
use crate::context::run_context::RunContext;
use crate::daemon::hot_documents::HotCount;
use crate::load::access;
use crate::run::measure::Measured;
use crate::run::prepare::Prepared;
use crate::run::series;
use crate::validity::transit::Waits;

/// Figures of all requests of a run.
pub(crate) struct Tally<'a> {
    pub(crate) requests: u64,
    /// Requests whose status is not 0.
    pub(crate) failed: u64,
    /// Status of the first of them.
    pub(crate) first_failure: Option<i32>,
    /// Bytes that completed requests read, without those that may come from the page cache.
    pub(crate) read_bytes: u64,
    pub(crate) waits: Waits,
    pub(crate) asked: Asked,
    pub(crate) hot: Vec<HotCount<'a>>,
    /// Of the access benchmark: the classes whose bytes the devices must have delivered.
    uncached: Option<Vec<String>>,
}

impl<'a> Tally<'a> {
    fn new(run: &Run, prepared: &'a Prepared) -> Self {
        Tally {
            requests: 0,
            failed: 0,
            first_failure: None,
            read_bytes: 0,
            waits: Waits::new(run),
            asked: Asked::default(),
            hot: prepared.hot.iter().map(|hot| hot.count()).collect(),
            uncached: run.access.as_ref().map(access::uncached_classes),
        }
    }

    fn add(&mut self, row: &Request) {
        self.requests += 1;
        if row.status != 0 {
            self.failed += 1;
            self.first_failure.get_or_insert(row.status);
        }
        let is_read = match &self.uncached {
            Some(classes) => classes.iter().any(|class| **class == *row.class),
            None => row.op == Op::Read && row.status == 0 && row.completed_ns.is_some(),
        };
        self.read_bytes += if is_read { row.size_bytes } else { 0 };
        self.waits.add(row);
        self.asked.add(row);
        self.hot.iter_mut().for_each(|hot| hot.add(row));
    }
}

/// Numbers the requests of a run in order of intended time and writes `requests.parquet`, `series.parquet` and, of a run with
/// sites, `pages.parquet`. The requests are used up.
///
/// # Errors
/// A file cannot be written, or the requests cannot be read back from their spool.
pub(crate) fn write<'a>(
    context: &RunContext<'_>,
    prepared: &'a Prepared,
    measured: &mut Measured,
) -> Result<Tally<'a>, Error> {
    let RunContext { run, partial, .. } = *context;
    let epoch_ns = measured.epoch_ns;
    let sent = &mut measured.sent;
    let mut tally = Tally::new(run, prepared);
    let mut requests =
        TableWriter::create(&partial.join("requests.parquet"), epoch_ns).map_err(Error::failed)?;
    let mut series = series::create(run, partial, epoch_ns)?;
    let mut pages = None;
    if !prepared.sites.is_empty() {
        let path = partial.join("pages.parquet");
        pages = Some(TableWriter::<Page>::create(&path, epoch_ns).map_err(Error::failed)?);
    }
    for (noted, number) in sent.requests.sorted().map_err(Error::failed)?.zip(0..) {
        let (mut row, note) = noted.map_err(Error::failed)?;
        row.request = number;
        tally.add(&row);
        requests.write(&row).and_then(|()| series.add(&row)).map_err(Error::failed)?;
        if let (Some(pages), Some(page)) = (&mut pages, sent.visited.page(&row, note)) {
            pages.write(&page).map_err(Error::failed)?;
        }
    }
    requests.close().map_err(Error::failed)?;
    series.close().map_err(Error::failed)?;
    pages.map(TableWriter::close).transpose().map_err(Error::failed)?;
    Ok(tally)
}
