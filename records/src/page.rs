//! `pages.parquet`: pages of a site as its browsers saw them.

use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, Int32Builder, Int64Builder, UInt16Builder, UInt32Builder, UInt64Builder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};

use crate::columns::{Columns, NameBuilder, name_type};
use crate::table::Record;

/// One attempt at a page: a page whose answer failed and that was asked for again has a row for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Number within the run, from 0 in order of intended time; the same as in `requests.parquet`.
    pub request: u64,
    /// The application class that asks.
    pub class: Arc<str>,
    /// The client within the class, from 0.
    pub client: u32,
    /// What is asked for: the name of a state of the site's table of transitions.
    pub page: Arc<str>,
    /// When it was to be asked for.
    pub intended_ns: i64,
    /// When it was handed to the kernel; `None` if it never was.
    pub submitted_ns: Option<i64>,
    /// When the answer, or its failure, was seen; `None` if it never was.
    pub completed_ns: Option<i64>,
    /// Bytes of the answer's body.
    pub size_bytes: u64,
    /// The HTTP status; 0 where no answer began.
    pub http_status: u16,
    /// 0, or the `errno` of the failure.
    pub status: i32,
    /// Asked for before the measured interval began.
    pub warmup: bool,
}

/// Column builders of `pages.parquet`, in schema order.
#[derive(Default)]
pub struct PageColumns {
    request: UInt64Builder,
    class: NameBuilder,
    client: UInt32Builder,
    page: NameBuilder,
    intended_ns: Int64Builder,
    submitted_ns: Int64Builder,
    completed_ns: Int64Builder,
    size_bytes: UInt64Builder,
    http_status: UInt16Builder,
    status: Int32Builder,
    warmup: BooleanBuilder,
}

impl Record for Page {
    type Builders = PageColumns;

    fn schema() -> Schema {
        let field = |name, kind| Field::new(name, kind, false);
        Schema::new(vec![
            field("request", DataType::UInt64),
            field("class", name_type()),
            field("client", DataType::UInt32),
            field("page", name_type()),
            field("intended_ns", DataType::Int64),
            Field::new("submitted_ns", DataType::Int64, true),
            Field::new("completed_ns", DataType::Int64, true),
            field("size_bytes", DataType::UInt64),
            field("http_status", DataType::UInt16),
            field("status", DataType::Int32),
            field("warmup", DataType::Boolean),
        ])
    }

    fn append(&self, to: &mut PageColumns) {
        to.request.append_value(self.request);
        to.class.append_value(&*self.class);
        to.client.append_value(self.client);
        to.page.append_value(&*self.page);
        to.intended_ns.append_value(self.intended_ns);
        to.submitted_ns.append_option(self.submitted_ns);
        to.completed_ns.append_option(self.completed_ns);
        to.size_bytes.append_value(self.size_bytes);
        to.http_status.append_value(self.http_status);
        to.status.append_value(self.status);
        to.warmup.append_value(self.warmup);
    }

    fn finish(columns: &mut PageColumns) -> Vec<ArrayRef> {
        vec![
            Arc::new(columns.request.finish()),
            Arc::new(columns.class.finish()),
            Arc::new(columns.client.finish()),
            Arc::new(columns.page.finish()),
            Arc::new(columns.intended_ns.finish()),
            Arc::new(columns.submitted_ns.finish()),
            Arc::new(columns.completed_ns.finish()),
            Arc::new(columns.size_bytes.finish()),
            Arc::new(columns.http_status.finish()),
            Arc::new(columns.status.finish()),
            Arc::new(columns.warmup.finish()),
        ]
    }

    fn from_batch(batch: &RecordBatch, rows: &mut Vec<Self>) -> Result<(), String> {
        let columns = Columns::new(batch);
        let request = columns.u64("request")?;
        let mut class = columns.names("class")?;
        let client = columns.u32("client")?;
        let mut page = columns.names("page")?;
        let intended_ns = columns.i64("intended_ns")?;
        let submitted_ns = columns.i64("submitted_ns")?;
        let completed_ns = columns.i64("completed_ns")?;
        let size_bytes = columns.u64("size_bytes")?;
        let http_status = columns.u16("http_status")?;
        let status = columns.i32("status")?;
        let warmup = columns.bools("warmup")?;
        for row in 0..batch.num_rows() {
            rows.push(Page {
                request: request.required(row)?,
                class: class.required(row)?,
                client: client.required(row)?,
                page: page.required(row)?,
                intended_ns: intended_ns.required(row)?,
                submitted_ns: submitted_ns.get(row),
                completed_ns: completed_ns.get(row),
                size_bytes: size_bytes.required(row)?,
                http_status: http_status.required(row)?,
                status: status.required(row)?,
                warmup: warmup.required(row)?,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_as_they_were() {
        let page = Page {
            request: 7,
            class: "shoppers".into(),
            client: 3,
            page: "HOME".into(),
            intended_ns: 5,
            submitted_ns: Some(6),
            completed_ns: None,
            size_bytes: 100,
            http_status: 503,
            status: 5,
            warmup: true,
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pages.parquet");
        crate::write_all(&path, 42, [&page]).unwrap();
        assert_eq!(crate::read_all::<Page>(&path).unwrap(), [page]);
    }
}
