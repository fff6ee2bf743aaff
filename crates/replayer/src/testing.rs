//! A request for unit tests.

use weir_records::{Op, Request};

/// A read of 4 KiB at offset 0, intended at `intended_ns`.
pub(crate) fn request(number: u64, intended_ns: i64) -> Request {
    Request {
        request: number,
        class: "a".into(),
        client: 0,
        device: None,
        file: None,
        op: Op::Read,
        offset: 0,
        size_bytes: 4096,
        intended_ns,
        submitted_ns: None,
        completed_ns: None,
        deadline_ns: None,
        served_ns: None,
        status: 0,
        warmup: false,
    }
}
