//! Rows as JSON, and lists of rows a page at a time.

use serde_json::Value;

use crate::Error;
use crate::database::{Connection, Row, Value as Cell};
use crate::http::Form;

/// Rows on a page of a list.
pub(crate) const PER_PAGE: i64 = 25;
const MOST_PAGES: i64 = 1_000_000;

/// The page of a list that a form requests, from 0.
pub(crate) fn number(form: &Form) -> Result<i64, Error> {
    form.int("number", 0, MOST_PAGES)
}

/// The parameters of `LIMIT ? OFFSET ?` for a page.
pub(crate) fn limits(number: i64) -> [Cell; 2] {
    [PER_PAGE.into(), (number * PER_PAGE).into()]
}

/// The rows of a query as objects with these names.
pub(crate) fn query(
    connection: &mut dyn Connection,
    sql: &str,
    parameters: &[Cell],
    names: &[&str],
) -> Result<Value, Error> {
    Ok(list(&connection.run(sql, parameters)?.rows, names))
}

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
