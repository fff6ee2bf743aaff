//! Values and rows.

use super::DatabaseError;

/// One value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Value {
    /// SQL's NULL.
    Null,
    /// A whole number: an id, a quantity, cents, seconds since 1970.
    Int(i64),
    /// Text.
    Text(String),
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Value::Int(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::Text(text)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Null, Into::into)
    }
}

/// One row.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Row(pub Vec<Value>);

impl Row {
    fn wrong(&self, column: usize, expected: &'static str) -> DatabaseError {
        let found = match self.0.get(column) {
            None => "nothing".to_owned(),
            Some(value) => format!("{value:?}"),
        };
        DatabaseError::Column { column, found, expected }
    }

    /// The whole number in a column, counted from 0.
    ///
    /// # Errors
    /// There is something else, or NULL.
    pub fn int(&self, column: usize) -> Result<i64, DatabaseError> {
        self.maybe_int(column)?.ok_or_else(|| self.wrong(column, "a whole number"))
    }

    /// The whole number in a column, or nothing for NULL.
    ///
    /// # Errors
    /// There is something else.
    pub fn maybe_int(&self, column: usize) -> Result<Option<i64>, DatabaseError> {
        match self.0.get(column) {
            Some(Value::Int(number)) => Ok(Some(*number)),
            Some(Value::Null) => Ok(None),
            _ => Err(self.wrong(column, "a whole number")),
        }
    }

    /// The text in a column, counted from 0.
    ///
    /// # Errors
    /// There is something else, or NULL.
    pub fn text(&self, column: usize) -> Result<&str, DatabaseError> {
        match self.0.get(column) {
            Some(Value::Text(text)) => Ok(text),
            _ => Err(self.wrong(column, "text")),
        }
    }
}

impl super::Answer {
    /// The first row, if there is one.
    pub fn first(&self) -> Option<&Row> {
        self.rows.first()
    }

    /// The whole number in the first column of the first row.
    ///
    /// # Errors
    /// There is no row, or something else in it.
    pub fn int(&self) -> Result<i64, DatabaseError> {
        self.first().unwrap_or(&Row::default()).int(0)
    }

    /// The whole numbers of the first column.
    ///
    /// # Errors
    /// There is something else in it.
    pub fn ints(&self) -> Result<Vec<i64>, DatabaseError> {
        self.rows.iter().map(|row| row.int(0)).collect()
    }
}
