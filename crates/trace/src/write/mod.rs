//! Trace writers: Parquet, weir's own format, fio's log, blktrace's stream, DiskSim's text.
//!
//! Times are relative to the trace's first request. Fields that a format cannot hold are left out or rounded, and counted.

mod blktrace;
mod disksim;
mod iolog;
mod partial;
mod table;
mod weir;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use table::Class;

use crate::{Devices, Error, Reader, TraceRequest};

/// Output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Weir's `requests.parquet`, which `weir replay` sends.
    Parquet,
    /// Weir's own trace format ([`crate::packed`]), which holds all that a trace has.
    Weir,
    /// fio's I/O log, version 3.
    Iolog,
    /// The binary stream of blktrace(8).
    Blktrace,
    /// DiskSim's ASCII format.
    Disksim,
}

impl Target {
    /// All output formats.
    pub const ALL: [Target; 5] =
        [Target::Parquet, Target::Weir, Target::Iolog, Target::Blktrace, Target::Disksim];

    /// `parquet`, `weir`, `iolog`, `blktrace` or `disksim`.
    pub fn name(self) -> &'static str {
        match self {
            Target::Parquet => "parquet",
            Target::Weir => "weir",
            Target::Iolog => "iolog",
            Target::Blktrace => "blktrace",
            Target::Disksim => "disksim",
        }
    }

    /// The inverse of [`Target::name`].
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|target| target.name() == name)
    }

    /// Creates a file. It gets its name when it is complete.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create(self, path: &Path, class: &Class) -> Result<Box<dyn Writer>, Error> {
        Ok(match self {
            Target::Parquet => Box::new(table::TableFile::create(path, class.clone())?),
            Target::Weir => Box::new(weir::WeirFile::create(path)?),
            Target::Iolog => Box::new(iolog::Iolog::create(path)?),
            Target::Blktrace => Box::new(blktrace::Stream::create(path)?),
            Target::Disksim => Box::new(disksim::Disksim::create(path)?),
        })
    }
}

/// Writer of requests in time order, with times since the first.
pub trait Writer {
    /// Adds a request, or counts it as lost.
    ///
    /// # Errors
    /// The disk is full, or the file is gone.
    fn write(&mut self, request: &TraceRequest, devices: &Devices) -> Result<(), Error>;

    /// Completes the file and renames it to its final name.
    ///
    /// # Errors
    /// Same as [`Writer::write`].
    fn finish(self: Box<Self>) -> Result<Written, Error>;
}

/// Summary of a written file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Written {
    /// The file.
    pub path: PathBuf,
    /// Number of requests.
    pub requests: u64,
    /// End of the last byte of any request: the least size of a device.
    pub end_bytes: u64,
    /// Lost properties with the numbers of requests.
    pub losses: Losses,
}

/// Properties that a format cannot hold, with the numbers of requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Losses(BTreeMap<&'static str, u64>);

impl Losses {
    /// Counts a request.
    pub(crate) fn add(&mut self, what: &'static str) {
        *self.0.entry(what).or_default() += 1;
    }

    /// Counts a request if a condition holds.
    pub(crate) fn add_if(&mut self, lost: bool, what: &'static str) {
        if lost {
            self.add(what);
        }
    }

    /// Properties and numbers of requests.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.0.iter().map(|(what, count)| (*what, *count))
    }

    /// Whether nothing was lost.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Recorded properties that no request of the format can hold.
fn count_losses(losses: &mut Losses, request: &TraceRequest, service: bool) {
    if !service {
        losses
            .add_if(request.queueing_ns.is_some() || request.response_ns.is_some(), "service times left out");
    }
    losses.add_if(request.queue_length.is_some(), "queue length left out");
}

/// Writes all requests of a reader.
///
/// # Errors
/// The trace cannot be read, or the file not be written.
pub fn all(reader: &mut dyn Reader, mut writer: Box<dyn Writer>) -> Result<Written, Error> {
    while let Some(request) = reader.next_request()? {
        writer.write(&request, reader.devices())?;
    }
    writer.finish()
}
