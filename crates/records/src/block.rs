//! `block.parquet`: requests as the block layer saw them.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::sane::{ordered, status};

/// The operation of a block request (`enum req_op` of the kernel, reduced to what a study tells apart).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlockOp {
    /// `REQ_OP_READ`
    Read,
    /// `REQ_OP_WRITE`
    Write,
    /// `REQ_OP_FLUSH`: no data, the volatile cache is made durable.
    Flush,
    /// `REQ_OP_DISCARD` and `REQ_OP_SECURE_ERASE`
    Discard,
    /// `REQ_OP_WRITE_ZEROES`
    WriteZeroes,
    /// Zone management, driver-private commands and whatever a later kernel adds.
    Other,
}

impl BlockOp {
    /// The operation in the low byte of the kernel's `cmd_flags`.
    pub fn from_cmd_flags(cmd_flags: u32) -> Self {
        match cmd_flags & 0xff {
            0 => BlockOp::Read,
            1 => BlockOp::Write,
            2 => BlockOp::Flush,
            3 | 5 => BlockOp::Discard,
            9 => BlockOp::WriteZeroes,
            _ => BlockOp::Other,
        }
    }

    /// The name used in the `op` column.
    pub fn name(self) -> &'static str {
        match self {
            BlockOp::Read => "read",
            BlockOp::Write => "write",
            BlockOp::Flush => "flush",
            BlockOp::Discard => "discard",
            BlockOp::WriteZeroes => "write_zeroes",
            BlockOp::Other => "other",
        }
    }

    /// The inverse of [`BlockOp::name`].
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "read" => BlockOp::Read,
            "write" => BlockOp::Write,
            "flush" => BlockOp::Flush,
            "discard" => BlockOp::Discard,
            "write_zeroes" => BlockOp::WriteZeroes,
            "other" => BlockOp::Other,
            _ => return None,
        })
    }
}

crate::named!(BlockOp);

crate::record! {
    /// One request as the block layer saw it.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct BlockRequest, BlockColumns {
        /// Kernel name of the disk, such as `loop3`.
        pub device: Arc<str>,
        /// First sector, counted from the start of the disk.
        /// Unit: sectors of 512 bytes.
        pub sector: u64,
        /// Bytes transferred.
        /// Unit: bytes.
        pub size_bytes: u32,
        /// The operation: `read`, `write`, `flush`, `discard`, `write_zeroes` or `other`.
        pub op: BlockOp,
        /// Modifiers of the operation (`cmd_flags` of the kernel) joined by `|`, such as `sync|fua`; empty if there are none.
        pub flags: Arc<str>,
        /// I/O priority as the kernel encodes it (`ioprio`): class in the top 3 bits, level in the rest.
        /// Null: the source does not record it.
        pub priority: Option<u16>,
        /// Id of the thread that queued the request.
        pub pid: u32,
        /// Name of the thread that queued the request; empty if the source does not record it.
        pub comm: Arc<str>,
        /// Id of the control group that the request is charged to.
        /// Null: the source does not record it.
        pub cgroup: Option<u64>,
        /// When the first bio of the request entered the block layer.
        /// Null: the source did not see it.
        /// Unit: ns.
        pub queued_ns: Option<i64>,
        /// When the request entered the I/O scheduler.
        /// Null: the request bypassed the scheduler.
        /// Unit: ns.
        pub inserted_ns: Option<i64>,
        /// When the request was handed to the driver.
        /// Null: the source did not see it.
        /// Unit: ns.
        pub issued_ns: Option<i64>,
        /// When the driver completed the request.
        /// Null: the source did not see it; counted as a loss.
        /// Unit: ns.
        pub completed_ns: Option<i64>,
        /// 0, or the `errno` of the failure.
        pub status: i32,
        /// What recorded the request: `bpf`, `ftrace`, `blktrace`, or `bpf+ftrace` if `ftrace` gave a completion that BPF missed.
        pub source: Arc<str>,
    }
    where check
}

/// Refuses a row whose times or status cannot be.
fn check(row: &BlockRequest) -> Result<(), String> {
    ordered(("queued_ns", row.queued_ns), ("issued_ns", row.issued_ns))?;
    if &*row.source == "bpf" {
        ordered(("issued_ns", row.issued_ns), ("completed_ns", row.completed_ns))?;
    }
    if row.op == BlockOp::Read && row.size_bytes == 0 {
        return Err("column size_bytes: is 0 of a read".to_owned());
    }
    status(row.status)
}

/// Names of the modifier bits in the kernel's `cmd_flags` (`include/linux/blk_types.h`), joined by `|`.
///
/// The bits begin at 8 (`REQ_OP_BITS`) and are numbered by `enum req_flag_bits`.
pub fn flag_names(cmd_flags: u32) -> String {
    const NAMES: [(u32, &str); 9] = [
        (11, "sync"),
        (12, "meta"),
        (13, "prio"),
        (14, "nomerge"),
        (15, "idle"),
        (17, "fua"),
        (18, "preflush"),
        (19, "readahead"),
        (20, "background"),
    ];
    let mut text = String::new();
    for (bit, name) in NAMES {
        if cmd_flags & (1 << bit) != 0 {
            let separator = if text.is_empty() { "" } else { "|" };
            let _ = write!(text, "{separator}{name}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_named_in_bit_order() {
        assert_eq!(flag_names(0), "");
        assert_eq!(flag_names(1 | 1 << 11 | 1 << 17), "sync|fua");
    }

    #[test]
    fn operations_survive_their_names() {
        for op in [0, 1, 2, 3, 9, 34].map(BlockOp::from_cmd_flags) {
            assert_eq!(BlockOp::from_name(op.name()), Some(op));
        }
    }
}
