//! `pages.parquet`: pages of a site as its browsers saw them.

use std::sync::Arc;

use crate::sane::{answered, status};

crate::record! {
    /// One attempt at a page. A page that failed and was asked for again has one row for each attempt.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Page, PageColumns {
        /// Number within the run, from 0 in order of intended time; the same as in `requests.parquet`.
        pub request: u64,
        /// The application class that sent the request.
        pub class: Arc<str>,
        /// The client within the class, from 0.
        pub client: u32,
        /// The page: the name of a state of the site's transition table.
        pub page: Arc<str>,
        /// When the workload wanted the page to be asked for.
        /// Unit: ns.
        pub intended_ns: i64,
        /// When the request was handed to the kernel.
        /// Null: it never was.
        /// Unit: ns.
        pub submitted_ns: Option<i64>,
        /// When the answer or the failure was seen.
        /// Null: it never was.
        /// Unit: ns.
        pub completed_ns: Option<i64>,
        /// Bytes of the answer's body.
        /// Unit: bytes.
        pub size_bytes: u64,
        /// The HTTP status; 0 if no answer began.
        pub http_status: u16,
        /// 0, or the `errno` of the failure.
        pub status: i32,
        /// Whether the request belongs to the warm-up, before the measured interval.
        pub warmup: bool,
    }
    where check
}

/// Refuses a row whose times or status cannot be.
fn check(row: &Page) -> Result<(), String> {
    answered(row.intended_ns, row.submitted_ns, row.completed_ns)?;
    status(row.status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_as_they_were() {
        let page = Page {
            request: 7,
            class: "shoppers".into(),
            client: 3,
            page: "HOME".into(),
            intended_ns: 5,
            submitted_ns: Some(6),
            completed_ns: None,
            size_bytes: 100,
            http_status: 503,
            status: 5,
            warmup: true,
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pages.parquet");
        crate::write_all(&path, 42, [&page]).unwrap();
        assert_eq!(crate::read_all::<Page>(&path).unwrap(), [page]);
    }
}
