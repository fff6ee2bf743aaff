//! Readers, whatever the format.

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
}

/// Records that are passed over because they are not as their format has them.
#[derive(Debug, Default)]
pub struct Skipping {
    allowed: bool,
    count: u64,
    first: Option<Error>,
}

impl Skipping {
    /// Whether bad records are passed over at all.
    pub(crate) fn new(allowed: bool) -> Self {
        Skipping { allowed, count: 0, first: None }
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

    /// How many were passed over.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// What was wrong with the first.
    pub fn first(&self) -> Option<&Error> {
        self.first.as_ref()
    }
}
