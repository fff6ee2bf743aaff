//! Record files of a run: tables and manifest.
//!
//! Tables with fixed schemas:
//!
//! * [`request::Request`]: `requests.parquet`, requests as the application saw them;
//! * [`block::BlockRequest`]: `block.parquet`, requests as the block layer saw them;
//! * [`interaction::Interaction`]: `sessions.parquet`, interactions of clients with a site;
//! * [`page::Page`]: `pages.parquet`, pages of a site as its browsers saw them;
//! * [`series::SeriesRow`]: `series.parquet`, responses over time, as histograms that add up;
//! * [`of_host::OfHost`]: any of them with the column `host`, for runs of several hosts.
//!
//! [`manifest`] lists the files of a run's folder with their SHA-256, and finds damaged files.
//!
//! Times are nanoseconds on `CLOCK_MONOTONIC`, relative to the run's epoch, which is in the file's metadata under
//! [`EPOCH_KEY`]. Each page has a CRC-32 checksum, as Parquet defines it. A file is written under a temporary name and renamed
//! when complete: an existing file is complete.

pub mod block;
mod bounded_file;
mod bounded_pages;
pub mod cell;
mod checksummed_pages;
pub mod column;
pub mod error;
pub mod interaction;
pub mod manifest;
pub mod of_host;
mod op;
pub mod page;
mod reader;
mod record;
pub mod request;
mod sane;
pub mod sealed;
pub mod series;
pub mod spool;
mod table;

pub use block::{BlockOp, BlockRequest};
pub use error::Error;
pub use interaction::Interaction;
pub use manifest::{Damage, Manifest};
pub use of_host::OfHost;
pub use op::Op;
pub use page::Page;
pub use reader::{TableReader, read_all};
pub use record::Record;
pub use request::Request;
pub use series::{SeriesRow, SeriesWriter};
pub use spool::RequestSpool;
pub use table::{TableWriter, write_all};

/// Metadata key of the run's epoch, in ns of `CLOCK_MONOTONIC`.
pub const EPOCH_KEY: &str = "weir.epoch_monotonic_ns";
/// Metadata key of the description of each column: its unit, its meaning, and when it is null, as JSON.
pub const COLUMNS_KEY: &str = "weir.columns";

/// A table of a run's folder: the name of its file, what one row is, and its columns.
pub struct Table {
    /// Name of the file.
    pub file: &'static str,
    /// What one row is.
    pub row: &'static str,
    /// Its columns.
    pub columns: Vec<column::About>,
}

/// The tables of a run's folder.
pub fn tables() -> [Table; 5] {
    [
        Table {
            file: "requests.parquet",
            row: "one request as the application saw it",
            columns: Request::about(),
        },
        Table {
            file: "pages.parquet",
            row: "one attempt of a browser at a page of a site",
            columns: Page::about(),
        },
        Table {
            file: "block.parquet",
            row: "one request as the block layer saw it",
            columns: BlockRequest::about(),
        },
        Table {
            file: "sessions.parquet",
            row: "one interaction that a client of a site is to ask for",
            columns: Interaction::about(),
        },
        Table {
            file: "series.parquet",
            row: "the requests of a class in one interval of time whose responses are in one bucket",
            columns: SeriesRow::about(),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_says_what_it_means_its_unit_and_when_it_is_null() {
        for Table { file, columns, .. } in tables() {
            for column in columns {
                let at = format!("{file}: {}", column.name);
                assert!(column.meaning.ends_with('.') && column.meaning.len() > 10, "{at}");
                let unit = column.unit.as_deref();
                assert_eq!(column.name.ends_with("_ns"), unit == Some("ns"), "{at}");
                assert_eq!(
                    column.name.ends_with("_bytes") || column.name == "offset",
                    unit == Some("bytes"),
                    "{at}"
                );
                assert!(!matches!(column.kind, "string" | "boolean") || unit.is_none(), "{at}");
            }
        }
        assert_nulls::<Request>();
        assert_nulls::<Page>();
        assert_nulls::<BlockRequest>();
        assert_nulls::<Interaction>();
        assert_nulls::<SeriesRow>();
    }

    fn assert_nulls<R: Record>() {
        for column in R::columns(&mut R::Columns::default()) {
            let optional = column.kind().unwrap().is_optional();
            assert_eq!(column.about().null.is_some(), optional, "{}", column.name());
        }
    }
}
