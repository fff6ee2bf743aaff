//! Times since the first request, checked for order.

use std::path::{Path, PathBuf};

use crate::{Devices, Error, Reader, Skipping, TraceRequest};

/// Reader of requests with times since the first one; a request earlier than the one before is an error.
pub struct SinceFirst {
    path: PathBuf,
    inner: Box<dyn Reader>,
    first_ns: Option<i64>,
    last_ns: i64,
    number: u64,
}

impl SinceFirst {
    /// Follows a reader; `path` is for errors.
    pub fn new(path: &Path, inner: Box<dyn Reader>) -> Self {
        SinceFirst { path: path.to_owned(), inner, first_ns: None, last_ns: i64::MIN, number: 0 }
    }

    /// Time of the first request on the clock of its format, once it has been read.
    pub fn first_ns(&self) -> Option<i64> {
        self.first_ns
    }
}

impl Reader for SinceFirst {
    fn next_request(&mut self) -> Result<Option<TraceRequest>, Error> {
        let Some(mut request) = self.inner.next_request()? else { return Ok(None) };
        let number = self.number;
        self.number += 1;
        if request.arrival_ns < self.last_ns {
            let early_ns = self.last_ns.abs_diff(request.arrival_ns);
            return Err(Error::Unordered { path: self.path.clone(), number, early_ns });
        }
        self.last_ns = request.arrival_ns;
        let first_ns = *self.first_ns.get_or_insert(request.arrival_ns);
        request.arrival_ns = request.arrival_ns.checked_sub(first_ns).ok_or_else(|| Error::OutOfRange {
            path: self.path.clone(),
            number,
            what: "its time since the first request",
        })?;
        Ok(Some(request))
    }

    fn devices(&self) -> &Devices {
        self.inner.devices()
    }

    fn skipped(&self) -> &Skipping {
        self.inner.skipped()
    }

    fn header(&self) -> &[(String, String)] {
        self.inner.header()
    }
}

/// Reads the first requests of a trace ahead.
pub struct Peeked {
    first: std::vec::IntoIter<TraceRequest>,
    inner: Box<dyn Reader>,
    /// Error of reading ahead, not yet returned.
    error: Option<Error>,
}

impl Peeked {
    /// Reads ahead up to a number of requests, and passes them to `look`.
    pub fn new<T>(
        mut inner: Box<dyn Reader>,
        most: usize,
        look: impl FnOnce(&[TraceRequest]) -> T,
    ) -> (Self, T) {
        let mut first = Vec::new();
        let mut error = None;
        while first.len() < most {
            match inner.next_request() {
                Ok(Some(request)) => first.push(request),
                Ok(None) => break,
                Err(bad) => {
                    error = Some(bad);
                    break;
                }
            }
        }
        let seen = look(&first);
        (Peeked { first: first.into_iter(), inner, error }, seen)
    }
}

impl Reader for Peeked {
    fn next_request(&mut self) -> Result<Option<TraceRequest>, Error> {
        match (self.first.next(), self.error.take()) {
            (Some(request), error) => {
                self.error = error;
                Ok(Some(request))
            }
            (None, Some(error)) => Err(error),
            (None, None) => self.inner.next_request(),
        }
    }

    fn devices(&self) -> &Devices {
        self.inner.devices()
    }

    fn skipped(&self) -> &Skipping {
        self.inner.skipped()
    }

    fn header(&self) -> &[(String, String)] {
        self.inner.header()
    }
}
