//! What holds of every row that weir wrote, whatever it measured. A row that breaks it was damaged.
//!
//! Left out is what is no law: a deadline may lie before its request, an empty document has no bytes, and a completion that a
//! second source gave (`bpf+ftrace`) has that source's time.

use crate::{BlockOp, BlockRequest, Page, Request};

/// The largest `errno` of the kernel (`MAX_ERRNO`, include/linux/err.h).
const MAX_ERRNO: i32 = 4095;

pub(crate) fn request(row: &Request) -> Result<(), String> {
    answered(row.intended_ns, row.submitted_ns, row.completed_ns)?;
    ordered(("intended_ns", Some(row.intended_ns)), ("served_ns", row.served_ns))?;
    ordered(("served_ns", row.served_ns), ("completed_ns", row.completed_ns))?;
    status(row.status)
}

pub(crate) fn page(row: &Page) -> Result<(), String> {
    answered(row.intended_ns, row.submitted_ns, row.completed_ns)?;
    status(row.status)
}

pub(crate) fn block(row: &BlockRequest) -> Result<(), String> {
    ordered(("queued_ns", row.queued_ns), ("issued_ns", row.issued_ns))?;
    if &*row.source == "bpf" {
        ordered(("issued_ns", row.issued_ns), ("completed_ns", row.completed_ns))?;
    }
    if row.op == BlockOp::Read && row.size_bytes == 0 {
        return Err("column size_bytes: is 0 of a read".to_owned());
    }
    status(row.status)
}

/// No request is sent before it is due, or completed before it is sent.
fn answered(intended_ns: i64, submitted_ns: Option<i64>, completed_ns: Option<i64>) -> Result<(), String> {
    let intended = ("intended_ns", Some(intended_ns));
    ordered(intended, ("submitted_ns", submitted_ns))?;
    ordered(("submitted_ns", submitted_ns), ("completed_ns", completed_ns))?;
    ordered(intended, ("completed_ns", completed_ns))
}

fn ordered(first: (&str, Option<i64>), then: (&str, Option<i64>)) -> Result<(), String> {
    match (first.1, then.1) {
        (Some(before), Some(after)) if after < before => {
            Err(format!("column {}: is {after}, before {} ({before})", then.0, first.0))
        }
        _ => Ok(()),
    }
}

fn status(status: i32) -> Result<(), String> {
    if (0..=MAX_ERRNO).contains(&status) {
        return Ok(());
    }
    Err(format!("column status: is {status}, not 0 or an errno (at most {MAX_ERRNO})"))
}
