//! fio's I/O log, version 3 (fio 3.31 and later, fio's documentation "Trace file format v3"): a line each for a file's
//! `add`, `open` and `close`, and `TIME FILE ACTION OFFSET LENGTH` for a request; times are us since the start.

use std::collections::HashSet;
use std::path::Path;

use super::partial::Partial;
use super::{Losses, Writer, Written, count_losses};
use crate::{Devices, Error, TraceOp, TraceRequest};

pub(super) struct Iolog {
    file: Partial,
    /// Names by device; empty while it has not been opened.
    names: Vec<String>,
    taken: HashSet<String>,
    last_us: i64,
    requests: u64,
    end_bytes: u64,
    losses: Losses,
}

impl Iolog {
    pub(super) fn create(path: &Path) -> Result<Self, Error> {
        let mut file = Partial::create(path)?;
        file.put(|to| writeln!(to, "fio version 3 iolog"))?;
        Ok(Iolog {
            file,
            names: Vec::new(),
            taken: HashSet::new(),
            last_us: 0,
            requests: 0,
            end_bytes: 0,
            losses: Losses::default(),
        })
    }

    /// fio separates fields by white space; a name that two devices would share gets a number as its suffix.
    fn open(&mut self, device: u32, devices: &Devices) -> Result<(), Error> {
        let number = device as usize;
        if number >= self.names.len() {
            self.names.resize(number + 1, String::new());
        }
        if !self.names[number].is_empty() {
            return Ok(());
        }
        let given = devices.name(device);
        let mut name: String =
            given.chars().map(|c| if c.is_whitespace() || c.is_control() { '_' } else { c }).collect();
        while name.is_empty() || !self.taken.insert(name.clone()) {
            name = format!("{name}_{device}");
        }
        let at = self.last_us;
        self.file.put(|to| write!(to, "{at} {name} add\n{at} {name} open\n"))?;
        self.losses.add_if(name != given, "devices renamed, for fio's names have no spaces");
        self.names[number] = name;
        Ok(())
    }
}

impl Writer for Iolog {
    fn write(&mut self, request: &TraceRequest, devices: &Devices) -> Result<(), Error> {
        let action = match request.op {
            TraceOp::Read => "read",
            TraceOp::Write => "write",
            TraceOp::WriteFua => {
                self.losses.add("forced unit access left out: fio's log has plain writes");
                "write"
            }
            TraceOp::Flush => "sync",
            TraceOp::Discard => "trim",
            TraceOp::WriteZeroes => {
                self.losses.add("zeroings left out: fio's log has none");
                return Ok(());
            }
            TraceOp::Other => {
                self.losses.add("requests without data left out");
                return Ok(());
            }
        };
        if request.size_bytes == 0 && request.op != TraceOp::Flush {
            self.losses.add("requests of 0 bytes left out");
            return Ok(());
        }
        let Ok(length) = u32::try_from(request.size_bytes) else {
            self.losses.add("requests of 4 GiB or more left out");
            return Ok(());
        };
        count_losses(&mut self.losses, request, false);
        self.losses.add_if(request.pid.is_some(), "process left out");
        self.losses.add_if(request.object.is_some(), "object left out");
        self.losses.add_if(request.arrival_ns % 1000 != 0, "times cut to whole us");
        self.last_us = request.arrival_ns / 1000;
        self.open(request.device, devices)?;
        let (at, name, offset) = (self.last_us, &self.names[request.device as usize], request.offset_bytes);
        self.file.put(|to| writeln!(to, "{at} {name} {action} {offset} {length}"))?;
        self.requests += 1;
        self.end_bytes = self.end_bytes.max(offset.saturating_add(u64::from(length)));
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<Written, Error> {
        let at = self.last_us;
        for name in self.names.iter().filter(|name| !name.is_empty()) {
            self.file.put(|to| writeln!(to, "{at} {name} close"))?;
        }
        let path = self.file.finish()?;
        Ok(Written { path, requests: self.requests, end_bytes: self.end_bytes, losses: self.losses })
    }
}
