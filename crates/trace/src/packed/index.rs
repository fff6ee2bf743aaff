//! Index and footer of a file.

use crate::binary::{u32_le, u64_le};
use crate::error::Bad;
use crate::packed::{END_MARK, MOST_REQUESTS};

/// Bytes of the footer.
pub(super) const FOOTER_BYTES: usize = 52;
const ENTRY_BYTES: usize = 24;

/// Place and times of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) offset: u64,
    pub(super) earliest_ns: i64,
    pub(super) latest_ns: i64,
}

/// What a file has, without reading its chunks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Index {
    pub(super) entries: Vec<Entry>,
    /// Name and end of the last byte of any request, by device.
    pub(super) devices: Vec<(Box<[u8]>, u64)>,
    pub(super) requests: u64,
    /// Requests of each chunk but the last.
    pub(super) chunk_requests: usize,
    pub(super) ordered: bool,
    /// Where the chunks end, and the chunk begins that ends them.
    pub(super) chunks_end: u64,
}

impl Index {
    /// Number of requests.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// Number of chunks.
    pub fn chunks(&self) -> usize {
        self.entries.len()
    }

    /// Requests of each chunk but the last.
    pub fn chunk_requests(&self) -> usize {
        self.chunk_requests
    }

    /// Whether requests are in order of arrival.
    pub fn is_ordered(&self) -> bool {
        self.ordered
    }

    /// Earliest and latest arrival in a chunk; `None` if there is no such chunk.
    pub fn times_ns(&self, chunk: usize) -> Option<(i64, i64)> {
        self.entries.get(chunk).map(|entry| (entry.earliest_ns, entry.latest_ns))
    }

    /// The first chunk that ends at this time or later, in a file in order of arrival; the number of chunks if there is none.
    pub fn chunk_from(&self, at_ns: i64) -> usize {
        self.entries.partition_point(|entry| entry.latest_ns < at_ns)
    }

    /// For each device its name and the end of the last byte of any request.
    pub fn devices(&self) -> impl ExactSizeIterator<Item = (&[u8], u64)> {
        self.devices.iter().map(|(name, end_bytes)| (&**name, *end_bytes))
    }

    /// Place of a chunk.
    pub(super) fn range(&self, chunk: usize) -> Option<(u64, usize)> {
        let entry = self.entries.get(chunk)?;
        let end = self.entries.get(chunk + 1).map_or(self.chunks_end, |next| next.offset);
        Some((entry.offset, usize::try_from(end - entry.offset).ok()?))
    }

    /// Index and footer for a place in the file.
    pub(super) fn encode(&self, offset: u64) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.entries.len() * ENTRY_BYTES + FOOTER_BYTES);
        for entry in &self.entries {
            bytes.extend(entry.offset.to_le_bytes());
            bytes.extend(entry.earliest_ns.to_le_bytes());
            bytes.extend(entry.latest_ns.to_le_bytes());
        }
        for (name, end_bytes) in &self.devices {
            bytes.extend(end_bytes.to_le_bytes());
            bytes.extend((name.len() as u32).to_le_bytes());
            bytes.extend_from_slice(name);
        }
        for number in [self.requests, self.entries.len() as u64, self.devices.len() as u64, offset] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend((self.chunk_requests as u32).to_le_bytes());
        bytes.extend(u32::from(self.ordered).to_le_bytes());
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        bytes.extend(END_MARK);
        bytes
    }

    /// Where the index begins, from the footer.
    pub(super) fn offset(footer: &[u8; FOOTER_BYTES]) -> Result<u64, Bad> {
        let mark = &footer[FOOTER_BYTES - END_MARK.len()..];
        if mark != END_MARK {
            return Err(Bad::text("the last bytes", mark, "weirend1: is the file whole?"));
        }
        Ok(u64_le(footer, 24))
    }

    /// Decodes all bytes from the index to the end of the file. `first` is where chunks may begin.
    pub(super) fn decode(bytes: &[u8], first: u64, end_bytes: u64) -> Result<Self, Bad> {
        let damaged = |field, found: u64| Bad::number(field, found, "another: the index is damaged");
        let Some((body, footer)) = bytes.split_last_chunk::<FOOTER_BYTES>() else {
            return Err(damaged("bytes of the index", bytes.len() as u64));
        };
        let sum_at = bytes.len() - END_MARK.len() - 4;
        let (found, sum) = (crc32fast::hash(&bytes[..sum_at]), u32_le(bytes, sum_at));
        if found != sum {
            return Err(damaged("checksum of the index", u64::from(sum)));
        }
        let [requests, chunks, devices, offset] = [0, 8, 16, 24].map(|at| u64_le(footer, at));
        let (chunk_requests, ordered) = (u32_le(footer, 32) as usize, u32_le(footer, 36));
        if !(1..=MOST_REQUESTS).contains(&chunk_requests) || ordered > 1 {
            return Err(damaged("requests of a chunk", chunk_requests as u64));
        }
        if chunks != requests.div_ceil(chunk_requests as u64) || chunks > (body.len() / ENTRY_BYTES) as u64 {
            return Err(damaged("number of chunks", chunks));
        }
        let (entries, mut left) = body.split_at(chunks as usize * ENTRY_BYTES);
        let mut index = Index {
            entries: Vec::with_capacity(chunks as usize),
            devices: Vec::new(),
            requests,
            chunk_requests,
            ordered: ordered == 1,
            chunks_end: offset,
        };
        let mut at = first;
        for entry in entries.chunks_exact(ENTRY_BYTES) {
            let entry = Entry {
                offset: u64_le(entry, 0),
                earliest_ns: u64_le(entry, 8).cast_signed(),
                latest_ns: u64_le(entry, 16).cast_signed(),
            };
            if entry.offset < at || entry.offset >= end_bytes {
                return Err(damaged("offset of a chunk", entry.offset));
            }
            at = entry.offset;
            index.entries.push(entry);
        }
        for _ in 0..devices {
            let Some((head, rest)) = left.split_at_checked(12) else {
                return Err(damaged("number of devices", devices));
            };
            let Some((name, rest)) = rest.split_at_checked(u32_le(head, 8) as usize) else {
                return Err(damaged("length of a name", u64::from(u32_le(head, 8))));
            };
            index.devices.push((name.into(), u64_le(head, 0)));
            left = rest;
        }
        if left.is_empty() { Ok(index) } else { Err(damaged("number of devices", devices)) }
    }
}
