//! Rows as answers.

use serde_json::Value;

use crate::database::{Row, Value as Cell};

/// Rows as objects with these names.
pub(crate) fn list(rows: &[Row], names: &[&str]) -> Value {
    rows.iter().map(|row| object(row, names)).collect()
}

/// A row as an object with these names.
pub(crate) fn object(row: &Row, names: &[&str]) -> Value {
    let pairs = names.iter().zip(&row.0).map(|(name, value)| {
        let value = match value {
            Cell::Null => Value::Null,
            Cell::Int(number) => (*number).into(),
            Cell::Text(text) => text.as_str().into(),
        };
        ((*name).to_owned(), value)
    });
    Value::Object(pairs.collect())
}
