//! SCSI operation codes, as traces of virtual disks have them (SBC-4, SPC-5).

use crate::request::TraceOp;

/// Operation of a command.
pub(super) fn op(code: u16) -> TraceOp {
    match code {
        0x08 | 0x28 | 0xa8 | 0x88 => TraceOp::Read,
        // Writing, writing with a verification after it, and writing the same block many times.
        0x0a | 0x2a | 0xaa | 0x8a | 0x2e | 0xae | 0x8e | 0x41 | 0x93 => TraceOp::Write,
        0x35 | 0x91 => TraceOp::Flush,
        0x42 => TraceOp::Discard,
        _ => TraceOp::Other,
    }
}
