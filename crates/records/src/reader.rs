//! Reader of a table, in bounded memory.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use parquet::column::reader::get_column_reader;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};

use crate::bounded_file::BoundedFile;
use crate::bounded_pages::BoundedPages;
use crate::{EPOCH_KEY, Error, Record};

/// Rows decoded at a time.
const ROWS_PER_BATCH: usize = 16_384;

/// Reads a table row by row.
pub struct TableReader<R: Record> {
    path: PathBuf,
    file: SerializedFileReader<BoundedFile>,
    /// Index of each column in the file, and whether it may be null there.
    places: Vec<(usize, bool)>,
    epoch_monotonic_ns: i64,
    total_rows: u64,
    columns: R::Columns,
    next_group: usize,
    left_in_group: usize,
    left_in_batch: usize,
    rows_read: u64,
    failed: bool,
}

impl<R: Record> TableReader<R> {
    /// Opens a table and checks its columns. Page checksums are checked while reading, if the file has them.
    ///
    /// # Errors
    /// The file is absent, is not Parquet, or is another table.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(|source| Error::Io { path: path.to_owned(), source })?;
        let file = or_damaged(path, || {
            SerializedFileReader::new(BoundedFile(file))
                .map_err(|source| Error::Parquet { path: path.to_owned(), source })
        })?;
        let metadata = file.metadata().file_metadata();
        let mut columns = R::Columns::default();
        let places = R::columns(&mut columns)
            .iter()
            .map(|column| {
                let found = metadata
                    .schema_descr()
                    .columns()
                    .iter()
                    .position(|found| found.path().string() == column.name());
                found.map(|at| (at, metadata.schema_descr().column(at).max_def_level() > 0)).ok_or_else(
                    || Error::Schema {
                        path: path.to_owned(),
                        reason: format!("column {} is missing. The file may be another table", column.name()),
                    },
                )
            })
            .collect::<Result<_, _>>()?;
        let epoch_monotonic_ns = metadata
            .key_value_metadata()
            .and_then(|pairs| pairs.iter().find(|pair| pair.key == EPOCH_KEY))
            .and_then(|pair| pair.value.as_deref()?.parse().ok())
            .unwrap_or(0);
        let total_rows = u64::try_from(metadata.num_rows()).unwrap_or(0);
        Ok(TableReader {
            path: path.to_owned(),
            file,
            places,
            epoch_monotonic_ns,
            total_rows,
            columns,
            next_group: 0,
            left_in_group: 0,
            left_in_batch: 0,
            rows_read: 0,
            failed: false,
        })
    }

    /// The run's epoch in ns of `CLOCK_MONOTONIC`; 0 if the file has none.
    pub fn epoch_monotonic_ns(&self) -> i64 {
        self.epoch_monotonic_ns
    }

    /// Rows in the whole file.
    pub fn total_rows(&self) -> u64 {
        self.total_rows
    }

    /// Decodes the next rows; false at the end of the file.
    fn more(&mut self) -> Result<bool, Error> {
        let path = self.path.clone();
        or_damaged(&path, || self.decode())
    }

    fn decode(&mut self) -> Result<bool, Error> {
        let parquet = |path: &Path| {
            let path = path.to_owned();
            move |source: ParquetError| Error::Parquet { path, source }
        };
        while self.left_in_group == 0 {
            if self.next_group == self.file.num_row_groups() {
                return Ok(false);
            }
            let group = self.file.get_row_group(self.next_group).map_err(parquet(&self.path))?;
            for (column, (at, nullable)) in R::columns(&mut self.columns).into_iter().zip(&self.places) {
                let descriptor = group.metadata().schema_descr().column(*at);
                let pages = group.get_column_page_reader(*at).map_err(parquet(&self.path))?;
                let pages = BoundedPages::new(pages, descriptor.physical_type());
                let reader = get_column_reader(descriptor, Box::new(pages));
                if !column.open(reader, *nullable) {
                    let reason =
                        format!("column {} has another type. The file may be another table", column.name());
                    return Err(Error::Schema { path: self.path.clone(), reason });
                }
            }
            self.left_in_group = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
            self.next_group += 1;
        }
        let rows = self.left_in_group.min(ROWS_PER_BATCH);
        for column in R::columns(&mut self.columns) {
            column.read(rows).map_err(parquet(&self.path))?;
        }
        self.left_in_group -= rows;
        self.left_in_batch = rows;
        Ok(true)
    }

    fn row(&mut self) -> Result<Option<R>, Error> {
        if self.left_in_batch == 0 && !self.more()? {
            return Ok(None);
        }
        self.left_in_batch -= 1;
        let row = self.rows_read;
        self.rows_read += 1;
        let pulled = R::pull(&mut self.columns).and_then(|pulled| pulled.check().map(|()| pulled));
        pulled.map(Some).map_err(|reason| Error::Schema {
            path: self.path.clone(),
            reason: format!("row {row}: {reason}"),
        })
    }
}

impl<R: Record> Iterator for TableReader<R> {
    type Item = Result<R, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let row = self.row();
        // Rows after damage cannot be trusted.
        self.failed = row.is_err();
        row.transpose()
    }
}

/// The library panics at some kinds of damage. All its state is in the reader, which is not used again.
fn or_damaged<T>(path: &Path, read: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| {
        let source = ParquetError::General("the file is damaged".to_owned());
        Err(Error::Parquet { path: path.to_owned(), source })
    })
}

/// Reads a whole table.
///
/// # Errors
/// As [`TableReader::open`], or a row cannot be read.
pub fn read_all<R: Record>(path: &Path) -> Result<Vec<R>, Error> {
    TableReader::open(path)?.collect()
}
