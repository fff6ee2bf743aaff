//! Consistency checks of a row: the order of its times, and its status. A row that fails one was damaged.
//!
//! Not checked, since each may be valid: a deadline before its request, an empty document, and a completion from a second source
//! (`bpf+ftrace`), which has that source's time.

/// The largest `errno` of the kernel (`MAX_ERRNO`, include/linux/err.h).
const MAX_ERRNO: i32 = 4095;

/// Refuses a request that was sent before its intended time, or completed before it was sent.
pub(crate) fn answered(
    intended_ns: i64,
    submitted_ns: Option<i64>,
    completed_ns: Option<i64>,
) -> Result<(), String> {
    let intended = ("intended_ns", Some(intended_ns));
    ordered(intended, ("submitted_ns", submitted_ns))?;
    ordered(("submitted_ns", submitted_ns), ("completed_ns", completed_ns))?;
    ordered(intended, ("completed_ns", completed_ns))
}

/// Refuses a time that lies before an earlier one. Each has the name of its column.
pub(crate) fn ordered(first: (&str, Option<i64>), then: (&str, Option<i64>)) -> Result<(), String> {
    match (first.1, then.1) {
        (Some(before), Some(after)) if after < before => {
            Err(format!("column {}: is {after}, before {} ({before})", then.0, first.0))
        }
        _ => Ok(()),
    }
}

/// Refuses a status that is no `errno` of the kernel.
pub(crate) fn status(status: i32) -> Result<(), String> {
    if (0..=MAX_ERRNO).contains(&status) {
        return Ok(());
    }
    Err(format!("column status: is {status}, not 0 or an errno (at most {MAX_ERRNO})"))
}
