//! Requests of blktrace's binary stream. The layout of its records is in [`crate::blktrace`].
//!
//! A request is issued to the driver (`D`) and completed (`C`) at a device and sector. Its arrival is the queueing of its
//! first bio (`Q`), if recorded. Merges and splits are followed: a merged bio is not a request. Requests are returned in
//! the order of issue. A request without a recorded completion has no response time and is counted; a completion without
//! an issue is counted too. A device is `MAJOR:MINOR`, times are of the recorder's clock (blktrace's own count from its
//! start).
//!
//! blktrace writes a file for every CPU, `NAME.blktrace.CPU`. Given `NAME`, all are read as one, by time.

mod events;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use self::events::Events;
use super::format::Format;
use super::options::Options;
use super::under_way::{LIMIT, Table, UnderWay};
use crate::blktrace::{Event, Record, category};
use crate::input::Input;
use crate::reader::Skipping;
use crate::request::{Devices, TraceOp, TraceRequest};
use crate::{Error, Reader};

pub(super) const FORMAT: Format = Format {
    name: "blktrace",
    about: "blktrace(8), one stream or NAME for all of NAME.blktrace.CPU; the recorder's clock",
    detect: events::begins,
    open: |input, options| Ok(Box::new(Requests::new(vec![input], options.skip_bad))),
};

const SECTOR_BYTES: u64 = 512;
const INCOMPLETE: &str = "requests without a completion (kept, without a response time)";
const UNISSUED: &str = "completions without an issue (left out)";

/// Opens `NAME.blktrace.CPU` of all CPUs; `None` if there is none.
///
/// # Errors
/// One of them cannot be read.
pub(super) fn open_per_cpu(name: &Path, options: &Options) -> Result<Option<Box<dyn Reader>>, Error> {
    if options.format.as_ref().is_some_and(|format| format != FORMAT.name) {
        return Ok(None);
    }
    let folder = name.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Ok(entries) = folder.read_dir() else { return Ok(None) };
    let stem = name.file_name().unwrap_or_default().to_string_lossy();
    let mut files: Vec<(u32, PathBuf)> = entries
        .flatten()
        .filter_map(|entry| {
            let file = entry.file_name().into_string().ok()?;
            let cpu = file.strip_prefix(&*stem)?.strip_prefix(".blktrace.")?.parse().ok()?;
            Some((cpu, entry.path()))
        })
        .collect();
    if files.is_empty() {
        return Ok(None);
    }
    files.sort();
    let inputs: Vec<Input> = files.iter().map(|(_, path)| Input::open(path)).collect::<Result<_, _>>()?;
    Ok(Some(Box::new(Requests::new(inputs, options.skip_bad))))
}

/// A device and a sector of it.
type Place = (u32, u64);

/// Events in the order of time.
pub(super) trait Source: Send {
    /// The next event, or `None` at the end.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged and damage is not to be skipped.
    fn next(&mut self, skipping: &mut Skipping) -> Result<Option<Record>, Error>;
}

pub(super) struct Requests<S> {
    events: S,
    queued: Queued,
    under_way: UnderWay<Place>,
    /// Numbers of the devices.
    numbers: Table<u32, u32>,
    ended: bool,
    devices: Devices,
    skipping: Skipping,
}

impl Requests<Events> {
    fn new(inputs: Vec<Input>, skip_bad: bool) -> Self {
        Requests::of(Events::new(inputs), skip_bad)
    }
}

impl<S: Source> Requests<S> {
    pub(super) fn of(events: S, skip_bad: bool) -> Self {
        Requests {
            events,
            queued: Queued::default(),
            under_way: UnderWay::new(),
            numbers: Table::default(),
            ended: false,
            devices: Devices::default(),
            skipping: Skipping::new(skip_bad),
        }
    }

    fn event(&mut self, record: &Record) {
        let place = (record.device, record.sector);
        let end = (record.device, record.sector.saturating_add(u64::from(record.bytes) / SECTOR_BYTES));
        match record.event() {
            Event::Queue => self.queued.add(place, time_ns(record), record.pid),
            // Front merge: the request now begins with the bio, but arrived before it.
            Event::FrontMerge => {
                if let Some((since_ns, pid)) = self.queued.take(end) {
                    self.queued.add(place, since_ns, pid);
                }
            }
            Event::BackMerge => {
                self.queued.take(place);
            }
            Event::Split => {
                if let (Some(rest), Some((since_ns, pid))) = (record.split_at(), self.queued.get(place)) {
                    self.queued.add((record.device, rest), since_ns, pid);
                }
            }
            Event::Issue => self.issue(record, place),
            Event::Requeue => {
                if let Some(request) = self.under_way.withdraw(place) {
                    let since = (request.queueing_ns.is_some(), request.arrival_ns, request.pid);
                    if let (true, since_ns, Some(pid)) = since {
                        self.queued.add(place, since_ns, pid);
                    }
                }
            }
            Event::Complete => match self.under_way.end(place) {
                Some(request) => {
                    request.response_ns = time_ns(record).checked_sub(request.arrival_ns);
                }
                None => self.skipping.note(UNISSUED),
            },
            _ => {}
        }
    }

    fn issue(&mut self, record: &Record, place: Place) {
        let issued_ns = time_ns(record);
        let queued = self.queued.take(place);
        let (arrival_ns, pid) = queued.unwrap_or((issued_ns, record.pid));
        let device = *self.numbers.entry(record.device).or_insert_with(|| {
            let name = format!("{}:{}", record.device >> 20, record.device & 0xf_ffff);
            self.devices.number(name.as_bytes())
        });
        let request = TraceRequest {
            arrival_ns,
            queueing_ns: queued.and_then(|_| issued_ns.checked_sub(arrival_ns)),
            device,
            op: op(record.categories(), u64::from(record.bytes)),
            offset_bytes: record.sector.saturating_mul(SECTOR_BYTES),
            size_bytes: u64::from(record.bytes),
            pid: Some(pid),
            ..TraceRequest::default()
        };
        self.under_way.begin(place, request);
    }
}

/// The operation of a request with these categories and data.
pub(super) fn op(categories: u16, size_bytes: u64) -> TraceOp {
    let is = |bit| categories & bit != 0;
    match () {
        () if is(category::DISCARD) => TraceOp::Discard,
        () if is(category::FLUSH) && size_bytes == 0 => TraceOp::Flush,
        () if is(category::WRITE) && is(category::FUA) => TraceOp::WriteFua,
        () if is(category::WRITE) => TraceOp::Write,
        () if is(category::READ) => TraceOp::Read,
        () => TraceOp::Other,
    }
}

/// Times saturate after 292 years.
fn time_ns(record: &Record) -> i64 {
    i64::try_from(record.time_ns).unwrap_or(i64::MAX)
}

impl<S: Source> Reader for Requests<S> {
    fn next_request(&mut self) -> Result<Option<TraceRequest>, Error> {
        loop {
            if let Some((request, complete)) = self.under_way.next(self.ended) {
                if !complete {
                    self.skipping.note(INCOMPLETE);
                }
                return Ok(Some(request));
            }
            if self.ended {
                return Ok(None);
            }
            match self.events.next(&mut self.skipping)? {
                Some(record) => self.event(&record),
                None => self.ended = true,
            }
        }
    }

    fn devices(&self) -> &Devices {
        &self.devices
    }

    fn skipped(&self) -> &Skipping {
        &self.skipping
    }
}

/// Queued bios that were not issued yet: time and process. The oldest are dropped above the limit of pending bios.
#[derive(Default)]
struct Queued {
    bios: Table<Place, (i64, u32, u64)>,
    /// In the order of queueing, with a number that distinguishes bios of one position.
    order: VecDeque<(Place, u64)>,
    added: u64,
}

impl Queued {
    fn add(&mut self, place: Place, since_ns: i64, pid: u32) {
        self.added += 1;
        self.bios.insert(place, (since_ns, pid, self.added));
        self.order.push_back((place, self.added));
        while self.order.len() > LIMIT
            || self.order.front().is_some_and(|(place, number)| !self.is(place, *number))
        {
            if let Some((place, number)) = self.order.pop_front()
                && self.is(&place, number)
            {
                self.bios.remove(&place);
            }
        }
    }

    /// Whether a place's bio is still the one of a number.
    fn is(&self, place: &Place, number: u64) -> bool {
        self.bios.get(place).is_some_and(|(_, _, newest)| *newest == number)
    }

    fn get(&self, place: Place) -> Option<(i64, u32)> {
        self.bios.get(&place).map(|(since_ns, pid, _)| (*since_ns, *pid))
    }

    fn take(&mut self, place: Place) -> Option<(i64, u32)> {
        self.bios.remove(&place).map(|(since_ns, pid, _)| (since_ns, pid))
    }
}
