//! The stream of blktrace(8): `Q` at the arrival of each request, and, if recorded, `D` at the start of its service and
//! `C` at its completion.
//!
//! One file, as of one CPU: `PREFIX.blktrace.0`. Devices become 240:N, of the range for local use.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};

use super::partial::Partial;
use super::{Losses, Writer, Written};
use crate::blktrace::{Record, category};
use crate::{Devices, Error, TraceOp, TraceRequest};

const SECTOR_BYTES: u64 = 512;
/// Numbers 240 to 254 are for local and experimental use (the kernel's `devices.txt`).
const MAJOR: u32 = 240;
const MINOR_BITS: u32 = 20;
const QUEUE: u32 = 1;
const ISSUE: u32 = 7;
const COMPLETE: u32 = 8;

/// Events of arrived requests that are not written yet, by time and in the order of arrival.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Later {
    time_ns: u64,
    order: u64,
    action: u32,
    sector: u64,
    bytes: u32,
    pid: u32,
    device: u32,
}

pub(super) struct Stream {
    file: Partial,
    later: BinaryHeap<Reverse<Later>>,
    order: u64,
    sequence: u32,
    requests: u64,
    end_bytes: u64,
    losses: Losses,
}

impl Stream {
    /// `path` is the file, if it is called `PREFIX.blktrace.0`, or the prefix.
    pub(super) fn create(path: &Path) -> Result<Self, Error> {
        let mut name = path.as_os_str().to_owned();
        if !path.to_string_lossy().ends_with(".blktrace.0") {
            name.push(".blktrace.0");
        }
        Ok(Stream {
            file: Partial::create(&PathBuf::from(name))?,
            later: BinaryHeap::new(),
            order: 0,
            sequence: 0,
            requests: 0,
            end_bytes: 0,
            losses: Losses::default(),
        })
    }

    fn put(&mut self, event: Later) -> Result<(), Error> {
        self.sequence = self.sequence.wrapping_add(1);
        let record = Record {
            sequence: self.sequence,
            time_ns: event.time_ns,
            sector: event.sector,
            bytes: event.bytes,
            action: event.action,
            pid: event.pid,
            device: event.device,
            cpu: 0,
            error: 0,
            payload: Box::new([]),
        };
        self.file.put(|to| to.write_all(&record.encode()))
    }

    /// Writes what happened up to a time.
    fn up_to(&mut self, time_ns: u64) -> Result<(), Error> {
        while self.later.peek().is_some_and(|Reverse(event)| event.time_ns <= time_ns) {
            if let Some(Reverse(event)) = self.later.pop() {
                self.put(event)?;
            }
        }
        Ok(())
    }

    fn after(&mut self, after_ns: Option<i64>, arrival_ns: u64) -> Option<u64> {
        let after_ns = u64::try_from(after_ns?);
        self.losses.add_if(after_ns.is_err(), "service times below 0 left out");
        arrival_ns.checked_add(after_ns.ok()?)
    }
}

impl Writer for Stream {
    fn write(&mut self, request: &TraceRequest, _: &Devices) -> Result<(), Error> {
        let categories = match request.op {
            TraceOp::Read => category::READ,
            TraceOp::Write => category::WRITE,
            TraceOp::Flush => category::WRITE | category::FLUSH,
            TraceOp::WriteFua => category::WRITE | category::FUA,
            TraceOp::Discard => category::WRITE | category::DISCARD,
            TraceOp::WriteZeroes => {
                self.losses.add("zeroings left out: blktrace cannot tell them from writes");
                return Ok(());
            }
            TraceOp::Other => {
                self.losses.add("requests without data left out");
                return Ok(());
            }
        };
        let Ok(bytes) = u32::try_from(request.size_bytes) else {
            self.losses.add("requests of 4 GiB or more left out");
            return Ok(());
        };
        let Some(device) =
            (request.device >> MINOR_BITS == 0).then_some(MAJOR << MINOR_BITS | request.device)
        else {
            self.losses.add("requests to devices beyond 2^20 left out");
            return Ok(());
        };
        self.losses.add_if(request.queue_length.is_some(), "queue length left out");
        self.losses.add_if(request.object.is_some(), "object left out");
        self.losses.add_if(
            !request.offset_bytes.is_multiple_of(SECTOR_BYTES),
            "offsets cut to sectors of 512 bytes",
        );
        self.losses.add_if(request.arrival_ns < 0, "times below 0 made 0");
        let arrival_ns = u64::try_from(request.arrival_ns).unwrap_or(0);
        self.up_to(arrival_ns)?;
        self.order += 1;
        let event = |time_ns, code: u32, extra: u16| Later {
            time_ns,
            order: 0,
            action: u32::from(categories | category::FS | extra) << 16 | code,
            sector: request.offset_bytes / SECTOR_BYTES,
            bytes,
            pid: request.pid.unwrap_or(0),
            device,
        };
        // A completion belongs to an issue. Where none was recorded, the arrival is that of the issue.
        let is_issued = request.queueing_ns.is_none() && request.response_ns.is_some();
        let (code, extra) = if is_issued { (ISSUE, category::ISSUE) } else { (QUEUE, category::QUEUE) };
        self.put(event(arrival_ns, code, extra))?;
        for (after_ns, code, extra) in [
            (request.queueing_ns, ISSUE, category::ISSUE),
            (request.response_ns, COMPLETE, category::COMPLETE),
        ] {
            if let Some(time_ns) = self.after(after_ns, arrival_ns) {
                let order = self.order;
                self.later.push(Reverse(Later { order, ..event(time_ns, code, extra) }));
            }
        }
        self.requests += 1;
        self.end_bytes = self.end_bytes.max(request.offset_bytes.saturating_add(request.size_bytes));
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<Written, Error> {
        self.up_to(u64::MAX)?;
        let path = self.file.finish()?;
        Ok(Written { path, requests: self.requests, end_bytes: self.end_bytes, losses: self.losses })
    }
}
