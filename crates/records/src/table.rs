//! Writer of a table as Parquet, in bounded memory.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::writer::get_column_writer;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type};

use crate::checksummed_pages::ChecksummedPages;
use crate::{COLUMNS_KEY, EPOCH_KEY, Error, Record};

/// Rows held in memory before they are encoded: a row group.
const ROWS_PER_GROUP: usize = 65_536;

/// Writes rows to a file that gets its name only when complete.
pub struct TableWriter<R: Record> {
    path: PathBuf,
    partial: PathBuf,
    columns: R::Columns,
    buffered: usize,
    rows: u64,
    writer: Option<SerializedFileWriter<BufWriter<File>>>,
}

impl<R: Record> TableWriter<R> {
    /// Begins a table; row times are relative to `epoch_monotonic_ns`.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create(path: &Path, epoch_monotonic_ns: i64) -> Result<Self, Error> {
        let mut partial = path.as_os_str().to_owned();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        let file = File::create(&partial).map_err(|source| Error::Io { path: partial.clone(), source })?;
        let mut columns = R::Columns::default();
        let writer = begin(BufWriter::new(file), R::columns(&mut columns).as_slice(), epoch_monotonic_ns)
            .map_err(|source| Error::Parquet { path: path.to_owned(), source })?;
        Ok(TableWriter {
            path: path.to_owned(),
            partial,
            columns,
            buffered: 0,
            rows: 0,
            writer: Some(writer),
        })
    }

    /// Adds one row.
    ///
    /// # Errors
    /// The disk is full, or the file was removed.
    pub fn write(&mut self, row: &R) -> Result<(), Error> {
        row.push(&mut self.columns);
        self.buffered += 1;
        self.rows += 1;
        if self.buffered == ROWS_PER_GROUP { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.buffered = 0;
        let Some(writer) = &mut self.writer else { return Ok(()) };
        let mut group = || {
            let properties = Arc::clone(writer.properties());
            let described = writer.schema_descr().columns().to_vec();
            let mut group = writer.next_row_group()?;
            for (column, described) in R::columns(&mut self.columns).into_iter().zip(described) {
                let mut chunk = Vec::new();
                let pages = Box::new(ChecksummedPages { chunk: &mut chunk });
                let mut to = get_column_writer(described, Arc::clone(&properties), pages);
                column.write(&mut to)?;
                let written = to.close()?;
                group.append_column(&Bytes::from(chunk), written)?;
            }
            group.close().map(drop)
        };
        group().map_err(|source| Error::Parquet { path: self.path.clone(), source })
    }

    /// Completes the file, makes it durable and gives it its name. Returns the number of rows.
    ///
    /// # Errors
    /// The disk is full, or the file was removed.
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

fn begin(
    file: BufWriter<File>,
    columns: &[&mut dyn crate::column::AnyColumn],
    epoch_monotonic_ns: i64,
) -> Result<SerializedFileWriter<BufWriter<File>>, ParquetError> {
    let fields = columns.iter().map(|column| column.kind().map(Arc::new)).collect::<Result<_, _>>()?;
    let schema = Type::group_type_builder("record").with_fields(fields).build()?;
    let epoch = KeyValue::new(EPOCH_KEY.to_owned(), epoch_monotonic_ns.to_string());
    let about: Vec<_> = columns.iter().map(|column| column.about()).collect();
    let about = serde_json::to_string(&about).map_err(|error| ParquetError::General(error.to_string()))?;
    let about = KeyValue::new(COLUMNS_KEY.to_owned(), about);
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .set_key_value_metadata(Some(vec![epoch, about]));
    // Times and request numbers grow and seldom repeat: delta encoding is smaller than a dictionary.
    let grows = |name: &&str| name.ends_with("_ns") || *name == "request";
    for name in columns.iter().map(|column| column.name()).filter(grows) {
        let path = ColumnPath::from(name);
        properties = properties
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
    }
    SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties.build()))
}

impl<R: Record> Drop for TableWriter<R> {
    fn drop(&mut self) {
        // Abandoned before `close`: the partial file is useless.
        if self.writer.is_some() {
            let _ = std::fs::remove_file(&self.partial);
        }
    }
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
