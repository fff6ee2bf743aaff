//! Spool of a run's requests: taken in any order, given back in that of the run's table, in bounded memory.
//!
//! A run sees requests in order of completion, and its table is in order of intended time. Requests are sorted in chunks; all
//! chunks but the last are written, encoded, to an unlinked file, and merged at the end.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{Error, Op, Request};

/// Requests in one chunk: 40 MB in memory, about 8 MB encoded.
const CHUNK_REQUESTS: usize = 1 << 18;
/// Memory of all chunks that are merged, and the least of one chunk.
const MERGE_BYTES: usize = 64 << 20;
const LEAST_MERGE_BYTES: usize = 4096;
/// More than the longest encoded request has.
const LONGEST_BYTES: usize = 192;

/// A request, and a number that goes with it.
pub type Noted = (Request, u64);

/// Requests in bounded memory.
pub struct RequestSpool {
    directory: PathBuf,
    /// Place of each class among requests of the same time, from 1; others are 0.
    places: Arc<HashMap<Arc<str>, u32>>,
    chunk_requests: usize,
    requests: u64,
    pending: Vec<Noted>,
    stored: Vec<Stored>,
    file: Option<Output>,
    buffer: Vec<u8>,
    failure: Option<Error>,
}

/// The unlinked file, and the names that its requests refer to by number.
struct Output {
    file: Arc<File>,
    end: u64,
    names: Names,
}

#[derive(Default)]
struct Names {
    numbers: HashMap<Arc<str>, u64>,
    all: Vec<Arc<str>>,
}

impl Names {
    fn number(&mut self, name: &Arc<str>) -> u64 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.all.len() as u64;
        self.all.push(Arc::clone(name));
        self.numbers.insert(Arc::clone(name), number);
        number
    }
}

/// A chunk in the file.
struct Stored {
    file: Arc<File>,
    names: Arc<[Arc<str>]>,
    from: u64,
    end: u64,
}

impl RequestSpool {
    /// An empty spool with an overflow file in `directory`. Requests of the same intended time are in the order of these classes.
    pub fn new(directory: &Path, classes: impl IntoIterator<Item = Arc<str>>) -> Self {
        RequestSpool {
            directory: directory.to_owned(),
            places: Arc::new(classes.into_iter().zip(1..).collect()),
            chunk_requests: CHUNK_REQUESTS,
            requests: 0,
            pending: Vec::new(),
            stored: Vec::new(),
            file: None,
            buffer: Vec::new(),
            failure: None,
        }
    }

    /// An empty spool in the same folder, with the same order.
    #[must_use]
    pub fn another(&self) -> Self {
        RequestSpool {
            places: Arc::clone(&self.places),
            chunk_requests: self.chunk_requests,
            ..Self::new(&self.directory, [])
        }
    }

    /// Number of requests.
    pub fn len(&self) -> u64 {
        self.requests
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.requests == 0
    }

    /// Adds a request. An error of the file is reported by [`RequestSpool::sorted`].
    pub fn push(&mut self, request: Request) {
        self.push_noted(request, 0);
    }

    /// Adds a request with a number that is given back with it.
    pub fn push_noted(&mut self, request: Request, note: u64) {
        if self.pending.len() == self.chunk_requests {
            self.store();
        }
        self.requests += 1;
        self.pending.push((request, note));
    }

    /// Adds the requests of another spool behind these.
    pub fn append(&mut self, mut other: RequestSpool) {
        if !other.stored.is_empty() {
            self.store();
        }
        self.stored.append(&mut other.stored);
        self.requests += other.requests - other.pending.len() as u64;
        self.failure = self.failure.take().or(other.failure.take());
        other.pending.drain(..).for_each(|(request, note)| self.push_noted(request, note));
    }

    /// Moves the pending requests to the file.
    fn store(&mut self) {
        if self.pending.is_empty() || self.failure.is_some() {
            self.pending.clear();
            return;
        }
        self.sort();
        if let Err(source) = self.write() {
            self.failure = Some(Error::Io { path: self.directory.clone(), source });
        }
        self.pending.clear();
    }

    /// Requests with equal keys keep their order.
    fn sort(&mut self) {
        let places = &self.places;
        self.pending.sort_by(|(one, _), (other, _)| {
            let at_once = || key(places, one).cmp(&key(places, other));
            one.intended_ns.cmp(&other.intended_ns).then_with(at_once)
        });
    }

    fn write(&mut self) -> io::Result<()> {
        let output = match &mut self.file {
            Some(output) => output,
            None => self.file.insert(Output {
                file: Arc::new(tempfile::tempfile_in(&self.directory)?),
                end: 0,
                names: Names::default(),
            }),
        };
        self.buffer.clear();
        let mut before = Before::default();
        for (request, note) in &self.pending {
            before.encode(request, *note, &mut output.names, &mut self.buffer);
        }
        output.file.write_all_at(&self.buffer, output.end)?;
        let (from, end) = (output.end, output.end + self.buffer.len() as u64);
        output.end = end;
        let names = output.names.all.as_slice().into();
        self.stored.push(Stored { file: Arc::clone(&output.file), names, from, end });
        Ok(())
    }

    /// All requests in order of intended time, of their class and of their number. The spool is empty afterwards.
    ///
    /// # Errors
    /// The overflow file cannot be written or read.
    pub fn sorted(&mut self) -> Result<Sorted, Error> {
        self.sort();
        self.requests = 0;
        self.buffer = Vec::new();
        self.file = None;
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let stored = std::mem::take(&mut self.stored);
        let buffer_bytes = (MERGE_BYTES / stored.len().max(1)).clamp(LEAST_MERGE_BYTES, 1 << 20);
        let mut parts: Vec<Part> =
            stored.into_iter().map(|stored| Part::Stored(Reading::new(stored, buffer_bytes))).collect();
        parts.push(Part::Pending(std::mem::take(&mut self.pending).into_iter()));
        let mut sorted = Sorted {
            directory: self.directory.clone(),
            places: Arc::clone(&self.places),
            heads: Vec::with_capacity(parts.len()),
            heap: BinaryHeap::with_capacity(parts.len()),
            parts,
        };
        for part in 0..sorted.parts.len() {
            let head = sorted.read(part)?;
            sorted.heads.push(head);
        }
        Ok(sorted)
    }
}

/// Order of the requests of a run.
type Key = (i64, u32, u64);

fn key(places: &HashMap<Arc<str>, u32>, request: &Request) -> Key {
    (request.intended_ns, places.get(&request.class).copied().unwrap_or(0), request.request)
}

/// The requests of a spool in order.
pub struct Sorted {
    directory: PathBuf,
    places: Arc<HashMap<Arc<str>, u32>>,
    parts: Vec<Part>,
    heads: Vec<Option<Noted>>,
    /// The next request of each part, by its key. Parts are in order of arrival, which decides between equal keys.
    heap: BinaryHeap<Reverse<(Key, usize)>>,
}

enum Part {
    Stored(Reading),
    Pending(std::vec::IntoIter<Noted>),
}

impl Sorted {
    /// The next request of a part, whose key goes to the heap.
    fn read(&mut self, part: usize) -> Result<Option<Noted>, Error> {
        let read = match &mut self.parts[part] {
            Part::Stored(reading) => reading.next(),
            Part::Pending(pending) => Ok(pending.next()),
        };
        let noted = read.map_err(|source| Error::Io { path: self.directory.clone(), source })?;
        if let Some((request, _)) = &noted {
            self.heap.push(Reverse((key(&self.places, request), part)));
        }
        Ok(noted)
    }
}

impl Iterator for Sorted {
    type Item = Result<Noted, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let Reverse((_, part)) = self.heap.pop()?;
        match self.read(part) {
            Ok(next) => std::mem::replace(&mut self.heads[part], next).map(Ok),
            Err(error) => {
                self.heap.clear();
                Some(Err(error))
            }
        }
    }
}

/// A chunk of the file while it is read.
struct Reading {
    stored: Stored,
    buffer: Vec<u8>,
    at: usize,
    before: Before,
}

impl Reading {
    fn new(stored: Stored, buffer_bytes: usize) -> Self {
        Reading { stored, buffer: Vec::with_capacity(buffer_bytes), at: 0, before: Before::default() }
    }

    fn next(&mut self) -> io::Result<Option<Noted>> {
        let left = self.buffer.len() - self.at;
        if left < LONGEST_BYTES && self.stored.from < self.stored.end {
            self.buffer.copy_within(self.at.., 0);
            self.at = 0;
            let more = (self.stored.end - self.stored.from).min((self.buffer.capacity() - left) as u64);
            self.buffer.resize(left + more as usize, 0);
            self.stored.file.read_exact_at(&mut self.buffer[left..], self.stored.from)?;
            self.stored.from += more;
        }
        if self.at == self.buffer.len() {
            self.buffer = Vec::new();
            self.at = 0;
            return Ok(None);
        }
        let mut bytes = Bytes { bytes: &self.buffer, at: self.at };
        let noted = self.before.decode(&mut bytes, &self.stored.names);
        self.at = bytes.at;
        noted.map(Some).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the spool is damaged"))
    }
}

/// Numbers of the request before, in the order of the file: others are differences from them.
#[derive(Default)]
struct Before {
    intended_ns: i64,
    request: u64,
}

/// Which values a request has: a bit each.
const DEVICE: u64 = 1;
const FILE: u64 = 1 << 1;
const SUBMITTED: u64 = 1 << 2;
const COMPLETED: u64 = 1 << 3;
const DEADLINE: u64 = 1 << 4;
const SERVED: u64 = 1 << 5;
const WARMUP: u64 = 1 << 6;
const STATUS: u64 = 1 << 7;
const NOTE: u64 = 1 << 8;
/// Place of the operation above these bits.
const OP_SHIFT: u32 = 9;

impl Before {
    fn encode(&mut self, request: &Request, note: u64, names: &mut Names, to: &mut Vec<u8>) {
        let bit = |is_there: bool, bit: u64| if is_there { bit } else { 0 };
        let fields = bit(request.device.is_some(), DEVICE)
            | bit(request.file.is_some(), FILE)
            | bit(request.submitted_ns.is_some(), SUBMITTED)
            | bit(request.completed_ns.is_some(), COMPLETED)
            | bit(request.deadline_ns.is_some(), DEADLINE)
            | bit(request.served_ns.is_some(), SERVED)
            | bit(request.warmup, WARMUP)
            | bit(request.status != 0, STATUS)
            | bit(note != 0, NOTE)
            | u64::from(request.op.number()) << OP_SHIFT;
        put(fields, to);
        put(names.number(&request.class), to);
        if let Some(device) = &request.device {
            put(names.number(device), to);
        }
        put(u64::from(request.client), to);
        if let Some(file) = request.file {
            put(u64::from(file), to);
        }
        put(request.offset, to);
        put(request.size_bytes, to);
        put_signed(request.request.wrapping_sub(self.request).cast_signed(), to);
        put_signed(request.intended_ns.wrapping_sub(self.intended_ns), to);
        // Each time is a difference from the one before that is there.
        let mut last_ns = request.intended_ns;
        for time_ns in [request.submitted_ns, request.completed_ns].into_iter().flatten() {
            put_signed(time_ns.wrapping_sub(last_ns), to);
            last_ns = time_ns;
        }
        for time_ns in [request.deadline_ns, request.served_ns].into_iter().flatten() {
            put_signed(time_ns.wrapping_sub(request.intended_ns), to);
        }
        if request.status != 0 {
            put_signed(i64::from(request.status), to);
        }
        if note != 0 {
            put(note, to);
        }
        *self = Before { intended_ns: request.intended_ns, request: request.request };
    }

    fn decode(&mut self, from: &mut Bytes<'_>, names: &[Arc<str>]) -> Option<Noted> {
        let fields = from.number()?;
        let has = |bit: u64| fields & bit != 0;
        let name = |number: u64| names.get(usize::try_from(number).ok()?).map(Arc::clone);
        let class = name(from.number()?)?;
        let device = if has(DEVICE) { Some(name(from.number()?)?) } else { None };
        let client = u32::try_from(from.number()?).ok()?;
        let file = if has(FILE) { Some(u32::try_from(from.number()?).ok()?) } else { None };
        let (offset, size_bytes) = (from.number()?, from.number()?);
        let number = self.request.wrapping_add(from.signed()?.cast_unsigned());
        let intended_ns = self.intended_ns.wrapping_add(from.signed()?);
        let mut since = |bit: u64, base_ns: i64| -> Option<Option<i64>> {
            if has(bit) { Some(Some(base_ns.wrapping_add(from.signed()?))) } else { Some(None) }
        };
        let submitted_ns = since(SUBMITTED, intended_ns)?;
        let completed_ns = since(COMPLETED, submitted_ns.unwrap_or(intended_ns))?;
        let deadline_ns = since(DEADLINE, intended_ns)?;
        let served_ns = since(SERVED, intended_ns)?;
        let status = if has(STATUS) { i32::try_from(from.signed()?).ok()? } else { 0 };
        let note = if has(NOTE) { from.number()? } else { 0 };
        *self = Before { intended_ns, request: number };
        let request = Request {
            request: number,
            class,
            client,
            device,
            file,
            op: Op::from_number(u8::try_from(fields >> OP_SHIFT).ok()?)?,
            offset,
            size_bytes,
            intended_ns,
            submitted_ns,
            completed_ns,
            deadline_ns,
            served_ns,
            status,
            warmup: has(WARMUP),
        };
        Some((request, note))
    }
}

/// Adds a number in groups of 7 bits, the lowest first (LEB128).
fn put(mut number: u64, to: &mut Vec<u8>) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// Adds a number whose sign becomes the lowest bit.
fn put_signed(number: i64, to: &mut Vec<u8>) {
    put((number << 1 ^ number >> 63).cast_unsigned(), to);
}

struct Bytes<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Bytes<'_> {
    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = *self.bytes.get(self.at)?;
            self.at += 1;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn signed(&mut self) -> Option<i64> {
        let number = self.number()?;
        Some((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn spool(directory: &Path, chunk_requests: usize) -> RequestSpool {
        let classes = ["video".into(), "text".into()];
        RequestSpool { chunk_requests, ..RequestSpool::new(directory, classes) }
    }

    fn any_request() -> impl Strategy<Value = Noted> {
        let time = || prop::option::of(any::<i64>());
        let names = (prop::sample::select(vec!["text", "video", "other"]), prop::option::of(0u8..3));
        let numbers = (0u64..4, any::<u32>(), prop::option::of(any::<u32>()), any::<u64>(), any::<u64>());
        // Few intended times: many requests are in order of class and number only.
        let times = (prop_oneof![0i64..3, any::<i64>()], time(), time(), time(), time());
        (names, numbers, times, 0u8..6, any::<i32>(), any::<bool>(), prop_oneof![Just(0), any::<u64>()])
            .prop_map(|(names, numbers, times, op, status, warmup, note)| {
                let request = Request {
                    request: numbers.0,
                    class: names.0.into(),
                    client: numbers.1,
                    device: names.1.map(|device| device.to_string().into()),
                    file: numbers.2,
                    op: Op::from_number(op).unwrap(),
                    offset: numbers.3,
                    size_bytes: numbers.4,
                    intended_ns: times.0,
                    submitted_ns: times.1,
                    completed_ns: times.2,
                    deadline_ns: times.3,
                    served_ns: times.4,
                    status,
                    warmup,
                };
                (request, note)
            })
    }

    proptest! {
        #[test]
        fn requests_come_back_as_they_were_in_order(
            requests in prop::collection::vec(any_request(), 0..60),
            others in prop::collection::vec(any_request(), 0..60),
            chunk_requests in 1usize..20,
        ) {
            let directory = tempfile::tempdir().unwrap();
            let mut all = spool(directory.path(), chunk_requests);
            let mut other = all.another();
            requests.iter().cloned().for_each(|(request, note)| all.push_noted(request, note));
            others.iter().cloned().for_each(|(request, note)| other.push_noted(request, note));
            all.append(other);
            prop_assert_eq!(all.len() as usize, requests.len() + others.len());
            prop_assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "the file has a name");
            let mut expected = [requests, others].concat();
            let place = |class: &str| ["video", "text"].iter().position(|known| *known == class);
            expected.sort_by_key(|(request, _)| (request.intended_ns, place(&request.class), request.request));
            let found: Vec<Noted> = all.sorted().unwrap().map(Result::unwrap).collect();
            prop_assert_eq!(found, expected);
            prop_assert!(all.is_empty() && all.sorted().unwrap().next().is_none());
        }
    }

    #[test]
    fn the_longest_request_is_within_the_limit() {
        let longest = Request {
            client: u32::MAX,
            device: Some("disk".into()),
            file: Some(u32::MAX),
            op: Op::WriteZeroes,
            offset: u64::MAX,
            size_bytes: u64::MAX,
            intended_ns: i64::MIN,
            submitted_ns: Some(0),
            completed_ns: Some(i64::MIN),
            deadline_ns: Some(0),
            served_ns: Some(0),
            status: i32::MIN,
            warmup: true,
            ..request()
        };
        let mut bytes = Vec::new();
        let mut before = Before { intended_ns: 0, request: 1 << 63 };
        before.encode(&longest, u64::MAX, &mut Names::default(), &mut bytes);
        // The numbers of its names may have 10 bytes each.
        assert!(bytes.len() > 100 && bytes.len() + 20 < LONGEST_BYTES, "{}", bytes.len());
    }

    #[test]
    fn a_file_system_that_refuses_is_reported_at_the_end() {
        let mut spool = spool(Path::new("/proc"), 2);
        (0..5).for_each(|_| spool.push(request()));
        assert!(matches!(spool.sorted(), Err(Error::Io { .. })));
    }

    fn request() -> Request {
        Request {
            request: 0,
            class: "text".into(),
            client: 0,
            device: None,
            file: None,
            op: Op::Read,
            offset: 0,
            size_bytes: 4096,
            intended_ns: 0,
            submitted_ns: None,
            completed_ns: None,
            deadline_ns: None,
            served_ns: None,
            status: 0,
            warmup: false,
        }
    }
}
