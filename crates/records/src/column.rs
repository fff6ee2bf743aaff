//! Column of a table: values of some rows, to be written or read.

use parquet::basic::{LogicalType, Repetition, Type as PhysicalType};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::column::writer::{ColumnWriter, get_typed_column_writer_mut};
use parquet::data_type::DataType;
use parquet::errors::{ParquetError, Result};
use parquet::schema::types::Type;
use serde::Serialize;

use crate::cell::Cell;

/// A field of a row: a [`Cell`], or an `Option` of one.
pub trait Field: Sized {
    /// The value where it is present.
    type Cell: Cell;
    /// Whether the value may be absent.
    const OPTIONAL: bool;

    /// The value, if it is present.
    fn cell(&self) -> Option<&Self::Cell>;

    /// The inverse of [`Field::cell`]; `None` if the value may not be absent but is.
    fn from_cell(cell: Option<Self::Cell>) -> Option<Self>;
}

impl<C: Cell> Field for C {
    type Cell = C;
    const OPTIONAL: bool = false;

    fn cell(&self) -> Option<&C> {
        Some(self)
    }

    fn from_cell(cell: Option<C>) -> Option<C> {
        cell
    }
}

impl<C: Cell> Field for Option<C> {
    type Cell = C;
    const OPTIONAL: bool = true;

    fn cell(&self) -> Option<&C> {
        self.as_ref()
    }

    fn from_cell(cell: Option<C>) -> Option<Self> {
        Some(cell)
    }
}

/// Description of a column, from the doc comment of its field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct About {
    /// Its name.
    pub name: &'static str,
    /// Type of its values.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Unit of a number; `None` of names, counts and numbers that identify something.
    pub unit: Option<String>,
    /// What a value means.
    pub meaning: String,
    /// When there is no value; `None` if there always is one.
    pub null: Option<String>,
}

impl About {
    fn new(name: &'static str, kind: &'static str, comment: &[&str]) -> Self {
        let line = |start| comment.iter().find_map(|line| line.trim().strip_prefix(start)).map(sentence);
        let meaning: Vec<&str> =
            comment.iter().map(|line| line.trim()).filter(|line| !is_labelled(line)).collect();
        About { name, kind, unit: line("Unit: "), meaning: meaning.join(" "), null: line("Null: ") }
    }
}

fn is_labelled(line: &str) -> bool {
    line.starts_with("Unit: ") || line.starts_with("Null: ")
}

fn sentence(text: &str) -> String {
    text.trim_end_matches('.').to_owned()
}

fn type_name(physical: PhysicalType, logical: Option<&LogicalType>) -> &'static str {
    match (physical, logical) {
        (_, Some(LogicalType::String)) => "string",
        (_, Some(LogicalType::Integer(integer))) if !integer.is_signed => match integer.bit_width {
            16 => "uint16",
            32 => "uint32",
            _ => "uint64",
        },
        (PhysicalType::BOOLEAN, _) => "boolean",
        (PhysicalType::INT32, _) => "int32",
        (PhysicalType::INT64, _) => "int64",
        _ => "bytes",
    }
}

type Physical<F> = <<F as Field>::Cell as Cell>::Physical;

/// A column of values of one field.
pub struct Column<F: Field> {
    name: &'static str,
    /// Lines of its field's doc comment.
    comment: &'static [&'static str],
    /// Present values.
    values: Vec<<Physical<F> as DataType>::T>,
    /// 1 for each row with a value, 0 for one without; empty if all must have one.
    levels: Vec<i16>,
    memory: <F::Cell as Cell>::Memory,
    reader: Option<ColumnReaderImpl<Physical<F>>>,
    /// Whether the value may be absent in the file that is read.
    nullable: bool,
    next_row: usize,
    next_value: usize,
}

impl<F: Field> Column<F> {
    /// An empty column; `comment` are the lines of its description.
    pub fn new(name: &'static str, comment: &'static [&'static str]) -> Self {
        Column {
            name,
            comment,
            values: Vec::new(),
            levels: Vec::new(),
            memory: Default::default(),
            reader: None,
            nullable: false,
            next_row: 0,
            next_value: 0,
        }
    }

    /// Adds the value of a row.
    #[inline]
    pub fn push(&mut self, field: &F) {
        let cell = field.cell();
        if F::OPTIONAL {
            self.levels.push(i16::from(cell.is_some()));
        }
        if let Some(cell) = cell {
            let stored = cell.put(&mut self.memory);
            self.values.push(stored);
        }
    }

    /// Value of the next row.
    ///
    /// # Errors
    /// The value is absent and must not be, or is out of range.
    pub fn pull(&mut self) -> std::result::Result<F, String> {
        let row = self.next_row;
        self.next_row += 1;
        let cell = if self.nullable && self.levels.get(row) != Some(&1) {
            None
        } else {
            let stored =
                self.values.get(self.next_value).ok_or_else(|| format!("column {} ends early", self.name))?;
            self.next_value += 1;
            let cell = F::Cell::get(stored, &mut self.memory)
                .ok_or_else(|| format!("column {}: unknown value {stored:?}", self.name))?;
            Some(cell)
        };
        F::from_cell(cell).ok_or_else(|| format!("column {} is null", self.name))
    }
}

/// Operations of a table on each column.
pub trait AnyColumn {
    /// The name in the file.
    fn name(&self) -> &'static str;

    /// Its description.
    fn about(&self) -> About;

    /// Its type in the file's schema.
    fn kind(&self) -> Result<Type>;

    /// Writes and clears the added values.
    fn write(&mut self, to: &mut ColumnWriter<'_>) -> Result<()>;

    /// Begins to read a row group; false if the column has another type in the file.
    fn open(&mut self, from: ColumnReader, nullable: bool) -> bool;

    /// Reads the next rows, in place of earlier ones.
    fn read(&mut self, rows: usize) -> Result<()>;
}

impl<F: Field> AnyColumn for Column<F> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> About {
        let kind = type_name(Physical::<F>::get_physical_type(), F::Cell::meaning().as_ref());
        About::new(self.name, kind, self.comment)
    }

    fn kind(&self) -> Result<Type> {
        Type::primitive_type_builder(self.name, Physical::<F>::get_physical_type())
            .with_repetition(if F::OPTIONAL { Repetition::OPTIONAL } else { Repetition::REQUIRED })
            .with_logical_type(F::Cell::meaning())
            .build()
    }

    fn write(&mut self, to: &mut ColumnWriter<'_>) -> Result<()> {
        let levels = F::OPTIONAL.then_some(self.levels.as_slice());
        get_typed_column_writer_mut::<Physical<F>>(to).write_batch(&self.values, levels, None)?;
        self.values.clear();
        self.levels.clear();
        // Names that no longer occur are dropped.
        self.memory = Default::default();
        Ok(())
    }

    fn open(&mut self, from: ColumnReader, nullable: bool) -> bool {
        self.nullable = nullable;
        self.memory = Default::default();
        self.reader = Physical::<F>::get_column_reader(from);
        self.reader.is_some()
    }

    fn read(&mut self, rows: usize) -> Result<()> {
        self.values.clear();
        self.levels.clear();
        (self.next_row, self.next_value) = (0, 0);
        let reader =
            self.reader.as_mut().ok_or_else(|| ParquetError::General("no row group is open".to_owned()))?;
        let (read, _, _) = reader.read_records(rows, Some(&mut self.levels), None, &mut self.values)?;
        if read == rows {
            Ok(())
        } else {
            Err(ParquetError::General(format!(
                "column {}: wrong number of rows (found {read}, expected {rows})",
                self.name
            )))
        }
    }
}
