//! Conversion of block trace events to blktrace records.

use std::collections::HashMap;

use weir_trace::blktrace::{Record, category};

use super::ring::{Field, Format};

/// Recorded events, with their codes among blktrace's actions.
pub(super) const EVENTS: [(&str, u16); 10] = [
    ("block_bio_queue", 1),
    ("block_bio_backmerge", 2),
    ("block_rq_merge", 2),
    ("block_bio_frontmerge", 3),
    ("block_getrq", 4),
    ("block_rq_requeue", 6),
    ("block_rq_issue", 7),
    ("block_rq_complete", COMPLETION),
    ("block_rq_insert", 12),
    ("block_split", SPLIT),
];

pub(super) const COMPLETION: u16 = 8;
const SPLIT: u16 = 13;

/// Fields of an event that a record needs.
#[derive(Debug, Clone)]
struct Layout {
    code: u16,
    pid: Field,
    device: Field,
    sector: Field,
    sectors: Option<Field>,
    bytes: Option<Field>,
    rest_at: Option<Field>,
    error: Option<Field>,
    flags: Field,
    comm: Option<Field>,
}

impl Layout {
    fn new(code: u16, format: &Format) -> Option<Self> {
        Some(Layout {
            code,
            pid: format.field("common_pid")?,
            device: format.field("dev")?,
            sector: format.field("sector")?,
            sectors: format.field("nr_sector"),
            bytes: format.field("bytes"),
            rest_at: format.field("new_sector"),
            error: format.field("error"),
            flags: format.field("rwbs")?,
            comm: format.field("comm"),
        })
    }
}

/// Converts events to records; each task is named before its first record.
#[derive(Debug, Clone, Default)]
pub struct Decoder {
    common_type: Option<Field>,
    layouts: HashMap<u16, Layout>,
    named: HashMap<u32, Vec<u8>>,
}

impl Decoder {
    /// Reads the layout of an event from the text of its file `format`. Returns whether the event can be decoded.
    pub fn learn(&mut self, event: &str, format: &str) -> bool {
        let format = Format::parse(format);
        let code = EVENTS.iter().find(|(name, _)| *name == event).map(|(_, code)| *code);
        let layout = code.and_then(|code| Layout::new(code, &format));
        let (Some(layout), Some(id), Some(common_type)) = (layout, format.id, format.field("common_type"))
        else {
            return false;
        };
        self.common_type = Some(common_type);
        self.layouts.insert(id, layout);
        true
    }

    /// Calls `each` with the records of one event: none if it is of another kind or too short.
    pub fn records(&mut self, cpu: u32, time_ns: u64, data: &[u8], mut each: impl FnMut(Record)) {
        if let Some((layout, record)) = self.record(cpu, time_ns, data) {
            let comm = layout.comm.and_then(|comm| comm.of(data)).map(until_nul);
            let pid = record.pid;
            if let Some(comm) = comm
                && self.named.get(&pid).is_none_or(|known| known != comm)
            {
                each(Record::naming(pid, &String::from_utf8_lossy(comm), time_ns));
                self.named.insert(pid, comm.to_owned());
            }
            each(record);
        }
    }

    fn record(&self, cpu: u32, time_ns: u64, data: &[u8]) -> Option<(&Layout, Record)> {
        let id = u16::try_from(self.common_type?.unsigned(data)?).ok()?;
        let layout = self.layouts.get(&id)?;
        let number = |field: Field| field.unsigned(data);
        let sector = number(layout.sector)?;
        let rest_at = if layout.code == SPLIT { Some(number(layout.rest_at?)?) } else { None };
        let bytes = match (rest_at, layout.bytes, layout.sectors) {
            (Some(rest_at), _, _) => rest_at.saturating_sub(sector).saturating_mul(512),
            (None, Some(bytes), _) => number(bytes)?,
            (None, None, Some(sectors)) => number(sectors)?.saturating_mul(512),
            (None, None, None) => return None,
        };
        let categories = stage(layout.code) | categories(until_nul(layout.flags.of(data)?));
        let error = layout.error.and_then(|error| error.signed(data)).unwrap_or(0);
        let record = Record {
            sequence: 0,
            time_ns,
            sector,
            bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
            action: u32::from(categories) << 16 | u32::from(layout.code),
            pid: u32::try_from(number(layout.pid)?).ok()?,
            device: u32::try_from(number(layout.device)?).ok()?,
            cpu,
            error: u16::try_from(error.unsigned_abs()).unwrap_or(u16::MAX),
            payload: rest_at.map_or_else(Box::default, |rest_at| Box::new(rest_at.to_be_bytes())),
        };
        Some((layout, record))
    }
}

fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or(bytes)
}

fn stage(code: u16) -> u16 {
    match code {
        6 => category::REQUEUE,
        7 => category::ISSUE,
        COMPLETION => category::COMPLETE,
        SPLIT => 0,
        _ => category::QUEUE,
    }
}

/// Categories of the letters of an event (`blk_fill_rwbs()` in the kernel's `kernel/trace/blktrace.c`): `F` before the
/// operation for a flush before the data, the operation, and modifiers.
fn categories(letters: &[u8]) -> u16 {
    let (before, operation, modifiers) = match letters {
        [b'F', operation @ (b'R' | b'W' | b'D' | b'N' | b'F' | b'Z'), modifiers @ ..] => {
            // `FF` is a flush with force unit access, or with a flush before it.
            (category::FLUSH, *operation, modifiers)
        }
        [operation, modifiers @ ..] => (0, *operation, modifiers),
        [] => (0, b'N', letters),
    };
    let of_operation = match operation {
        b'R' => category::READ | category::FS,
        b'W' | b'Z' => category::WRITE | category::FS,
        b'D' => category::WRITE | category::DISCARD | category::FS,
        b'F' => category::READ | category::FLUSH | category::FS,
        _ => category::PASS_THROUGH,
    };
    modifiers.iter().fold(before | of_operation, |bits, letter| {
        bits | match letter {
            b'F' => category::FUA,
            b'A' => category::READ_AHEAD,
            b'S' => category::SYNC,
            b'M' => category::META,
            _ => 0,
        }
    })
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
