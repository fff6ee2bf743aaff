//! Events of `block.bpf.c`, decoded and converted to rows.

use std::collections::HashMap;
use std::sync::Arc;

use weir_records::block::flag_names;
use weir_records::{BlockOp, BlockRequest};

use crate::disk::Disk;

/// Bytes of `struct block_event` in `block.h`.
pub(crate) const EVENT_BYTES: usize = 72;
/// Place of `completed_ns` in it.
pub(crate) const COMPLETED_NS_AT: usize = 24;

/// `enum event_kind` of `block.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A request completed.
    Completed = 0,
    /// A request whose completion was not seen.
    Hidden = 1,
    /// Name of a task from `issued_ns` on, in the bytes of `queued_ns` and `inserted_ns`.
    Name = 2,
}

impl Kind {
    fn from_number(number: u64) -> Option<Self> {
        [Kind::Completed, Kind::Hidden, Kind::Name].into_iter().find(|kind| *kind as u64 == number)
    }
}

/// `struct block_event` of `block.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) queued_ns: u64,
    pub(crate) inserted_ns: u64,
    pub(crate) issued_ns: u64,
    pub(crate) completed_ns: u64,
    pub(crate) sector: u64,
    pub(crate) cgroup: u64,
    pub(crate) bytes: u32,
    pub(crate) cmd_flags: u32,
    pub(crate) pid: u32,
    pub(crate) priority: u16,
    pub(crate) device: u8,
    pub(crate) status: u8,
    pub(crate) kind: Kind,
}

impl Event {
    /// Decodes the bytes of one event; `None` if they are not an event.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; EVENT_BYTES] = bytes.try_into().ok()?;
        let u64_at = |at: usize| bytes[at..at + 8].try_into().map(u64::from_ne_bytes).ok();
        let u32_at = |at: usize| bytes[at..at + 4].try_into().map(u32::from_ne_bytes).ok();
        Some(Event {
            queued_ns: u64_at(0)?,
            inserted_ns: u64_at(8)?,
            issued_ns: u64_at(16)?,
            completed_ns: u64_at(COMPLETED_NS_AT)?,
            sector: u64_at(32)?,
            cgroup: u64_at(40)?,
            bytes: u32_at(48)?,
            cmd_flags: u32_at(52)?,
            pid: u32_at(56)?,
            priority: u16::from_ne_bytes([bytes[60], bytes[61]]),
            device: bytes[62],
            status: bytes[63],
            kind: Kind::from_number(u64_at(64)?)?,
        })
    }

    /// The kind of encoded bytes; faster than decoding.
    pub(crate) fn kind(bytes: &[u8]) -> Option<Kind> {
        Kind::from_number(u64::from_ne_bytes(bytes.get(64..72)?.try_into().ok()?))
    }

    /// The inverse of [`Event::decode`], for events that the loader makes itself.
    pub(crate) fn encode(&self) -> [u8; EVENT_BYTES] {
        let mut bytes = [0; EVENT_BYTES];
        for (at, value) in
            [self.queued_ns, self.inserted_ns, self.issued_ns, self.completed_ns, self.sector, self.cgroup]
                .into_iter()
                .enumerate()
        {
            bytes[at * 8..at * 8 + 8].copy_from_slice(&value.to_ne_bytes());
        }
        for (at, value) in [self.bytes, self.cmd_flags, self.pid].into_iter().enumerate() {
            bytes[48 + at * 4..52 + at * 4].copy_from_slice(&value.to_ne_bytes());
        }
        bytes[60..62].copy_from_slice(&self.priority.to_ne_bytes());
        bytes[62] = self.device;
        bytes[63] = self.status;
        bytes[64..72].copy_from_slice(&(self.kind as u64).to_ne_bytes());
        bytes
    }
}

/// Names that a task had, with the time of each, in order of time. Only those of requests under way are needed.
type Names = Vec<(u64, Arc<str>)>;

/// Number of names of one task that are kept.
const KEPT_NAMES: usize = 8;

/// Converts events to rows; repeated names share one allocation.
pub(crate) struct RowMaker {
    devices: Vec<Arc<str>>,
    epoch_ns: i64,
    flags: HashMap<u32, Arc<str>>,
    names: HashMap<u32, Names>,
    no_name: Arc<str>,
    source: Arc<str>,
}

impl RowMaker {
    pub(crate) fn new(devices: &[Disk], epoch_ns: i64) -> Self {
        RowMaker {
            devices: devices.iter().map(|disk| Arc::clone(&disk.name)).collect(),
            epoch_ns,
            flags: HashMap::new(),
            names: HashMap::new(),
            no_name: "".into(),
            source: "bpf".into(),
        }
    }

    /// Row of an event; `None` for the name of a task, or for another device.
    pub(crate) fn row(&mut self, event: &Event) -> Option<BlockRequest> {
        if event.kind == Kind::Name {
            let comm: Vec<u8> =
                [event.queued_ns, event.inserted_ns].into_iter().flat_map(u64::to_ne_bytes).collect();
            let names = self.names.entry(event.pid).or_default();
            if names.len() == KEPT_NAMES {
                names.remove(0);
            }
            names.push((event.issued_ns, text(&comm).into()));
            return None;
        }
        let device = Arc::clone(self.devices.get(usize::from(event.device))?);
        let time = |ns: u64| i64::try_from(ns).ok().filter(|ns| *ns != 0).map(|ns| ns - self.epoch_ns);
        let comm = self.name_at(event.pid, event.queued_ns);
        let flags = self.flags.entry(event.cmd_flags).or_insert_with(|| flag_names(event.cmd_flags).into());
        Some(BlockRequest {
            device,
            sector: event.sector,
            size_bytes: event.bytes,
            op: BlockOp::from_cmd_flags(event.cmd_flags),
            flags: Arc::clone(flags),
            priority: Some(event.priority),
            pid: event.pid,
            comm,
            cgroup: Some(event.cgroup).filter(|id| *id != 0),
            queued_ns: time(event.queued_ns),
            inserted_ns: time(event.inserted_ns),
            issued_ns: time(event.issued_ns),
            completed_ns: time(event.completed_ns),
            status: errno_of(event.status),
            source: Arc::clone(&self.source),
        })
    }
}

impl RowMaker {
    /// The name of a task at a time; the first known one for an earlier time.
    fn name_at(&self, pid: u32, time_ns: u64) -> Arc<str> {
        let names = self.names.get(&pid).map_or(&[][..], Vec::as_slice);
        let after = names.partition_point(|(since_ns, _)| *since_ns <= time_ns);
        names.get(after.saturating_sub(1)).map_or(&self.no_name, |(_, name)| name).clone()
    }
}

/// A C string in a fixed array.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// The `errno` of a `blk_status_t` (`blk_errors[]` in the kernel's `block/blk-core.c`).
pub(crate) fn errno_of(status: u8) -> i32 {
    match status {
        0 => 0,
        1 => libc::EOPNOTSUPP,
        2 => libc::ETIMEDOUT,
        3 => libc::ENOSPC,
        4 => libc::ENOLINK,
        5 => libc::EREMOTEIO,
        6 => libc::EBADE,
        7 => libc::ENODATA,
        8 => libc::EILSEQ,
        9 => libc::ENOMEM,
        12 => libc::EAGAIN,
        13 => libc::EBUSY,
        14 => libc::ETOOMANYREFS,
        15 => libc::EOVERFLOW,
        16 => libc::ENODEV,
        17 => libc::ETIME,
        19 => libc::EINVAL,
        _ => libc::EIO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event() -> Event {
        Event {
            queued_ns: 100,
            inserted_ns: 0,
            issued_ns: 200,
            completed_ns: 300,
            sector: 8,
            cgroup: 1,
            bytes: 4096,
            cmd_flags: 1 | 1 << 11,
            pid: 7,
            priority: 3,
            device: 0,
            status: 10,
            kind: Kind::Completed,
        }
    }

    #[test]
    fn the_last_names_of_a_task_are_kept() {
        let mut maker = RowMaker::new(&[Disk { name: "loop9".into(), major: 7, minor: 9 }], 0);
        for since in 0..100 {
            let letter = u64::from(b'a') + since % 26;
            maker.row(&Event {
                queued_ns: letter,
                inserted_ns: 0,
                issued_ns: since,
                kind: Kind::Name,
                ..event()
            });
        }
        let comm = |maker: &mut RowMaker, at| maker.row(&Event { queued_ns: at, ..event() }).unwrap().comm;
        // The 95th is the 18th letter; of times before the names that are kept, the first of them is told.
        assert_eq!((&*comm(&mut maker, 95), &*comm(&mut maker, 1_000)), ("r", "v"));
        assert_eq!(&*comm(&mut maker, 3), &*comm(&mut maker, 92));
        assert_eq!(maker.names[&7].len(), KEPT_NAMES);
    }

    #[test]
    fn an_event_survives_its_encoding() {
        assert_eq!(Event::decode(&event().encode()), Some(event()));
        assert_eq!(Event::decode(&[0; EVENT_BYTES - 1]), None);
    }

    #[test]
    fn a_row_has_times_since_the_epoch_and_names() {
        let disk = Disk { name: "loop9".into(), major: 7, minor: 9 };
        let mut maker = RowMaker::new(&[disk], 50);
        let comm = u64::from_ne_bytes(*b"fio\0\0\0\0\0");
        let name = Event { queued_ns: comm, inserted_ns: 0, issued_ns: 100, kind: Kind::Name, ..event() };
        assert_eq!(maker.row(&name), None);
        // Its next name comes before the request that it made by its first one.
        let next = Event { queued_ns: u64::from_ne_bytes(*b"bash\0\0\0\0"), issued_ns: 150, ..name };
        assert_eq!(maker.row(&next), None);
        let later = maker.row(&Event { queued_ns: 150, ..event() }).unwrap();
        assert_eq!(&*later.comm, "bash");
        let row = maker.row(&event()).unwrap();
        assert_eq!((row.queued_ns, row.inserted_ns, row.completed_ns), (Some(50), None, Some(250)));
        assert_eq!((&*row.comm, &*row.flags, row.op, row.status), ("fio", "sync", BlockOp::Write, libc::EIO));
    }
}
