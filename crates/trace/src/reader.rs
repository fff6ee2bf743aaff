//! Interface of trace readers.

use crate::Error;
use crate::request::{Devices, TraceRequest};

/// Reader of a trace: returns requests in file order, in bounded memory.
pub trait Reader: Send {
    /// The next request, or `None` at the end.
    ///
    /// # Errors
    /// The file cannot be read, or has invalid content that is not to be skipped.
    fn next_request(&mut self) -> Result<Option<TraceRequest>, Error>;

    /// Devices of the requests read so far.
    fn devices(&self) -> &Devices;

    /// Records skipped so far.
    fn skipped(&self) -> &Skipping;

    /// Header of the trace: names and values as written.
    fn header(&self) -> &[(String, String)] {
        &[]
    }
}

/// Count of skipped invalid records.
#[derive(Debug, Default)]
pub struct Skipping {
    allowed: bool,
    count: u64,
    first: Option<Error>,
    noted: Vec<(&'static str, u64)>,
}

impl Skipping {
    /// A counter that skips invalid records if `allowed`.
    pub(crate) fn new(allowed: bool) -> Self {
        Skipping { allowed, ..Skipping::default() }
    }

    /// Skips an invalid record, or returns the error.
    pub(crate) fn over(&mut self, error: Error) -> Result<(), Error> {
        if !self.allowed {
            return Err(error);
        }
        self.count += 1;
        self.first.get_or_insert(error);
        Ok(())
    }

    /// Skips an invalid record like [`Skipping::over`]; other errors are always returned.
    pub(crate) fn over_bad(&mut self, error: Error) -> Result<(), Error> {
        match error {
            Error::Bad { .. } => self.over(error),
            _ => Err(error),
        }
    }

    /// Counts a peculiarity that is no damage.
    pub(crate) fn note(&mut self, what: &'static str) {
        match self.noted.iter_mut().find(|(noted, _)| *noted == what) {
            Some((_, count)) => *count += 1,
            None => self.noted.push((what, 1)),
        }
    }

    /// Counts of peculiarities that are not damage, such as records that the recorder marked as suspect.
    pub fn noted(&self) -> &[(&'static str, u64)] {
        &self.noted
    }

    /// Number of skipped records.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Error of the first skipped record.
    pub fn first(&self) -> Option<&Error> {
        self.first.as_ref()
    }
}
