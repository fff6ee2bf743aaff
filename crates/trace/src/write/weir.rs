//! Weir's own trace format. It holds all that a trace has.

use std::path::Path;

use super::partial::Partial;
use super::{Losses, Writer, Written};
use crate::packed::{Encoder, MOST_REQUESTS};
use crate::{Devices, Error, TraceRequest};

pub(super) struct WeirFile {
    file: Partial,
    encoder: Encoder,
}

impl WeirFile {
    pub(super) fn create(path: &Path) -> Result<Self, Error> {
        let mut file = Partial::create(path)?;
        let encoder = file.put(|to| Encoder::begin(MOST_REQUESTS, to))?;
        Ok(WeirFile { file, encoder })
    }
}

impl Writer for WeirFile {
    fn write(&mut self, request: &TraceRequest, devices: &Devices) -> Result<(), Error> {
        self.file.put(|to| self.encoder.push(request, devices, to))
    }

    fn finish(self: Box<Self>) -> Result<Written, Error> {
        let WeirFile { mut file, encoder } = *self;
        let index = file.put(|to| encoder.finish(to))?;
        let end_bytes = index.devices().map(|(_, end_bytes)| end_bytes).max().unwrap_or(0);
        let path = file.finish()?;
        Ok(Written { path, requests: index.requests(), end_bytes, losses: Losses::default() })
    }
}
