//! The reader interface of all formats.

use crate::Error;
use crate::request::{Devices, TraceRequest};

/// Yields the requests of a trace in the order of the file, in bounded memory.
pub trait Reader: Send {
    /// The next request, or `None` at the end.
    ///
    /// # Errors
    /// The file cannot be read; something in it is not as its format has it (unless that is to be skipped).
    fn next_request(&mut self) -> Result<Option<TraceRequest>, Error>;

    /// The devices that requests have named so far.
    fn devices(&self) -> &Devices;

    /// What was skipped so far.
    fn skipped(&self) -> &Skipping;

    /// What the trace says of itself before its requests: names and values, in its own words.
    fn header(&self) -> &[(String, String)] {
        &[]
    }
}

/// Records that are passed over because they are not as their format has them.
#[derive(Debug, Default)]
pub struct Skipping {
    allowed: bool,
    count: u64,
    first: Option<Error>,
    noted: Vec<(&'static str, u64)>,
}

impl Skipping {
    /// Whether bad records are passed over at all.
    pub(crate) fn new(allowed: bool) -> Self {
        Skipping { allowed, ..Skipping::default() }
    }

    /// Passes over a bad record, or gives the error back.
    pub(crate) fn over(&mut self, error: Error) -> Result<(), Error> {
        if !self.allowed {
            return Err(error);
        }
        self.count += 1;
        self.first.get_or_insert(error);
        Ok(())
    }

    /// As [`Skipping::over`] if a record is bad; what the operating system refuses is never passed over.
    pub(crate) fn over_bad(&mut self, error: Error) -> Result<(), Error> {
        match error {
            Error::Bad { .. } => self.over(error),
            _ => Err(error),
        }
    }

    /// Counts something that is no damage, but that whoever reads the trace should know of.
    pub(crate) fn note(&mut self, what: &'static str) {
        match self.noted.iter_mut().find(|(noted, _)| *noted == what) {
            Some((_, count)) => *count += 1,
            None => self.noted.push((what, 1)),
        }
    }

    /// What is no damage and yet peculiar, such as records that the recorder itself calls suspect: what, and how
    /// often so far.
    pub fn noted(&self) -> &[(&'static str, u64)] {
        &self.noted
    }

    /// How many were passed over.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// What was wrong with the first.
    pub fn first(&self) -> Option<&Error> {
        self.first.as_ref()
    }
}
