//! `block.parquet`: requests as the block layer saw them.

use std::fmt::Write as _;
use std::sync::Arc;

use arrow_array::builder::{Int32Builder, Int64Builder, UInt16Builder, UInt32Builder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};

use crate::columns::{Columns, NameBuilder, name_type};
use crate::table::Record;

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

/// One request as the block layer saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockRequest {
    /// Kernel name of the disk, such as `loop3`.
    pub device: Arc<str>,
    /// First sector, in units of 512 bytes from the start of the disk.
    pub sector: u64,
    /// Bytes transferred.
    pub size_bytes: u32,
    /// The operation.
    pub op: BlockOp,
    /// Modifiers joined by `|`, such as `sync|fua`; empty if there are none. See [`flag_names`].
    pub flags: Arc<str>,
    /// Raw `ioprio`: class in the top 3 bits, level in the rest; `None` if the source has none.
    pub priority: Option<u16>,
    /// Thread that queued it.
    pub pid: u32,
    /// That thread's name; empty if the source has none.
    pub comm: Arc<str>,
    /// Id of the cgroup it is charged to; `None` if the source has none.
    pub cgroup: Option<u64>,
    /// When its first bio entered the block layer.
    pub queued_ns: Option<i64>,
    /// When it entered the I/O scheduler; `None` where it bypassed it.
    pub inserted_ns: Option<i64>,
    /// When it was handed to the driver; `None` if the source did not see it.
    pub issued_ns: Option<i64>,
    /// When the driver completed it; `None` if that was never seen: a counted loss.
    pub completed_ns: Option<i64>,
    /// 0, or the `errno` of the failure.
    pub status: i32,
    /// What recorded it: `bpf`, `ftrace`, `blktrace`, or `bpf+ftrace` where the second gave a completion that the first missed.
    pub source: Arc<str>,
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

/// Column builders of `block.parquet`, in schema order.
#[derive(Default)]
pub struct BlockColumns {
    device: NameBuilder,
    sector: UInt64Builder,
    size_bytes: UInt32Builder,
    op: NameBuilder,
    flags: NameBuilder,
    priority: UInt16Builder,
    pid: UInt32Builder,
    comm: NameBuilder,
    cgroup: UInt64Builder,
    queued_ns: Int64Builder,
    inserted_ns: Int64Builder,
    issued_ns: Int64Builder,
    completed_ns: Int64Builder,
    status: Int32Builder,
    source: NameBuilder,
}

impl Record for BlockRequest {
    type Builders = BlockColumns;

    fn schema() -> Schema {
        let field = Field::new;
        Schema::new(vec![
            field("device", name_type(), false),
            field("sector", DataType::UInt64, false),
            field("size_bytes", DataType::UInt32, false),
            field("op", name_type(), false),
            field("flags", name_type(), false),
            field("priority", DataType::UInt16, true),
            field("pid", DataType::UInt32, false),
            field("comm", name_type(), false),
            field("cgroup", DataType::UInt64, true),
            field("queued_ns", DataType::Int64, true),
            field("inserted_ns", DataType::Int64, true),
            field("issued_ns", DataType::Int64, true),
            field("completed_ns", DataType::Int64, true),
            field("status", DataType::Int32, false),
            field("source", name_type(), false),
        ])
    }

    fn append(&self, to: &mut BlockColumns) {
        to.device.append_value(&*self.device);
        to.sector.append_value(self.sector);
        to.size_bytes.append_value(self.size_bytes);
        to.op.append_value(self.op.name());
        to.flags.append_value(&*self.flags);
        to.priority.append_option(self.priority);
        to.pid.append_value(self.pid);
        to.comm.append_value(&*self.comm);
        to.cgroup.append_option(self.cgroup);
        to.queued_ns.append_option(self.queued_ns);
        to.inserted_ns.append_option(self.inserted_ns);
        to.issued_ns.append_option(self.issued_ns);
        to.completed_ns.append_option(self.completed_ns);
        to.status.append_value(self.status);
        to.source.append_value(&*self.source);
    }

    fn finish(columns: &mut BlockColumns) -> Vec<ArrayRef> {
        vec![
            Arc::new(columns.device.finish()),
            Arc::new(columns.sector.finish()),
            Arc::new(columns.size_bytes.finish()),
            Arc::new(columns.op.finish()),
            Arc::new(columns.flags.finish()),
            Arc::new(columns.priority.finish()),
            Arc::new(columns.pid.finish()),
            Arc::new(columns.comm.finish()),
            Arc::new(columns.cgroup.finish()),
            Arc::new(columns.queued_ns.finish()),
            Arc::new(columns.inserted_ns.finish()),
            Arc::new(columns.issued_ns.finish()),
            Arc::new(columns.completed_ns.finish()),
            Arc::new(columns.status.finish()),
            Arc::new(columns.source.finish()),
        ]
    }

    fn from_batch(batch: &RecordBatch, rows: &mut Vec<Self>) -> Result<(), String> {
        let columns = Columns::new(batch);
        let mut device = columns.names("device")?;
        let sector = columns.u64("sector")?;
        let size_bytes = columns.u32("size_bytes")?;
        let mut op = columns.names("op")?;
        let mut flags = columns.names("flags")?;
        let priority = columns.u16("priority")?;
        let pid = columns.u32("pid")?;
        let mut comm = columns.names("comm")?;
        let cgroup = columns.u64("cgroup")?;
        let queued_ns = columns.i64("queued_ns")?;
        let inserted_ns = columns.i64("inserted_ns")?;
        let issued_ns = columns.i64("issued_ns")?;
        let completed_ns = columns.i64("completed_ns")?;
        let status = columns.i32("status")?;
        let mut source = columns.names("source")?;
        for row in 0..batch.num_rows() {
            let op_name = op.required(row)?;
            rows.push(BlockRequest {
                device: device.required(row)?,
                sector: sector.required(row)?,
                size_bytes: size_bytes.required(row)?,
                op: BlockOp::from_name(&op_name)
                    .ok_or_else(|| format!("row {row}: unknown op {op_name:?}"))?,
                flags: flags.required(row)?,
                priority: priority.get(row),
                pid: pid.required(row)?,
                comm: comm.required(row)?,
                cgroup: cgroup.get(row),
                queued_ns: queued_ns.get(row),
                inserted_ns: inserted_ns.get(row),
                issued_ns: issued_ns.get(row),
                completed_ns: completed_ns.get(row),
                status: status.required(row)?,
                source: source.required(row)?,
            });
        }
        Ok(())
    }
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
