//! Weir's own table of requests. It holds reads and writes with their place, times of service and, as files, objects.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weir_records::{Op, Request, TableWriter};

use super::{Losses, Writer, Written, count_losses};
use crate::{Devices, Error, TraceRequest};

/// Sectors of direct transfers.
const SECTOR_BYTES: u64 = 512;

/// Name of the class in a replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Class {
    /// All of one class.
    Named(Arc<str>),
    /// One class for each device: each can have its own target in a replay.
    PerDevice,
}

pub(super) struct TableFile {
    path: PathBuf,
    writer: TableWriter<Request>,
    class: Class,
    names: Vec<Arc<str>>,
    files: HashMap<u64, u32>,
    requests: u64,
    end_bytes: u64,
    losses: Losses,
}

impl TableFile {
    pub(super) fn create(path: &Path, class: Class) -> Result<Self, Error> {
        Ok(TableFile {
            path: path.to_owned(),
            writer: TableWriter::create(path, 0)?,
            class,
            names: Vec::new(),
            files: HashMap::new(),
            requests: 0,
            end_bytes: 0,
            losses: Losses::default(),
        })
    }

    fn device(&mut self, number: u32, devices: &Devices) -> Arc<str> {
        while self.names.len() <= number as usize {
            self.names.push(devices.name(self.names.len() as u32).into());
        }
        Arc::clone(&self.names[number as usize])
    }

    fn file(&mut self, object: u64) -> Option<u32> {
        let next = u32::try_from(self.files.len()).ok();
        match (self.files.get(&object), next) {
            (Some(file), _) => Some(*file),
            (None, Some(next)) => {
                self.files.insert(object, next);
                self.losses.add("objects numbered anew, as files");
                Some(next)
            }
            (None, None) => None,
        }
    }
}

impl Writer for TableFile {
    fn write(&mut self, request: &TraceRequest, devices: &Devices) -> Result<(), Error> {
        let Some(op) = request.op.op() else {
            self.losses.add("requests without data left out");
            return Ok(());
        };
        if request.size_bytes == 0 && op != Op::Flush {
            self.losses.add("requests of 0 bytes left out");
            return Ok(());
        }
        let file = match request.object {
            Some(object) => {
                let file = self.file(object);
                if file.is_none() {
                    self.losses.add("requests to more than 2^32 objects left out");
                    return Ok(());
                }
                file
            }
            None => None,
        };
        let device = self.device(request.device, devices);
        let at = |after: Option<i64>| after.and_then(|after| request.arrival_ns.checked_add(after));
        let completed_ns = at(request.response_ns);
        count_losses(&mut self.losses, request, true);
        self.losses.add_if(request.pid.is_some(), "process left out");
        let aligned = request.offset_bytes.is_multiple_of(SECTOR_BYTES)
            && request.size_bytes.is_multiple_of(SECTOR_BYTES);
        self.losses
            .add_if(!aligned, "requests not of whole sectors of 512 bytes (a direct replay enlarges them)");
        self.end_bytes = self.end_bytes.max(request.offset_bytes.saturating_add(request.size_bytes));
        self.writer.write(&Request {
            request: self.requests,
            class: match &self.class {
                Class::Named(name) => Arc::clone(name),
                Class::PerDevice => Arc::clone(&device),
            },
            client: request.device,
            device: Some(device),
            file,
            op,
            offset: if op == Op::Flush { 0 } else { request.offset_bytes },
            size_bytes: if op == Op::Flush { 0 } else { request.size_bytes },
            intended_ns: request.arrival_ns,
            submitted_ns: completed_ns.map(|_| request.arrival_ns),
            completed_ns,
            deadline_ns: None,
            served_ns: at(request.queueing_ns),
            status: 0,
            warmup: false,
        })?;
        self.requests += 1;
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Written, Error> {
        let requests = self.writer.close()?;
        Ok(Written { path: self.path, requests, end_bytes: self.end_bytes, losses: self.losses })
    }
}
