//! `requests.parquet`: requests as the application saw them.

use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Int32Builder, Int64Builder, UInt32Builder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};

use crate::columns::{Columns, NameBuilder, name_type};
use crate::table::Record;

/// What a request does to the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Op {
    /// Data leaves the device.
    Read,
    /// Data enters the device.
    Write,
}

impl Op {
    /// The name used in the `op` column.
    pub fn name(self) -> &'static str {
        match self {
            Op::Read => "read",
            Op::Write => "write",
        }
    }

    /// The inverse of [`Op::name`].
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "read" => Some(Op::Read),
            "write" => Some(Op::Write),
            _ => None,
        }
    }
}

/// One request as the application saw it.
///
/// A stream that has not been served yet has the same shape with the times of service missing, so a
/// recorded run is itself a stream that can be sent again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
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

/// Column builders of `requests.parquet`, in schema order.
#[derive(Default)]
pub struct RequestColumns {
    request: UInt64Builder,
    class: NameBuilder,
    client: UInt32Builder,
    device: NameBuilder,
    file: UInt32Builder,
    op: NameBuilder,
    offset: UInt64Builder,
    size_bytes: UInt64Builder,
    intended_ns: Int64Builder,
    submitted_ns: Int64Builder,
    completed_ns: Int64Builder,
    deadline_ns: Int64Builder,
    served_ns: Int64Builder,
    status: Int32Builder,
    warmup: BooleanBuilder,
}

impl Record for Request {
    type Builders = RequestColumns;

    fn schema() -> Schema {
        let field = Field::new;
        Schema::new(vec![
            field("request", DataType::UInt64, false),
            field("class", name_type(), false),
            field("client", DataType::UInt32, false),
            field("device", name_type(), true),
            field("file", DataType::UInt32, true),
            field("op", name_type(), false),
            field("offset", DataType::UInt64, false),
            field("size_bytes", DataType::UInt64, false),
            field("intended_ns", DataType::Int64, false),
            field("submitted_ns", DataType::Int64, true),
            field("completed_ns", DataType::Int64, true),
            field("deadline_ns", DataType::Int64, true),
            field("served_ns", DataType::Int64, true),
            field("status", DataType::Int32, false),
            field("warmup", DataType::Boolean, false),
        ])
    }

    fn append(&self, to: &mut RequestColumns) {
        to.request.append_value(self.request);
        to.class.append_value(&*self.class);
        to.client.append_value(self.client);
        to.device.append_option(self.device.as_deref());
        to.file.append_option(self.file);
        to.op.append_value(self.op.name());
        to.offset.append_value(self.offset);
        to.size_bytes.append_value(self.size_bytes);
        to.intended_ns.append_value(self.intended_ns);
        to.submitted_ns.append_option(self.submitted_ns);
        to.completed_ns.append_option(self.completed_ns);
        to.deadline_ns.append_option(self.deadline_ns);
        to.served_ns.append_option(self.served_ns);
        to.status.append_value(self.status);
        to.warmup.append_value(self.warmup);
    }

    fn finish(columns: &mut RequestColumns) -> Vec<ArrayRef> {
        vec![
            Arc::new(columns.request.finish()),
            Arc::new(columns.class.finish()),
            Arc::new(columns.client.finish()),
            Arc::new(columns.device.finish()),
            Arc::new(columns.file.finish()),
            Arc::new(columns.op.finish()),
            Arc::new(columns.offset.finish()),
            Arc::new(columns.size_bytes.finish()),
            Arc::new(columns.intended_ns.finish()),
            Arc::new(columns.submitted_ns.finish()),
            Arc::new(columns.completed_ns.finish()),
            Arc::new(columns.deadline_ns.finish()),
            Arc::new(columns.served_ns.finish()),
            Arc::new(columns.status.finish()),
            Arc::new(columns.warmup.finish()),
        ]
    }

    fn from_batch(batch: &RecordBatch, rows: &mut Vec<Self>) -> Result<(), String> {
        let columns = Columns::new(batch);
        let request = columns.u64("request")?;
        let mut class = columns.names("class")?;
        let client = columns.u32("client")?;
        let mut device = columns.names("device")?;
        let file = columns.u32("file")?;
        let mut op = columns.names("op")?;
        let offset = columns.u64("offset")?;
        let size_bytes = columns.u64("size_bytes")?;
        let intended_ns = columns.i64("intended_ns")?;
        let submitted_ns = columns.i64("submitted_ns")?;
        let completed_ns = columns.i64("completed_ns")?;
        let deadline_ns = columns.i64("deadline_ns")?;
        let served_ns = columns.i64("served_ns")?;
        let status = columns.i32("status")?;
        let warmup = columns.bools("warmup")?;
        for row in 0..batch.num_rows() {
            let op_name = op.required(row)?;
            rows.push(Request {
                request: request.required(row)?,
                class: class.required(row)?,
                client: client.required(row)?,
                device: device.get(row),
                file: file.get(row),
                op: Op::from_name(&op_name)
                    .ok_or_else(|| format!("row {row}: op is {op_name:?}, not read or write"))?,
                offset: offset.required(row)?,
                size_bytes: size_bytes.required(row)?,
                intended_ns: intended_ns.required(row)?,
                submitted_ns: submitted_ns.get(row),
                completed_ns: completed_ns.get(row),
                deadline_ns: deadline_ns.get(row),
                served_ns: served_ns.get(row),
                status: status.required(row)?,
                warmup: warmup.required(row)?,
            });
        }
        Ok(())
    }
}
