//! `requests.parquet`: requests as the application saw them.

use std::sync::Arc;

use crate::Op;
use crate::sane::{answered, ordered, status};

crate::named!(Op);

crate::record! {
    /// One request as the application saw it.
    ///
    /// A stream that has not been served yet has the same columns without the times of service. A recorded run is
    /// therefore a stream that can be sent again.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Request, RequestColumns {
        /// Number within the run, from 0 in order of intended time; in virtual time, in order of completion.
        pub request: u64,
        /// The application class that sent the request.
        pub class: Arc<str>,
        /// The client within the class, from 0.
        pub client: u32,
        /// The device or directory that the request went to, under its name in the study.
        /// Null: no device is chosen yet (a stream that has not been sent).
        pub device: Option<Arc<str>>,
        /// The file within the class's file set.
        /// Null: the request addresses a device directly.
        pub file: Option<u32>,
        /// `read`, `write`, `write_fua` (durable when it completes), `flush`, `discard` or `write_zeroes`.
        pub op: Op,
        /// Bytes from the start of the file, or of the device where there is no file; 0 for a flush.
        /// Unit: bytes.
        pub offset: u64,
        /// Bytes transferred, discarded or made zero; 0 for a flush.
        /// Unit: bytes.
        pub size_bytes: u64,
        /// When the workload wanted the request to be sent.
        /// Unit: ns.
        pub intended_ns: i64,
        /// When the request was handed to the kernel.
        /// Null: it never was.
        /// Unit: ns.
        pub submitted_ns: Option<i64>,
        /// When the completion was seen.
        /// Null: it never was.
        /// Unit: ns.
        pub completed_ns: Option<i64>,
        /// When the answer is worthless: later is a deadline miss.
        /// Null: the class has no deadlines.
        /// Unit: ns.
        pub deadline_ns: Option<i64>,
        /// When the service of the request began, after queueing.
        /// Null: not known; only a simulator knows it.
        /// Unit: ns.
        pub served_ns: Option<i64>,
        /// 0, or the `errno` of the failure.
        pub status: i32,
        /// Whether the request belongs to the warm-up, before the measured interval.
        pub warmup: bool,
    }
    where check
}

/// Refuses a row whose times or status cannot be.
fn check(row: &Request) -> Result<(), String> {
    answered(row.intended_ns, row.submitted_ns, row.completed_ns)?;
    ordered(("intended_ns", Some(row.intended_ns)), ("served_ns", row.served_ns))?;
    ordered(("served_ns", row.served_ns), ("completed_ns", row.completed_ns))?;
    status(row.status)
}
