//! `requests.parquet`: requests as the application saw them.

use std::sync::Arc;

pub use weir_vocabulary::Op;

crate::named!(Op);

crate::record! {
    /// One request as the application saw it.
    ///
    /// A stream that has not been served yet has the same shape with the times of service missing, so a
    /// recorded run is itself a stream that can be sent again.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Request, RequestColumns {
        /// Number within the run, from 0 in order of intended time.
        pub request: u64,
        /// The application class that asked.
        pub class: Arc<str>,
        /// The client within the class, from 0.
        pub client: u32,
        /// The device or directory that was asked; `None` before one is chosen.
        pub device: Option<Arc<str>>,
        /// The file within the class's file set; `None` where a device is addressed directly.
        pub file: Option<u32>,
        /// Read or write.
        pub op: Op,
        /// Bytes from the start of the file, or of the device where there is no file.
        pub offset: u64,
        /// Bytes transferred.
        pub size_bytes: u64,
        /// When the workload wanted the request sent.
        pub intended_ns: i64,
        /// When it was handed to the kernel; `None` if it never was.
        pub submitted_ns: Option<i64>,
        /// When its completion was seen; `None` if it never was.
        pub completed_ns: Option<i64>,
        /// When it is worthless; `None` if never.
        pub deadline_ns: Option<i64>,
        /// When its service began (known to a simulator only).
        pub served_ns: Option<i64>,
        /// 0, or the `errno` of the failure.
        pub status: i32,
        /// Sent before the measured interval began.
        pub warmup: bool,
    }
    where crate::sane::request
}
