//! Units of caches and working sets: blocks of an address space, or whole objects.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use weir_cache::index::hash;

use crate::TraceRequest;

/// Maximum number of units of one request: 4 GiB in blocks of 4 KiB. Longer requests are cut and counted.
const MOST_UNITS: u64 = 1 << 20;
/// Units that may be examined before the first request: 1 GiB in blocks of 4 KiB.
const FIRST_CREDIT: u64 = 1 << 18;
/// Units that each request adds: 4 MiB in blocks of 4 KiB. A request of a block device has at most 1280 KiB by default
/// (`max_sectors_kb` of Linux), and most have far less. So work and memory grow with the number of requests, whatever sizes a
/// trace claims.
const CREDIT_PER_REQUEST: u64 = 1 << 10;
/// Bits of a key that are the block; the others are the volume.
const BLOCK_BITS: u32 = 40;
/// Volumes that keys have room for; the last one is for the blocks that the rest has none for.
const VOLUMES: u32 = (1 << (u64::BITS - BLOCK_BITS)) - 1;

/// Unit of a cache or working set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Blocks of a device, or of a file if the trace has files.
    Block {
        /// Bytes of a block; 0 counts as 1.
        bytes: u64,
    },
    /// Whole objects ([`TraceRequest::object`]) of all devices; requests without an object are left out.
    Object,
}

impl Unit {
    /// The blocks of the field: 4 KiB.
    pub const PAGE: Unit = Unit::Block { bytes: 4096 };

    /// Unit of a trace by its first requests: objects if all requests with data have an object and none an offset.
    pub fn detect(first: &[TraceRequest]) -> Unit {
        let mut data = first.iter().filter(|request| request.op.has_data()).peekable();
        let objects = data.peek().is_some()
            && data.all(|request| request.object.is_some() && request.offset_bytes == 0);
        if objects { Unit::Object } else { Unit::PAGE }
    }
}

/// Unique keys for the units of requests.
#[derive(Debug)]
pub struct Keys {
    unit: Unit,
    /// The address space of the request before, and its number: most requests stay in it.
    last: Option<((u32, Option<u64>), u32)>,
    volumes: HashMap<(u32, Option<u64>), u32, BuildHasherDefault<Folding>>,
    /// Blocks that do not fit a key: far beyond any device, or of too many volumes.
    far: HashMap<(u32, u64), u64, BuildHasherDefault<Folding>>,
    /// Units that may still be examined.
    credit: u64,
    cut: u64,
}

/// The units of one request: as many keys as it touches, from the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    volume: u32,
    /// The first key, or the first block.
    first: u64,
    /// How many.
    pub units: u64,
    whole: bool,
}

impl Keys {
    /// Nothing numbered yet.
    pub fn new(unit: Unit) -> Self {
        Keys {
            unit,
            last: None,
            volumes: HashMap::default(),
            far: HashMap::default(),
            credit: FIRST_CREDIT,
            cut: 0,
        }
    }

    /// Kind of the numbered units.
    pub fn unit(&self) -> Unit {
        self.unit
    }

    /// Requests of which only the first blocks were examined: 2^20 of one request; in total 2^18 plus on average 2^10 for
    /// each request so far.
    pub fn cut(&self) -> u64 {
        self.cut
    }

    /// The units that a request touches; none if it moves no data.
    pub fn span(&mut self, request: &TraceRequest) -> Option<Span> {
        if !request.op.has_data() {
            return None;
        }
        let Unit::Block { bytes } = self.unit else {
            return request.object.map(|object| Span { volume: 0, first: object, units: 1, whole: true });
        };
        let bytes = bytes.max(1);
        let last_byte = request.offset_bytes.saturating_add(request.size_bytes.checked_sub(1)?);
        let first = request.offset_bytes / bytes;
        // Of the whole address space in blocks of a byte there would be 2^64.
        let mut units = (last_byte / bytes - first).saturating_add(1);
        let most = MOST_UNITS.min(self.credit.saturating_add(CREDIT_PER_REQUEST));
        if units > most {
            self.cut += 1;
            units = most;
        }
        self.credit = self.credit.saturating_add(CREDIT_PER_REQUEST).saturating_sub(units);
        Some(Span { volume: self.volume(request), first, units, whole: false })
    }

    /// The address space of a request, numbered.
    pub fn volume(&mut self, request: &TraceRequest) -> u32 {
        let space = (request.device, request.object);
        match self.last {
            Some((last, number)) if last == space => number,
            _ => {
                let next = u32::try_from(self.volumes.len()).unwrap_or(u32::MAX);
                let number = *self.volumes.entry(space).or_insert(next);
                self.last = Some((space, number));
                number
            }
        }
    }

    /// The key of one unit of a span, by its place in it.
    #[inline]
    pub fn key(&mut self, span: Span, place: u64) -> u64 {
        if span.whole {
            return span.first;
        }
        let block = span.first + place;
        if block >> BLOCK_BITS == 0 && span.volume < VOLUMES {
            return u64::from(span.volume) << BLOCK_BITS | block;
        }
        let next = u64::from(VOLUMES) << BLOCK_BITS | self.far.len() as u64;
        *self.far.entry((span.volume, block)).or_insert(next)
    }
}

/// A fast hash for small keys: each word is mixed into the sum.
#[derive(Debug, Default)]
pub(crate) struct Folding(u64);

impl Hasher for Folding {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    fn write_u64(&mut self, word: u64) {
        let mixed = u64::from(hash(self.0 ^ word)) << 32 | u64::from(hash(!word.rotate_left(32)));
        self.0 = self.0.rotate_left(23) ^ mixed;
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn write_isize(&mut self, word: isize) {
        self.write_u64(word as u64);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn read(device: u32, offset_bytes: u64, size_bytes: u64) -> TraceRequest {
        TraceRequest { device, offset_bytes, size_bytes, ..TraceRequest::default() }
    }

    #[test]
    fn a_request_touches_the_blocks_that_it_overlaps() {
        let mut keys = Keys::new(Unit::PAGE);
        let mut units = |offset, size| keys.span(&read(0, offset, size)).map(|span| span.units);
        assert_eq!(units(0, 4096), Some(1));
        assert_eq!(units(4095, 2), Some(2));
        assert_eq!(units(512, 512), Some(1));
        assert_eq!(units(0, 0), None);
        assert_eq!(units(u64::MAX, 2), Some(1));
    }

    #[test]
    fn no_two_blocks_share_a_key() {
        let mut keys = Keys::new(Unit::PAGE);
        let mut seen = HashSet::new();
        let offsets = [0, 4096, 4096 << 40, (4096 << 40) + 4096, u64::MAX - 4095];
        for device in 0..3 {
            for offset in offsets {
                let span = keys.span(&read(device, offset, 1)).unwrap();
                assert!(seen.insert(keys.key(span, 0)));
                assert!(!seen.insert(keys.key(span, 0)));
            }
        }
    }

    #[test]
    fn a_request_beyond_reason_is_cut_and_counted() {
        let mut keys = Keys::new(Unit::PAGE);
        assert_eq!(keys.span(&read(0, 0, u64::MAX)).unwrap().units, FIRST_CREDIT + CREDIT_PER_REQUEST);
        assert_eq!(keys.cut(), 1);
        // After many small ones as much as a single one ever is.
        (0..2000).for_each(|_| _ = keys.span(&read(0, 0, 1)));
        assert_eq!(keys.span(&read(0, 0, u64::MAX)).unwrap().units, MOST_UNITS);
    }

    #[test]
    fn all_requests_together_are_not_looked_at_longer_than_their_number_allows() {
        let mut keys = Keys::new(Unit::PAGE);
        let requests = 1000;
        let units: u64 = (0..requests).map(|_| keys.span(&read(0, 0, u64::MAX)).unwrap().units).sum();
        assert_eq!(units, FIRST_CREDIT + requests * CREDIT_PER_REQUEST);
        assert_eq!(keys.cut(), requests);
        // Requests of ordinary size are never cut, whatever preceded them.
        assert_eq!(keys.span(&read(0, 0, 2 << 20)).unwrap().units, 512);
    }

    #[test]
    fn objects_are_told_from_blocks() {
        let object = TraceRequest { object: Some(7), ..read(0, 0, 100) };
        assert_eq!(Unit::detect(&[object]), Unit::Object);
        assert_eq!(Unit::detect(&[object, TraceRequest { offset_bytes: 8192, ..object }]), Unit::PAGE);
        assert_eq!(Unit::detect(&[object, read(0, 0, 1)]), Unit::PAGE);
        assert_eq!(Unit::detect(&[]), Unit::PAGE);
    }
}
