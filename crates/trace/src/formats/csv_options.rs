//! Options of the trace format `csv`: the columns of a table and their units.

use std::str::FromStr;

/// Columns of a table.
#[derive(Debug, Clone)]
pub struct CsvOptions {
    /// Between cells.
    pub delimiter: Delimiter,
    /// Whether the first line names the columns. Default: true if an option names a column.
    pub header: Option<bool>,
    /// Arrival; required.
    pub time: Option<Column>,
    /// What times count.
    pub time_unit: TimeUnit,
    /// Response time; an empty cell is none.
    pub response: Option<Column>,
    /// Operation; all requests read if absent.
    pub op: Option<Column>,
    /// Value of the operation of a read; any other value is a write. Without it, the usual words are recognised.
    pub reads: Option<String>,
    /// Offset.
    pub offset: Option<Column>,
    /// Bytes that an offset counts.
    pub offset_unit_bytes: u64,
    /// Size.
    pub size: Option<Column>,
    /// Bytes that a size counts.
    pub size_unit_bytes: u64,
    /// Device.
    pub device: Option<Column>,
    /// Object, a number.
    pub object: Option<Column>,
}

impl Default for CsvOptions {
    fn default() -> Self {
        CsvOptions {
            delimiter: Delimiter::Byte(b','),
            header: None,
            time: None,
            time_unit: TimeUnit::Ns(1_000_000_000),
            response: None,
            op: None,
            reads: None,
            offset: None,
            offset_unit_bytes: 1,
            size: None,
            size_unit_bytes: 1,
            device: None,
            object: None,
        }
    }
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Column {
    /// Its number, from 1.
    Number(usize),
    /// Its name in the first line.
    Name(String),
}

impl FromStr for Column {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(0) => Err("column is 0, expected a number from 1".to_owned()),
            Ok(number) => Ok(Column::Number(number)),
            Err(_) => Ok(Column::Name(text.to_owned())),
        }
    }
}

/// Separator of cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delimiter {
    /// One byte.
    Byte(u8),
    /// Any white space.
    Space,
}

impl FromStr for Delimiter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.as_bytes()) {
            ("comma", _) => Ok(Delimiter::Byte(b',')),
            ("tab", _) => Ok(Delimiter::Byte(b'\t')),
            ("semicolon", _) => Ok(Delimiter::Byte(b';')),
            ("space", _) => Ok(Delimiter::Space),
            (_, [byte]) => Ok(Delimiter::Byte(*byte)),
            _ => {
                Err(format!("delimiter is {text:?}, expected comma, tab, space, semicolon or one character"))
            }
        }
    }
}

/// Unit of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeUnit {
    /// Number of ns, a power of ten.
    Ns(u64),
    /// 100 ns since 1601; becomes ns since 1970.
    Filetime,
}

impl FromStr for TimeUnit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "s" => TimeUnit::Ns(1_000_000_000),
            "ms" => TimeUnit::Ns(1_000_000),
            "us" => TimeUnit::Ns(1000),
            "100ns" => TimeUnit::Ns(100),
            "ns" => TimeUnit::Ns(1),
            "filetime" => TimeUnit::Filetime,
            _ => return Err(format!("time_unit is {text:?}, expected s, ms, us, ns, 100ns or filetime")),
        })
    }
}
