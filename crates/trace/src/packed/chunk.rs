//! Chunk: the columns of some requests.

use crate::binary::{u32_le, u64_le};
use crate::error::Bad;
use crate::packed::MOST_REQUESTS;
use crate::{TraceOp, TraceRequest};

/// Numbers of the columns. `PRESENT` has a bit for each field that may be absent, from `QUEUEING` on.
const ARRIVAL: usize = 0;
const OFFSET: usize = 1;
const SIZE: usize = 2;
const DEVICE: usize = 3;
const OP: usize = 4;
const PRESENT: usize = 5;
const QUEUEING: usize = 6;
const RESPONSE: usize = 7;
const OBJECT: usize = 8;
const QUEUE_LENGTH: usize = 9;
const PID: usize = 10;
const COLUMNS: usize = 11;

/// Bytes of a chunk before its names.
pub(crate) const HEAD_BYTES: usize = 16;
const COLUMN_HEAD_BYTES: usize = 10;
/// Bytes of all names of a chunk, and of one name.
const MOST_NAMES_BYTES: usize = 64 << 20;
const MOST_COLUMNS_BYTES: usize = COLUMNS * (COLUMN_HEAD_BYTES + 8 * MOST_REQUESTS);

/// In the order of their numbers in files.
const OPS: [TraceOp; 7] = [
    TraceOp::Read,
    TraceOp::Write,
    TraceOp::Flush,
    TraceOp::Discard,
    TraceOp::Other,
    TraceOp::WriteFua,
    TraceOp::WriteZeroes,
];

/// The head of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) requests: usize,
    pub(crate) names_bytes: usize,
    pub(crate) columns_bytes: usize,
    crc: u32,
}

impl Head {
    /// Reads a head.
    ///
    /// # Errors
    /// A number is out of range.
    pub(crate) fn read(bytes: &[u8; HEAD_BYTES]) -> Result<Self, Bad> {
        let number = |at, most: usize, field, expected| {
            let found = u32_le(bytes, at);
            match usize::try_from(found) {
                Ok(number) if number <= most => Ok(number),
                _ => Err(Bad::number(field, found, expected)),
            }
        };
        Ok(Head {
            requests: number(0, MOST_REQUESTS, "requests of a chunk", "at most 4096")?,
            names_bytes: number(4, MOST_NAMES_BYTES, "bytes of names", "at most 64 MiB")?,
            columns_bytes: number(
                8,
                MOST_COLUMNS_BYTES,
                "bytes of columns",
                "at most those of 4096 requests",
            )?,
            crc: u32_le(bytes, 12),
        })
    }

    /// Bytes behind the head.
    pub(crate) fn body_bytes(&self) -> usize {
        self.names_bytes + self.columns_bytes
    }

    fn checks(&self, body: &[u8]) -> Result<(), Bad> {
        let found = self.sum(body);
        if found == self.crc {
            return Ok(());
        }
        Err(Bad::number("checksum of a chunk", self.crc, "that of its content: the file is damaged"))
    }

    fn sum(&self, body: &[u8]) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&self.numbers());
        hasher.update(body);
        hasher.finalize()
    }

    fn numbers(&self) -> [u8; 12] {
        let mut bytes = [0; 12];
        for (place, number) in [self.requests, self.names_bytes, self.columns_bytes].into_iter().enumerate() {
            bytes[4 * place..4 * place + 4].copy_from_slice(&(number as u32).to_le_bytes());
        }
        bytes
    }
}

/// Names of devices that appear first in a chunk, with their numbers in the file.
pub(crate) type Names = Vec<(u32, Box<[u8]>)>;

/// The requests of a chunk, a column for each field.
#[derive(Debug, Default)]
pub struct Chunk {
    columns: [Vec<u64>; COLUMNS],
    /// What was read last.
    pub(super) bytes: Vec<u8>,
}

impl Chunk {
    /// Number of requests.
    pub fn len(&self) -> usize {
        self.columns[ARRIVAL].len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A request.
    ///
    /// # Panics
    /// `number` is not below [`Chunk::len`].
    pub fn get(&self, number: usize) -> TraceRequest {
        let at = |column: usize| self.columns[column][number];
        let present = at(PRESENT);
        let if_present = |column: usize| (present >> (column - QUEUEING) & 1 == 1).then(|| at(column));
        TraceRequest {
            arrival_ns: signed(at(ARRIVAL)),
            queueing_ns: if_present(QUEUEING).map(signed),
            response_ns: if_present(RESPONSE).map(signed),
            device: at(DEVICE) as u32,
            op: OPS[at(OP) as usize],
            offset_bytes: at(OFFSET),
            size_bytes: at(SIZE),
            object: if_present(OBJECT),
            queue_length: if_present(QUEUE_LENGTH).map(|length| length as u32),
            pid: if_present(PID).map(|pid| pid as u32),
        }
    }

    /// Decodes what follows a head.
    ///
    /// # Errors
    /// It is damaged.
    pub(crate) fn decode(&mut self, head: &Head, body: &[u8], names: &mut Names) -> Result<(), Bad> {
        head.checks(body)?;
        let (named, columns) = body.split_at(head.names_bytes);
        decode_names(named, names)?;
        let mut left = columns;
        let heads = take(&mut left, COLUMNS * COLUMN_HEAD_BYTES)?;
        for (column, head_bytes) in self.columns.iter_mut().zip(heads.chunks_exact(COLUMN_HEAD_BYTES)) {
            let (base, width, shift) =
                (u64_le(head_bytes, 0), usize::from(head_bytes[8]), u32::from(head_bytes[9]));
            if !matches!(width, 0 | 1 | 2 | 4 | 8) || shift >= u64::BITS {
                return Err(Bad::number(
                    "head of a column",
                    width << 8 | shift as usize,
                    "0, 1, 2, 4 or 8 bytes",
                ));
            }
            unpack(take(&mut left, width * head.requests)?, width, base, shift, head.requests, column);
        }
        if !left.is_empty() {
            return Err(Bad::number("bytes of columns", columns.len(), "those of the columns"));
        }
        for (column, below, field) in [
            (OP, OPS.len() as u64, "operation"),
            (PRESENT, 1 << (COLUMNS - QUEUEING), "bits of present fields"),
            (DEVICE, 1 << 32, "device"),
            (QUEUE_LENGTH, 1 << 32, "queue length"),
            (PID, 1 << 32, "process"),
        ] {
            if let Some(found) = self.columns[column].iter().find(|value| **value >= below) {
                return Err(Bad::number(field, *found, "a smaller number"));
            }
        }
        Ok(())
    }
}

/// Appends a chunk of these requests, with names of devices.
pub(super) fn encode<'a>(
    requests: &[TraceRequest],
    names: impl Iterator<Item = (u32, &'a [u8])>,
    into: &mut Vec<u8>,
) {
    let begin = into.len();
    into.resize(begin + HEAD_BYTES, 0);
    for (device, name) in names {
        into.extend(device.to_le_bytes());
        into.extend((name.len() as u32).to_le_bytes());
        into.extend_from_slice(name);
    }
    let columns_begin = into.len();
    into.resize(columns_begin + COLUMNS * COLUMN_HEAD_BYTES, 0);
    for number in 0..COLUMNS {
        let head = pack(requests.iter().map(|request| field(request, number)), into);
        let at = columns_begin + number * COLUMN_HEAD_BYTES;
        into[at..at + COLUMN_HEAD_BYTES].copy_from_slice(&head);
    }
    let names_bytes = columns_begin - begin - HEAD_BYTES;
    seal(requests.len(), names_bytes, begin, into);
}

/// Appends the chunk that ends a file.
pub(super) fn encode_end(requests: u64, into: &mut Vec<u8>) {
    let begin = into.len();
    into.resize(begin + HEAD_BYTES, 0);
    into.extend(requests.to_le_bytes());
    seal(0, 0, begin, into);
}

/// The number of all requests, from the body of the chunk that ends them.
pub(crate) fn decode_end(head: &Head, body: &[u8]) -> Result<u64, Bad> {
    head.checks(body)?;
    match <[u8; 8]>::try_from(body) {
        Ok(bytes) => Ok(u64::from_le_bytes(bytes)),
        Err(_) => Err(Bad::number("bytes of the last chunk", body.len(), "8")),
    }
}

/// Writes the head of a chunk that is complete otherwise.
fn seal(requests: usize, names_bytes: usize, begin: usize, into: &mut [u8]) {
    let body = begin + HEAD_BYTES;
    let columns_bytes = into.len() - body - names_bytes;
    let head = Head { requests, names_bytes, columns_bytes, crc: 0 };
    let sum = head.sum(&into[body..]);
    into[begin..begin + 12].copy_from_slice(&head.numbers());
    into[begin + 12..body].copy_from_slice(&sum.to_le_bytes());
}

fn decode_names(mut left: &[u8], names: &mut Names) -> Result<(), Bad> {
    names.clear();
    while !left.is_empty() {
        let head = take(&mut left, 8)?;
        let name = take(&mut left, u32_le(head, 4) as usize)?;
        names.push((u32_le(head, 0), name.into()));
    }
    Ok(())
}

fn take<'a>(left: &mut &'a [u8], bytes: usize) -> Result<&'a [u8], Bad> {
    match left.split_at_checked(bytes) {
        Some((taken, rest)) => {
            *left = rest;
            Ok(taken)
        }
        None => Err(Bad::number("bytes of a chunk", left.len(), "more of them: the file is damaged")),
    }
}

/// A field as a number in the order of its values; `None` if absent.
fn field(request: &TraceRequest, column: usize) -> Option<u64> {
    match column {
        ARRIVAL => Some(unsigned(request.arrival_ns)),
        OFFSET => Some(request.offset_bytes),
        SIZE => Some(request.size_bytes),
        DEVICE => Some(u64::from(request.device)),
        OP => OPS.iter().position(|op| *op == request.op).map(|place| place as u64),
        PRESENT => {
            let bits = (QUEUEING..COLUMNS)
                .map(|other| u64::from(field(request, other).is_some()) << (other - QUEUEING));
            Some(bits.sum())
        }
        QUEUEING => request.queueing_ns.map(unsigned),
        RESPONSE => request.response_ns.map(unsigned),
        OBJECT => request.object,
        QUEUE_LENGTH => request.queue_length.map(u64::from),
        PID => request.pid.map(u64::from),
        _ => None,
    }
}

const SIGN: u64 = 1 << 63;

/// Keeps the order of signed numbers.
fn unsigned(number: i64) -> u64 {
    number.cast_unsigned() ^ SIGN
}

fn signed(number: u64) -> i64 {
    (number ^ SIGN).cast_signed()
}

/// Appends a column; absent values are stored as the base. Returns its head.
fn pack(values: impl Iterator<Item = Option<u64>> + Clone, into: &mut Vec<u8>) -> [u8; COLUMN_HEAD_BYTES] {
    let base = values.clone().flatten().min().unwrap_or(0);
    let (mut all, mut largest) = (0, 0);
    for value in values.clone().flatten() {
        all |= value - base;
        largest = largest.max(value - base);
    }
    let shift = if all == 0 { 0 } else { all.trailing_zeros() };
    let stored = values.map(|value| value.map_or(0, |value| (value - base) >> shift));
    let width: u8 = match largest >> shift {
        0 => 0,
        1..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xffff_ffff => 4,
        _ => 8,
    };
    if width > 0 {
        for value in stored {
            into.extend_from_slice(&value.to_le_bytes()[..usize::from(width)]);
        }
    }
    let mut head = [0; COLUMN_HEAD_BYTES];
    head[..8].copy_from_slice(&base.to_le_bytes());
    head[8] = width;
    head[9] = shift as u8;
    head
}

fn unpack(bytes: &[u8], width: usize, base: u64, shift: u32, requests: usize, into: &mut Vec<u64>) {
    into.clear();
    let value = |stored: u64| base.wrapping_add(stored << shift);
    match width {
        1 => into.extend(bytes.iter().map(|byte| value(u64::from(*byte)))),
        2 => {
            into.extend(bytes.as_chunks::<2>().0.iter().map(|two| value(u64::from(u16::from_le_bytes(*two)))))
        }
        4 => into
            .extend(bytes.as_chunks::<4>().0.iter().map(|four| value(u64::from(u32::from_le_bytes(*four))))),
        8 => into.extend(bytes.as_chunks::<8>().0.iter().map(|eight| value(u64::from_le_bytes(*eight)))),
        _ => into.resize(requests, base),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encodes and decodes.
    fn back(requests: &[TraceRequest]) -> (Vec<TraceRequest>, usize) {
        let named = [(0, &b"disk 0"[..]), (3, b"disk 3")];
        let mut bytes = Vec::new();
        encode(requests, named.into_iter(), &mut bytes);
        let (head, body) = bytes.split_first_chunk::<HEAD_BYTES>().unwrap();
        let head = Head::read(head).unwrap();
        assert_eq!((head.requests, head.body_bytes()), (requests.len(), body.len()));
        let (mut chunk, mut names) = (Chunk::default(), Names::new());
        chunk.decode(&head, body, &mut names).unwrap();
        assert_eq!(names.iter().map(|(device, name)| (*device, &**name)).collect::<Vec<_>>(), named);
        ((0..chunk.len()).map(|number| chunk.get(number)).collect(), bytes.len())
    }

    #[test]
    fn extremes_of_every_field_come_back() {
        let low = TraceRequest {
            arrival_ns: i64::MIN,
            queueing_ns: Some(i64::MIN),
            object: Some(0),
            ..TraceRequest::default()
        };
        let high = TraceRequest {
            arrival_ns: i64::MAX,
            queueing_ns: Some(i64::MAX),
            response_ns: Some(-1),
            device: 3,
            op: TraceOp::Other,
            offset_bytes: u64::MAX,
            size_bytes: u64::MAX,
            object: Some(u64::MAX),
            queue_length: Some(u32::MAX),
            pid: Some(u32::MAX),
        };
        let all = [low, high, TraceRequest::default(), high];
        assert_eq!(back(&all).0, all);
        assert_eq!(back(&[]).0, []);
    }

    #[test]
    fn pages_read_at_a_steady_rate_take_few_bytes() {
        let page = |number: i64| TraceRequest {
            arrival_ns: number * 100_000,
            offset_bytes: (number as u64 * 7919 % 60_000) * 4096,
            size_bytes: 4096,
            ..TraceRequest::default()
        };
        let all: Vec<_> = (0..MOST_REQUESTS as i64).map(page).collect();
        let (back, bytes) = back(&all);
        assert_eq!(back, all);
        // Times in multiples of 32 ns within 0.4096 s take four bytes, one of 60,000 pages takes two.
        assert!(bytes < 6 * all.len() + 250, "{bytes}");
    }

    #[test]
    fn a_flipped_bit_is_found() {
        let all = [TraceRequest { size_bytes: 512, ..TraceRequest::default() }; 3];
        let mut bytes = Vec::new();
        encode(&all, [(0, &b"sda"[..])].into_iter(), &mut bytes);
        for bit in 0..8 * bytes.len() {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let (head, body) = damaged.split_first_chunk::<HEAD_BYTES>().unwrap();
            let decoded = Head::read(head).and_then(|head| {
                let (mut chunk, mut names) = (Chunk::default(), Names::new());
                if head.names_bytes > body.len() {
                    return Err(Bad::number("names", head.names_bytes, "fewer"));
                }
                chunk.decode(&head, body, &mut names)
            });
            assert!(decoded.is_err(), "bit {bit}");
        }
    }
}
