//! Values in PostgreSQL's messages; the messages themselves are those of `postgres-protocol`.

use std::io;

use bytes::BytesMut;
use fallible_iterator::FallibleIterator as _;
use postgres_protocol::Oid;
use postgres_protocol::message::backend::{DataRowBody, ErrorResponseBody, Message, RowDescriptionBody};

use super::{DatabaseError, Row, Value};

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

/// The type of each column of a result.
pub(super) fn column_types(body: &RowDescriptionBody) -> io::Result<Vec<Oid>> {
    body.fields().map(|field| Ok(field.type_oid())).collect()
}

/// A row of text values; `None` if it does not match the columns.
pub(super) fn row(body: &DataRowBody, columns: &[Oid]) -> Option<Row> {
    let mut ranges = body.ranges();
    let mut values = Vec::with_capacity(columns.len());
    for kind in columns {
        let Some(range) = ranges.next().ok()?? else {
            values.push(Value::Null);
            continue;
        };
        let text = std::str::from_utf8(body.buffer().get(range)?).ok()?;
        values.push(match kind {
            // int8, int2, int4; numeric, which sums of int8 are.
            20 | 21 | 23 | 1700 => Value::Int(text.parse().ok()?),
            16 => Value::Int(i64::from(text == "t")),
            _ => Value::Text(text.to_owned()),
        });
    }
    ranges.next().ok()?.is_none().then_some(Row(values))
}

/// The count in a command's tag, such as `INSERT 0 5`.
pub(super) fn affected(tag: &str) -> u64 {
    tag.rsplit(' ').next().and_then(|text| text.parse().ok()).unwrap_or(0)
}

pub(super) fn server_error(body: &ErrorResponseBody) -> DatabaseError {
    let (mut code, mut message) = (String::new(), String::new());
    let mut fields = body.fields();
    while let Ok(Some(field)) = fields.next() {
        let text = String::from_utf8_lossy(field.value_bytes());
        match field.type_() {
            b'C' => code = text.into_owned(),
            b'M' => message = text.into_owned(),
            b'D' => message.push_str(&format!(" ({text})")),
            _ => {}
        }
    }
    DatabaseError::Server { code, number: 0, message }
}

/// Decodes bytes as messages up to the first that is malformed.
pub(super) fn fuzzing(data: &[u8]) {
    let framed = |tag: u8| {
        let length = (data.len() as u32 + 4).to_be_bytes();
        [&[tag], length.as_slice(), data].concat()
    };
    let streams = [data.to_vec(), framed(b'T'), framed(b'D'), framed(b'E'), framed(b'C')];
    let mut columns = vec![20, 16, 25];
    for stream in streams {
        let mut stream = BytesMut::from(stream.as_slice());
        while let Ok(Some(message)) = Message::parse(&mut stream) {
            match message {
                Message::RowDescription(body) => columns = column_types(&body).unwrap_or(columns),
                Message::DataRow(body) => drop((row(&body, &columns), row(&body, &[20, 25]))),
                Message::ErrorResponse(body) => drop(server_error(&body)),
                Message::CommandComplete(body) => drop(body.tag().map(affected)),
                _ => {}
            }
        }
    }
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
        assert_eq!((affected("INSERT 0 5"), affected("UPDATE 3"), affected("BEGIN")), (5, 3, 0));
    }

    proptest! {
        #[test]
        fn no_message_is_too_strange(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            fuzzing(&body);
        }
    }
}
