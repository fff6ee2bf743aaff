//! Temporary file of requests.

use std::fs::File;
use std::io::{self, BufWriter};

use super::{Encoder, PackedFile};
use crate::{Devices, Error, TraceRequest};

/// Writer of a temporary file in the folder of `TMPDIR`. The file is unlinked: the kernel removes it with its last user, also
/// after `kill -9`. A request of a block trace takes 6 to 20 bytes.
#[derive(Debug)]
pub struct Spool {
    to: BufWriter<File>,
    encoder: Encoder,
}

impl Spool {
    /// Creates the file, for chunks of so many requests.
    ///
    /// # Errors
    /// It cannot be created.
    pub fn create(chunk_requests: usize) -> Result<Self, Error> {
        let create = || {
            let mut to = BufWriter::new(tempfile::tempfile()?);
            let encoder = Encoder::begin(chunk_requests, &mut to)?;
            Ok(Spool { to, encoder })
        };
        create().map_err(failed)
    }

    /// Adds a request.
    ///
    /// # Errors
    /// The file system is full, say.
    pub fn push(&mut self, request: &TraceRequest, devices: &Devices) -> Result<(), Error> {
        self.encoder.push(request, devices, &mut self.to).map_err(failed)
    }

    /// The file, complete.
    ///
    /// # Errors
    /// Same as [`Spool::push`].
    pub fn finish(mut self) -> Result<PackedFile, Error> {
        let index = self.encoder.finish(&mut self.to).map_err(failed)?;
        let file = self.to.into_inner().map_err(|error| failed(error.into_error()))?;
        Ok(PackedFile::written(file, std::env::temp_dir(), index))
    }
}

/// The file has no name: its folder is named.
fn failed(source: io::Error) -> Error {
    Error::Io { path: std::env::temp_dir(), source }
}
