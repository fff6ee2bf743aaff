//! `files.parquet`: requests as the kernel's entry points for files saw them.

use std::sync::Arc;

use arrow_array::builder::{Int64Builder, StringDictionaryBuilder, UInt32Builder, UInt64Builder};
use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Int32Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, PrimitiveArray, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use weir_records::Record;

/// Where a request was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSource {
    /// At the entry and exit of a system call.
    Syscall,
    /// At submission to and completion by io_uring.
    IoUring,
    /// When the kernel sent it to a FUSE server and had its answer.
    Fuse,
}

impl FileSource {
    const ALL: [FileSource; 3] = [FileSource::Syscall, FileSource::IoUring, FileSource::Fuse];

    /// The name in the `source` column.
    pub fn name(self) -> &'static str {
        match self {
            FileSource::Syscall => "syscall",
            FileSource::IoUring => "io_uring",
            FileSource::Fuse => "fuse",
        }
    }
}

/// What was asked of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileOp {
    /// `read(2)` and its kin.
    Read,
    /// `write(2)` and its kin.
    Write,
    /// `fsync(2)`, `fdatasync(2)`, `sync_file_range(2)`.
    Fsync,
}

impl FileOp {
    const ALL: [FileOp; 3] = [FileOp::Read, FileOp::Write, FileOp::Fsync];

    /// The name in the `op` column.
    pub fn name(self) -> &'static str {
        match self {
            FileOp::Read => "read",
            FileOp::Write => "write",
            FileOp::Fsync => "fsync",
        }
    }
}

/// One request on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileRequest {
    /// Where it was seen.
    pub source: FileSource,
    /// Process.
    pub process: u32,
    /// Thread.
    pub pid: u32,
    /// Inode of the file; for FUSE the server's node id.
    pub inode: u64,
    /// Magic number of the file system (`statfs(2)`).
    pub fs_magic: u64,
    /// What was asked.
    pub op: FileOp,
    /// Bytes asked for; where the source does not tell (io_uring), the bytes that were transferred.
    pub size_bytes: u64,
    /// When it entered.
    pub start_ns: i64,
    /// When it returned.
    pub end_ns: i64,
    /// Bytes transferred, or a negative `errno`.
    pub result: i64,
}

/// Column builders of `files.parquet`, in schema order.
#[derive(Default)]
pub struct FileColumns {
    source: StringDictionaryBuilder<Int32Type>,
    process: UInt32Builder,
    pid: UInt32Builder,
    inode: UInt64Builder,
    fs_magic: UInt64Builder,
    op: StringDictionaryBuilder<Int32Type>,
    size_bytes: UInt64Builder,
    start_ns: Int64Builder,
    end_ns: Int64Builder,
    result: Int64Builder,
}

impl Record for FileRequest {
    type Builders = FileColumns;

    fn schema() -> Schema {
        let name = || DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        let field = |name: &str, kind| Field::new(name, kind, false);
        Schema::new(vec![
            field("source", name()),
            field("process", DataType::UInt32),
            field("pid", DataType::UInt32),
            field("inode", DataType::UInt64),
            field("fs_magic", DataType::UInt64),
            field("op", name()),
            field("size_bytes", DataType::UInt64),
            field("start_ns", DataType::Int64),
            field("end_ns", DataType::Int64),
            field("result", DataType::Int64),
        ])
    }

    fn append(&self, to: &mut FileColumns) {
        to.source.append_value(self.source.name());
        to.process.append_value(self.process);
        to.pid.append_value(self.pid);
        to.inode.append_value(self.inode);
        to.fs_magic.append_value(self.fs_magic);
        to.op.append_value(self.op.name());
        to.size_bytes.append_value(self.size_bytes);
        to.start_ns.append_value(self.start_ns);
        to.end_ns.append_value(self.end_ns);
        to.result.append_value(self.result);
    }

    fn finish(columns: &mut FileColumns) -> Vec<ArrayRef> {
        vec![
            Arc::new(columns.source.finish()),
            Arc::new(columns.process.finish()),
            Arc::new(columns.pid.finish()),
            Arc::new(columns.inode.finish()),
            Arc::new(columns.fs_magic.finish()),
            Arc::new(columns.op.finish()),
            Arc::new(columns.size_bytes.finish()),
            Arc::new(columns.start_ns.finish()),
            Arc::new(columns.end_ns.finish()),
            Arc::new(columns.result.finish()),
        ]
    }

    fn from_batch(batch: &RecordBatch, rows: &mut Vec<Self>) -> Result<(), String> {
        let source = names(batch, "source")?;
        let process = numbers::<UInt32Type>(batch, "process")?;
        let pid = numbers::<UInt32Type>(batch, "pid")?;
        let inode = numbers::<UInt64Type>(batch, "inode")?;
        let fs_magic = numbers::<UInt64Type>(batch, "fs_magic")?;
        let op = names(batch, "op")?;
        let size_bytes = numbers::<UInt64Type>(batch, "size_bytes")?;
        let start_ns = numbers::<Int64Type>(batch, "start_ns")?;
        let end_ns = numbers::<Int64Type>(batch, "end_ns")?;
        let result = numbers::<Int64Type>(batch, "result")?;
        for row in 0..batch.num_rows() {
            let (source, op) = (source(row)?, op(row)?);
            rows.push(FileRequest {
                source: FileSource::ALL
                    .into_iter()
                    .find(|known| known.name() == source)
                    .ok_or_else(|| format!("row {row}: unknown source {source:?}"))?,
                process: process.value(row),
                pid: pid.value(row),
                inode: inode.value(row),
                fs_magic: fs_magic.value(row),
                op: FileOp::ALL
                    .into_iter()
                    .find(|known| known.name() == op)
                    .ok_or_else(|| format!("row {row}: unknown op {op:?}"))?,
                size_bytes: size_bytes.value(row),
                start_ns: start_ns.value(row),
                end_ns: end_ns.value(row),
                result: result.value(row),
            });
        }
        Ok(())
    }
}

fn column<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a ArrayRef, String> {
    let column = batch.column_by_name(name).ok_or_else(|| format!("column {name} is missing"))?;
    if column.null_count() > 0 {
        return Err(format!("column {name} has nulls"));
    }
    Ok(column)
}

fn numbers<'a, T: ArrowPrimitiveType>(
    batch: &'a RecordBatch,
    name: &str,
) -> Result<&'a PrimitiveArray<T>, String> {
    let column = column(batch, name)?;
    column.as_primitive_opt().ok_or_else(|| format!("column {name} is {}", column.data_type()))
}

fn names<'a>(
    batch: &'a RecordBatch,
    name: &'static str,
) -> Result<impl Fn(usize) -> Result<&'a str, String>, String> {
    let wrong = || format!("column {name} is not a dictionary of strings");
    let dictionary = column(batch, name)?.as_dictionary_opt::<Int32Type>().ok_or_else(wrong)?;
    let values: &StringArray = dictionary.values().as_string_opt().ok_or_else(wrong)?;
    Ok(move |row: usize| {
        let key = dictionary.key(row).filter(|key| *key < values.len());
        key.map(|key| values.value(key)).ok_or_else(|| format!("row {row}: column {name} has no value"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_survive_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("files.parquet");
        let row = FileRequest {
            source: FileSource::IoUring,
            process: 1,
            pid: 2,
            inode: 3,
            fs_magic: 0x0102_1994,
            op: FileOp::Write,
            size_bytes: 4096,
            start_ns: -5,
            end_ns: 6,
            result: -5,
        };
        let rows = [row, FileRequest { source: FileSource::Fuse, op: FileOp::Fsync, ..row }];
        weir_records::write_all(&path, 7, &rows).unwrap();
        assert_eq!(weir_records::read_all::<FileRequest>(&path).unwrap(), rows);
    }
}
