//! Rows of several hosts in one table, with the column `host`.

use std::sync::Arc;

use crate::Record;
use crate::column::{AnyColumn, Column};

/// A row and its host. The file has one more column at the end, `host`, which a reader of rows may ignore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfHost<R> {
    /// The row.
    pub row: R,
    /// Name of the host.
    pub host: Arc<str>,
}

/// The columns of [`OfHost`].
pub struct OfHostColumns<C> {
    row: C,
    host: Column<Arc<str>>,
}

impl<C: Default> Default for OfHostColumns<C> {
    fn default() -> Self {
        OfHostColumns { row: C::default(), host: Column::new("host", &["Name of the host."]) }
    }
}

impl<R: Record> Record for OfHost<R> {
    type Columns = OfHostColumns<R::Columns>;

    fn columns(of: &mut Self::Columns) -> Vec<&mut dyn AnyColumn> {
        let mut columns = R::columns(&mut of.row);
        columns.push(&mut of.host);
        columns
    }

    fn push(&self, to: &mut Self::Columns) {
        self.row.push(&mut to.row);
        to.host.push(&self.host);
    }

    fn pull(from: &mut Self::Columns) -> Result<Self, String> {
        Ok(OfHost { row: R::pull(&mut from.row)?, host: from.host.pull()? })
    }

    fn check(&self) -> Result<(), String> {
        self.row.check()
    }
}
