//! Outstanding bios and requests of one disk, by sector.

use std::collections::{HashMap, VecDeque};

use weir_trace::blktrace::{Record, category};

use crate::block::Counters;

/// An outstanding bio or request.
#[derive(Debug, Clone)]
pub(super) struct Pending {
    pub(super) sector: u64,
    pub(super) bytes: u64,
    pub(super) categories: u16,
    pub(super) pid: u32,
    pub(super) cgroup: Option<u64>,
    pub(super) queued_ns: Option<u64>,
    pub(super) inserted_ns: Option<u64>,
    pub(super) issued_ns: Option<u64>,
    /// Whether it is a flush sequence, with flushes before or after its data: it ends with a completion of no bytes.
    pub(super) in_flush_sequence: bool,
    /// Bytes whose completion is still to come.
    pub(super) left: u64,
}

impl Pending {
    pub(super) fn new(record: &Record) -> Self {
        Pending {
            sector: record.sector,
            bytes: u64::from(record.bytes),
            categories: record.categories(),
            pid: record.pid,
            cgroup: record.cgroup(),
            queued_ns: None,
            inserted_ns: None,
            issued_ns: None,
            in_flush_sequence: false,
            left: u64::from(record.bytes),
        }
    }

    fn end(&self) -> u64 {
        sector_after(self.sector, self.bytes)
    }
}

/// The sector after `bytes` from `sector`; a damaged recording may name one that no disk has.
pub(super) fn sector_after(sector: u64, bytes: u64) -> u64 {
    sector.saturating_add(bytes / 512)
}

/// Outstanding bios and requests of one disk; each list has those with the same first sector, and is short.
#[derive(Default)]
pub(super) struct UnderWay {
    bios: HashMap<u64, VecDeque<Pending>>,
    pub(super) requests: HashMap<u64, VecDeque<Pending>>,
    /// Start of each unissued request by its end, for merges.
    ends: HashMap<u64, u64>,
    /// Writes whose data are done but whose flush sequence is not, by start: indices into the rows.
    pub(super) flushing: HashMap<u64, usize>,
    pub(super) counters: Counters,
}

/// Takes the first match from the list at `sector`.
fn take(
    lists: &mut HashMap<u64, VecDeque<Pending>>,
    sector: u64,
    suits: impl Fn(&Pending) -> bool,
) -> Option<Pending> {
    let list = lists.get_mut(&sector)?;
    let taken = list.iter().position(suits).and_then(|at| list.remove(at));
    if list.is_empty() {
        lists.remove(&sector);
    }
    taken
}

impl UnderWay {
    pub(super) fn queue(&mut self, record: &Record) {
        self.counters.bios_queued += 1;
        let mut bio = Pending::new(record);
        bio.queued_ns = Some(record.time_ns);
        self.bios.entry(record.sector).or_default().push_back(bio);
    }

    /// Splits: the record is of the front part; the rest keeps its arrival time and begins at the payload's sector.
    pub(super) fn split(&mut self, record: &Record) {
        self.counters.splits += 1;
        let Some(rest_at) = record.split_at() else { return };
        if rest_at <= record.sector {
            return;
        }
        let Some(mut bio) = take(&mut self.bios, record.sector, |bio| bio.end() > rest_at) else { return };
        let mut rest = bio.clone();
        rest.sector = rest_at;
        rest.bytes = (bio.end() - rest_at) * 512;
        rest.left = rest.bytes;
        bio.bytes -= rest.bytes;
        bio.left = bio.bytes;
        self.bios.entry(rest.sector).or_default().push_back(rest);
        self.bios.entry(bio.sector).or_default().push_front(bio);
    }

    fn take_bio(&mut self, record: &Record) -> Option<Pending> {
        let bytes = u64::from(record.bytes);
        take(&mut self.bios, record.sector, |bio| bio.bytes == bytes)
    }

    fn add_request(&mut self, request: Pending) {
        self.ends.insert(request.end(), request.sector);
        self.requests.entry(request.sector).or_default().push_back(request);
    }

    pub(super) fn get_request(&mut self, record: &Record) {
        let request = self.take_bio(record).unwrap_or_else(|| Pending::new(record));
        self.add_request(request);
    }

    fn waiting(&mut self, sector: u64, bytes: Option<u64>) -> Option<Pending> {
        take(&mut self.requests, sector, |request| {
            request.issued_ns.is_none() && bytes.is_none_or(|bytes| request.bytes == bytes)
        })
    }

    pub(super) fn back_merge(&mut self, record: &Record) {
        let bytes = u64::from(record.bytes);
        // A bio, or otherwise the following request, is absorbed.
        if self.take_bio(record).is_some() {
            self.counters.bio_back_merges += 1;
        } else if let Some(next) = self.waiting(record.sector, Some(bytes)) {
            self.counters.request_merges += 1;
            self.ends.remove(&next.end());
        } else {
            return;
        }
        let Some(start) = self.ends.remove(&record.sector) else { return };
        let end = record.sector;
        if let Some(mut request) =
            take(&mut self.requests, start, |request| request.issued_ns.is_none() && request.end() == end)
        {
            request.bytes += bytes;
            request.left = request.bytes;
            self.add_request(request);
        }
    }

    pub(super) fn front_merge(&mut self, record: &Record) {
        let bytes = u64::from(record.bytes);
        self.counters.bio_front_merges += 1;
        let _ = self.take_bio(record);
        if let Some(mut request) = self.waiting(sector_after(record.sector, bytes), None) {
            request.sector = record.sector;
            request.bytes += bytes;
            request.left = request.bytes;
            self.add_request(request);
        }
    }

    pub(super) fn insert(&mut self, record: &Record) {
        if let Some(mut request) = self.waiting(record.sector, Some(u64::from(record.bytes))) {
            request.inserted_ns = Some(record.time_ns);
            self.add_request(request);
        }
    }

    pub(super) fn issue(&mut self, record: &Record) {
        self.counters.issued += 1;
        let unknown = Pending { cgroup: None, pid: 0, ..Pending::new(record) };
        let mut request = if is_device_flush(record.categories()) {
            unknown
        } else {
            self.waiting(record.sector, Some(u64::from(record.bytes))).unwrap_or_else(|| {
                self.counters.arrival_unknown += 1;
                unknown
            })
        };
        let asked = request.categories & (category::FLUSH | category::FUA);
        request.in_flush_sequence = request.bytes > 0 && asked & !record.categories() != 0;
        self.ends.remove(&request.end());
        request.issued_ns = Some(record.time_ns);
        self.requests.entry(request.sector).or_default().push_back(request);
    }

    pub(super) fn requeue(&mut self, record: &Record) {
        self.counters.requeued += 1;
        let bytes = u64::from(record.bytes);
        if let Some(mut request) = take(&mut self.requests, record.sector, |request| {
            request.issued_ns.is_some() && request.left == bytes
        }) {
            request.issued_ns = None;
            self.add_request(request);
        }
    }

    /// The issued request of a completion; an empty flush completes without being issued.
    pub(super) fn take_completed(&mut self, record: &Record) -> Option<Pending> {
        let bytes = u64::from(record.bytes);
        let flush = is_device_flush(record.categories());
        take(&mut self.requests, record.sector, |request| {
            let same_kind = is_device_flush(request.categories) == flush;
            same_kind && request.left >= bytes && (request.issued_ns.is_some() == (flush || bytes > 0))
        })
        .inspect(|request| {
            if request.issued_ns.is_none() {
                self.ends.remove(&request.end());
            }
        })
    }

    /// Whether a completion of no bytes belongs to a request whose data were completed already.
    pub(super) fn has_partial(&self, record: &Record) -> bool {
        record.bytes == 0 && self.requests.contains_key(&record.sector)
    }
}

/// Whether it is the block layer's own flush, which is not a write and has no data.
pub(super) fn is_device_flush(categories: u16) -> bool {
    categories & category::FLUSH != 0 && categories & category::WRITE == 0
}
