//! Row types and their columns, declared together.

use crate::column::{About, AnyColumn};

/// A row type with a fixed schema; made by [`record!`](crate::record!).
pub trait Record: Sized {
    /// One column for each field.
    type Columns: Default;

    /// The columns, in the order of the file.
    fn columns(of: &mut Self::Columns) -> Vec<&mut dyn AnyColumn>;

    /// The description of each column, in the order of the file.
    fn about() -> Vec<About> {
        Self::columns(&mut Self::Columns::default()).iter().map(|column| column.about()).collect()
    }

    /// Adds this row to the columns.
    fn push(&self, to: &mut Self::Columns);

    /// Takes the next row out of columns that were read.
    ///
    /// # Errors
    /// A value is null and must not be, or is out of range.
    fn pull(from: &mut Self::Columns) -> Result<Self, String>;

    /// Checks consistency that holds for every row of weir, such as no completion before its request.
    ///
    /// # Errors
    /// The row is damaged: the text has the column and its value.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}

/// Declares a row type: the fields are the columns of its table, in this order, under these names. `where PATH` behind them
/// names the function that is [`Record::check`].
///
/// The doc comment of a field is the description of its column, in files and in `weir schema columns`. The line `Null: ...`
/// says when there is no value (of an `Option`), the line `Unit: ...` gives the unit of a number.
///
/// ```
/// weir_records::record! {
///     /// One answer.
///     #[derive(Debug, PartialEq)]
///     pub struct Answer, AnswerColumns {
///         /// When it came.
///         /// Unit: ns.
///         pub completed_ns: i64,
///         /// Number of the client that asked.
///         /// Null: the client is not known.
///         pub client: Option<u32>,
///     }
/// }
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("answers.parquet");
/// let answers = [Answer { completed_ns: 5, client: None }];
/// weir_records::write_all(&path, 0, &answers)?;
/// assert_eq!(weir_records::read_all::<Answer>(&path)?, answers);
/// # Ok::<(), weir_records::Error>(())
/// ```
#[macro_export]
macro_rules! record {
    (
        $(#[$about:meta])*
        pub struct $row:ident, $columns:ident {
            $($(#[doc = $what:literal])+ pub $field:ident: $kind:ty),+ $(,)?
        }
        $(where $check:path)?
    ) => {
        $(#[$about])*
        pub struct $row {
            $($(#[doc = $what])+ pub $field: $kind),+
        }

        #[doc = concat!("The columns of [`", stringify!($row), "`].")]
        pub struct $columns {
            $($field: $crate::column::Column<$kind>),+
        }

        impl Default for $columns {
            fn default() -> Self {
                $columns { $($field: $crate::column::Column::new(stringify!($field), &[$($what),+])),+ }
            }
        }

        impl $crate::Record for $row {
            type Columns = $columns;

            fn columns(of: &mut $columns) -> Vec<&mut dyn $crate::column::AnyColumn> {
                vec![$(&mut of.$field),+]
            }

            fn push(&self, to: &mut $columns) {
                $(to.$field.push(&self.$field);)+
            }

            fn pull(from: &mut $columns) -> Result<Self, String> {
                Ok($row { $($field: from.$field.pull()?),+ })
            }

            $(fn check(&self) -> Result<(), String> {
                $check(self)
            })?
        }
    };
}
