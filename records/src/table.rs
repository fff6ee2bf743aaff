//! Writing and reading a table of records as Parquet, in bounded memory.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

use crate::{EPOCH_KEY, Error};

/// Rows held in memory before they are encoded.
const ROWS_PER_BATCH: usize = 16_384;

/// A row type with a fixed schema.
pub trait Record: Sized {
    /// One builder per column.
    type Builders: Default;

    /// The columns, in order.
    fn schema() -> Schema;

    /// Adds this row to the builders.
    fn append(&self, to: &mut Self::Builders);

    /// Takes the columns out of the builders, in schema order.
    fn finish(columns: &mut Self::Builders) -> Vec<ArrayRef>;

    /// Adds the rows of a batch to `rows`.
    ///
    /// # Errors
    /// A column is missing, has another type, or is null where it may not be.
    fn from_batch(batch: &RecordBatch, rows: &mut Vec<Self>) -> Result<(), String>;
}

/// Writes rows to a file that appears under its name only once it is complete.
pub struct TableWriter<R: Record> {
    path: PathBuf,
    partial: PathBuf,
    schema: SchemaRef,
    columns: R::Builders,
    buffered: usize,
    rows: u64,
    writer: Option<ArrowWriter<BufWriter<File>>>,
}

impl<R: Record> TableWriter<R> {
    /// Begins a table; `epoch_monotonic_ns` is the instant that the rows' times are relative to.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create(path: &Path, epoch_monotonic_ns: i64) -> Result<Self, Error> {
        let mut partial = path.as_os_str().to_owned();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        let file = File::create(&partial).map_err(|source| Error::Io { path: partial.clone(), source })?;
        let schema = Arc::new(R::schema());
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(
                ZstdLevel::try_new(1).map_err(|source| Error::Parquet { path: path.to_owned(), source })?,
            ))
            .set_key_value_metadata(Some(vec![KeyValue::new(
                EPOCH_KEY.to_owned(),
                epoch_monotonic_ns.to_string(),
            )]))
            .build();
        let writer = ArrowWriter::try_new(BufWriter::new(file), Arc::clone(&schema), Some(properties))
            .map_err(|source| Error::Parquet { path: path.to_owned(), source })?;
        Ok(TableWriter {
            path: path.to_owned(),
            partial,
            schema,
            columns: R::Builders::default(),
            buffered: 0,
            rows: 0,
            writer: Some(writer),
        })
    }

    /// Adds one row.
    ///
    /// # Errors
    /// The disk is full, or the file is gone.
    pub fn write(&mut self, row: &R) -> Result<(), Error> {
        row.append(&mut self.columns);
        self.buffered += 1;
        self.rows += 1;
        if self.buffered == ROWS_PER_BATCH { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Error> {
        let parquet = |source: ParquetError| Error::Parquet { path: self.path.clone(), source };
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), R::finish(&mut self.columns))
            .map_err(|error| parquet(error.into()))?;
        self.buffered = 0;
        match &mut self.writer {
            Some(writer) => writer.write(&batch).map_err(parquet),
            None => Ok(()),
        }
    }

    /// Completes the file, makes it durable and gives it its name. Returns the number of rows.
    ///
    /// # Errors
    /// The disk is full, or the file is gone.
    pub fn close(mut self) -> Result<u64, Error> {
        if self.buffered > 0 {
            self.flush()?;
        }
        if let Some(writer) = self.writer.take() {
            let io = |source: std::io::Error| Error::Io { path: self.partial.clone(), source };
            let file = writer
                .into_inner()
                .map_err(|source| Error::Parquet { path: self.path.clone(), source })?
                .into_inner()
                .map_err(|error| io(error.into_error()))?;
            file.sync_all().map_err(io)?;
            std::fs::rename(&self.partial, &self.path).map_err(io)?;
        }
        Ok(self.rows)
    }
}

impl<R: Record> Drop for TableWriter<R> {
    fn drop(&mut self) {
        // Abandoned before `close`: the partial file is of no use to anyone.
        if self.writer.is_some() {
            let _ = std::fs::remove_file(&self.partial);
        }
    }
}

/// Reads a table batch by batch.
pub struct TableReader<R: Record> {
    path: PathBuf,
    epoch_monotonic_ns: i64,
    total_rows: u64,
    batches: ParquetRecordBatchReader,
    rows: std::vec::IntoIter<R>,
}

impl<R: Record> TableReader<R> {
    /// Opens a table and checks its columns.
    ///
    /// # Errors
    /// The file is absent, is not Parquet, or is another table.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(|source| Error::Io { path: path.to_owned(), source })?;
        let parquet = |source| Error::Parquet { path: path.to_owned(), source };
        let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(parquet)?;
        let wanted = R::schema();
        if let Some(missing) =
            wanted.fields().iter().find(|f| builder.schema().field_with_name(f.name()).is_err())
        {
            return Err(Error::Schema {
                path: path.to_owned(),
                reason: format!("column {} is missing; is this another table?", missing.name()),
            });
        }
        let metadata = builder.metadata().file_metadata();
        let epoch_monotonic_ns = metadata
            .key_value_metadata()
            .and_then(|pairs| pairs.iter().find(|pair| pair.key == EPOCH_KEY))
            .and_then(|pair| pair.value.as_deref()?.parse().ok())
            .unwrap_or(0);
        let total_rows = u64::try_from(metadata.num_rows()).unwrap_or(0);
        let batches = builder.with_batch_size(ROWS_PER_BATCH).build().map_err(parquet)?;
        Ok(TableReader {
            path: path.to_owned(),
            epoch_monotonic_ns,
            total_rows,
            batches,
            rows: Vec::new().into_iter(),
        })
    }

    /// The run's start in ns of `CLOCK_MONOTONIC`; 0 if the file does not say.
    pub fn epoch_monotonic_ns(&self) -> i64 {
        self.epoch_monotonic_ns
    }

    /// Rows in the whole file.
    pub fn total_rows(&self) -> u64 {
        self.total_rows
    }
}

impl<R: Record> Iterator for TableReader<R> {
    type Item = Result<R, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(row) = self.rows.next() {
                return Some(Ok(row));
            }
            let batch = match self.batches.next()? {
                Ok(batch) => batch,
                Err(error) => {
                    return Some(Err(Error::Parquet { path: self.path.clone(), source: error.into() }));
                }
            };
            let mut rows = Vec::with_capacity(batch.num_rows());
            if let Err(reason) = R::from_batch(&batch, &mut rows) {
                return Some(Err(Error::Schema { path: self.path.clone(), reason }));
            }
            self.rows = rows.into_iter();
        }
    }
}

/// Reads a whole table.
///
/// # Errors
/// As [`TableReader::open`]; also where a row cannot be read.
pub fn read_all<R: Record>(path: &Path) -> Result<Vec<R>, Error> {
    TableReader::open(path)?.collect()
}

/// Writes a whole table.
///
/// # Errors
/// As [`TableWriter::create`], [`TableWriter::write`] and [`TableWriter::close`].
pub fn write_all<'a, R: Record + 'a>(
    path: &Path,
    epoch_monotonic_ns: i64,
    rows: impl IntoIterator<Item = &'a R>,
) -> Result<u64, Error> {
    let mut writer = TableWriter::create(path, epoch_monotonic_ns)?;
    for row in rows {
        writer.write(row)?;
    }
    writer.close()
}
