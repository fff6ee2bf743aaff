//! Messages of PostgreSQL's protocol: how they are written, and what is in them.

use super::{DatabaseError, Row, Value};

/// One message of the frontend; its length is filled in at the end.
pub(super) struct Out {
    pub(super) bytes: Vec<u8>,
    length_at: usize,
}

impl Out {
    pub(super) fn new() -> Self {
        Out { bytes: Vec::new(), length_at: 0 }
    }

    pub(super) fn begin(mut self, kind: u8) -> Self {
        self.bytes.push(kind);
        self.length_at = self.bytes.len();
        self.bytes.extend([0; 4]);
        self
    }

    pub(super) fn text(mut self, text: &str) -> Self {
        self.bytes.extend(text.as_bytes());
        self.bytes.push(0);
        self
    }

    pub(super) fn raw(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend(bytes);
        self
    }

    pub(super) fn short(self, number: usize) -> Self {
        self.raw(&(number as i16).to_be_bytes())
    }

    pub(super) fn long(self, number: i32) -> Self {
        self.raw(&number.to_be_bytes())
    }

    pub(super) fn end(mut self) -> Self {
        let length = (self.bytes.len() - self.length_at) as u32;
        self.bytes[self.length_at..self.length_at + 4].copy_from_slice(&length.to_be_bytes());
        self
    }

    /// A message without content.
    pub(super) fn bare(self, kind: u8) -> Self {
        self.begin(kind).end()
    }
}

/// Reads parts of a message; what is not there is an error, never a panic.
pub(super) struct In<'a>(pub(super) &'a [u8]);

impl<'a> In<'a> {
    pub(super) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(head)
    }

    pub(super) fn short(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    pub(super) fn long(&mut self) -> Option<i32> {
        Some(i32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    pub(super) fn text(&mut self) -> Option<String> {
        let end = self.0.iter().position(|byte| *byte == 0)?;
        let text = self.take(end)?;
        self.take(1)?;
        Some(String::from_utf8_lossy(text).into_owned())
    }
}

/// `?` become `$1`, `$2` and so on; those within quotes stay.
pub(super) fn numbered(sql: &str) -> String {
    let mut text = String::with_capacity(sql.len() + 16);
    let (mut number, mut quoted) = (0, false);
    for letter in sql.chars() {
        if letter == '\'' {
            quoted = !quoted;
        }
        if letter == '?' && !quoted {
            number += 1;
            text.push_str(&format!("${number}"));
        } else {
            text.push(letter);
        }
    }
    text
}

/// A line of `COPY ... FROM STDIN` in text format.
pub(super) fn copy_line(row: &Row, to: &mut Vec<u8>) {
    for (place, value) in row.0.iter().enumerate() {
        if place > 0 {
            to.push(b'\t');
        }
        match value {
            Value::Null => to.extend(b"\\N"),
            Value::Int(number) => to.extend(number.to_string().as_bytes()),
            Value::Text(text) => {
                for byte in text.bytes() {
                    match byte {
                        b'\\' => to.extend(b"\\\\"),
                        b'\t' => to.extend(b"\\t"),
                        b'\n' => to.extend(b"\\n"),
                        b'\r' => to.extend(b"\\r"),
                        other => to.push(other),
                    }
                }
            }
        }
    }
    to.push(b'\n');
}

pub(super) fn column_types(body: &[u8]) -> Option<Vec<u32>> {
    let mut body = In(body);
    let count = body.short()?;
    let mut columns = Vec::with_capacity(usize::from(count));
    for _ in 0..count {
        body.text()?;
        // The table's OID, the column's number; then the type; then its size, modifier and format.
        body.take(6)?;
        columns.push(body.long()? as u32);
        body.take(8)?;
    }
    Some(columns)
}

pub(super) fn row(body: &[u8], columns: &[u32]) -> Option<Row> {
    let mut body = In(body);
    if usize::from(body.short()?) != columns.len() {
        return None;
    }
    let mut values = Vec::with_capacity(columns.len());
    for kind in columns {
        let length = body.long()?;
        if length < 0 {
            values.push(Value::Null);
            continue;
        }
        let text = std::str::from_utf8(body.take(length as usize)?).ok()?;
        values.push(match kind {
            // int8, int2, int4; numeric, which sums of int8 are.
            20 | 21 | 23 | 1700 => Value::Int(text.parse().ok()?),
            16 => Value::Int(i64::from(text == "t")),
            _ => Value::Text(text.to_owned()),
        });
    }
    Some(Row(values))
}

/// The count in a command's tag, such as `INSERT 0 5`.
pub(super) fn affected(tag: &[u8]) -> u64 {
    let tag = String::from_utf8_lossy(tag);
    tag.trim_end_matches('\0').rsplit(' ').next().and_then(|text| text.parse().ok()).unwrap_or(0)
}

pub(super) fn server_error(body: &[u8]) -> DatabaseError {
    let (mut code, mut message) = (String::new(), String::new());
    let mut body = In(body);
    while let Some([kind]) = body.take(1) {
        match (kind, body.text()) {
            (b'C', Some(text)) => code = text,
            (b'M', Some(text)) => message = text,
            (b'D', Some(text)) => message.push_str(&format!(" ({text})")),
            (_, Some(_)) => {}
            (_, None) => break,
        }
    }
    DatabaseError::Server { code, number: 0, message }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn marks_are_numbered_outside_of_quotes() {
        assert_eq!(
            numbered("SELECT '?' FROM t WHERE a = ? AND b = ?"),
            "SELECT '?' FROM t WHERE a = $1 AND b = $2"
        );
    }

    #[test]
    fn tags_hold_counts() {
        assert_eq!((affected(b"INSERT 0 5\0"), affected(b"UPDATE 3\0"), affected(b"BEGIN\0")), (5, 3, 0));
    }

    proptest! {
        #[test]
        fn no_message_is_too_strange(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = (column_types(&body), row(&body, &[20, 25]), server_error(&body), affected(&body));
        }
    }
}
