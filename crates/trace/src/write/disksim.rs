//! DiskSim's ASCII format (DiskSim 4.0 reference manual, section on input traces): `TIME DEVICE BLOCK BLOCKS FLAGS`, with
//! ms, blocks of 512 bytes, and bit 0 of the hexadecimal flags for a read.

use std::path::Path;

use super::partial::Partial;
use super::{Losses, Writer, Written, count_losses};
use crate::{Devices, Error, TraceOp, TraceRequest};

const BLOCK_BYTES: u64 = 512;

pub(super) struct Disksim {
    file: Partial,
    requests: u64,
    end_bytes: u64,
    losses: Losses,
}

impl Disksim {
    pub(super) fn create(path: &Path) -> Result<Self, Error> {
        Ok(Disksim { file: Partial::create(path)?, requests: 0, end_bytes: 0, losses: Losses::default() })
    }
}

impl Writer for Disksim {
    fn write(&mut self, request: &TraceRequest, devices: &Devices) -> Result<(), Error> {
        let flags = match request.op {
            TraceOp::Read => 1,
            TraceOp::Write | TraceOp::WriteFua => 0,
            _ => {
                self.losses.add("requests other than reads and writes left out");
                return Ok(());
            }
        };
        if request.size_bytes == 0 {
            self.losses.add("requests of 0 bytes left out");
            return Ok(());
        }
        count_losses(&mut self.losses, request, false);
        self.losses.add_if(request.pid.is_some(), "process left out");
        self.losses.add_if(request.object.is_some(), "object left out");
        let block = request.offset_bytes / BLOCK_BYTES;
        let end = request.offset_bytes.saturating_add(request.size_bytes).div_ceil(BLOCK_BYTES);
        let whole = request.offset_bytes.is_multiple_of(BLOCK_BYTES)
            && request.size_bytes.is_multiple_of(BLOCK_BYTES);
        self.losses.add_if(!whole, "requests enlarged to whole blocks of 512 bytes");
        // The device's own number if that is its name.
        let device = devices.name(request.device).parse().unwrap_or(request.device);
        self.losses.add_if(device.to_string() != devices.name(request.device), "device's name left out");
        let (ms, ns) = (request.arrival_ns / 1_000_000, request.arrival_ns % 1_000_000);
        self.file.put(|to| writeln!(to, "{ms}.{ns:06} {device} {block} {} {flags:x}", end - block))?;
        self.requests += 1;
        self.end_bytes = self.end_bytes.max(end.saturating_mul(BLOCK_BYTES));
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Written, Error> {
        let path = self.file.finish()?;
        Ok(Written { path, requests: self.requests, end_bytes: self.end_bytes, losses: self.losses })
    }
}
