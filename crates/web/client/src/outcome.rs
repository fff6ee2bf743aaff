//! Outcome of a request, and its rows in `requests.parquet` and `pages.parquet`.

use std::sync::Arc;

use weir_records::{Op, Page, Request};

use crate::client::Method;

/// Outcome of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Number within the run, from 0 in order of intended time.
    pub request: u64,
    /// Index of the class.
    pub class: u32,
    /// The client within the class.
    pub client: u32,
    /// Name of the page; absent if the client set none.
    pub label: Option<Arc<str>>,
    /// Method of the request.
    pub method: Method,
    /// The document that was expected, if one was.
    pub document: Option<u32>,
    /// Intended instant, ns since the epoch.
    pub intended_ns: i64,
    /// Instant of the first write to the socket; absent: never sent.
    pub submitted_ns: Option<i64>,
    /// Instant at which the answer was complete or had failed; absent after a timeout.
    pub completed_ns: Option<i64>,
    /// Deadline; absent: none.
    pub deadline_ns: Option<i64>,
    /// Bytes of the body received.
    pub body_bytes: u64,
    /// The HTTP status; 0 where no answer began.
    pub http_status: u16,
    /// 0, or the `errno` of the failure (see [`crate::status`]).
    pub error: i32,
    /// Intended before the measured interval began.
    pub warmup: bool,
}

impl Outcome {
    /// The row of `requests.parquet`: `file` is the document's number, `offset` 0, `size_bytes` the body's length.
    /// `class` and `server` are the name and the URL of the class.
    pub fn to_request(&self, class: &Arc<str>, server: &Arc<str>) -> Request {
        Request {
            request: self.request,
            class: Arc::clone(class),
            client: self.client,
            device: Some(Arc::clone(server)),
            file: self.document,
            op: if self.method == Method::Post { Op::Write } else { Op::Read },
            offset: 0,
            size_bytes: self.body_bytes,
            intended_ns: self.intended_ns,
            submitted_ns: self.submitted_ns,
            completed_ns: self.completed_ns,
            deadline_ns: self.deadline_ns,
            served_ns: None,
            status: self.error,
            warmup: self.warmup,
        }
    }

    /// The row of `pages.parquet`; a page without a name has that of the class.
    pub fn to_page(&self, class: &Arc<str>) -> Page {
        Page {
            request: self.request,
            class: Arc::clone(class),
            client: self.client,
            page: Arc::clone(self.label.as_ref().unwrap_or(class)),
            intended_ns: self.intended_ns,
            submitted_ns: self.submitted_ns,
            completed_ns: self.completed_ns,
            size_bytes: self.body_bytes,
            http_status: self.http_status,
            status: self.error,
            warmup: self.warmup,
        }
    }
}
