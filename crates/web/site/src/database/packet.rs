//! MariaDB's packets and the values in them (MariaDB Knowledge Base, "Client/Server Protocol").

use sha1::{Digest, Sha1};
use sha2::Sha256;

use super::{DatabaseError, Row, Value};

/// Type of a column of whole numbers of 8 bytes.
pub(super) const LONGLONG: u8 = 8;
/// The kind of a parameter of text.
pub(super) const VAR_STRING: u8 = 0xfd;
const NULL_KIND: u8 = 6;

/// Reads parts of a packet; a missing part is an error, never a panic.
pub(super) struct In<'a>(pub(super) &'a [u8]);

impl<'a> In<'a> {
    pub(super) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(head)
    }

    /// A whole number of up to 8 bytes, the lowest first.
    pub(super) fn int(&mut self, bytes: usize) -> Option<u64> {
        Some(self.take(bytes)?.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// A length-encoded integer.
    pub(super) fn length(&mut self) -> Option<u64> {
        match self.int(1)? {
            0xfc => self.int(2),
            0xfd => self.int(3),
            0xfe => self.int(8),
            0xfb | 0xff => None,
            short => Some(short),
        }
    }

    /// A length-encoded string.
    pub(super) fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.length()?).ok()?;
        self.take(length)
    }

    /// Text up to a NUL, or to the end.
    pub(super) fn text(&mut self) -> String {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(self.0.len());
        let text = String::from_utf8_lossy(&self.0[..end]).into_owned();
        self.0 = self.0.get(end + 1..).unwrap_or_default();
        text
    }
}

/// Writes bytes with their number before them.
pub(super) fn put_bytes(bytes: &[u8], to: &mut Vec<u8>) {
    let length = bytes.len() as u64;
    match length {
        0..=0xfa => to.push(length as u8),
        0xfb..=0xffff => {
            to.push(0xfc);
            to.extend(&length.to_le_bytes()[..2]);
        }
        0x1_0000..=0xff_ffff => {
            to.push(0xfd);
            to.extend(&length.to_le_bytes()[..3]);
        }
        _ => {
            to.push(0xfe);
            to.extend(length.to_le_bytes());
        }
    }
    to.extend(bytes);
}

/// Greeting of the server.
#[derive(Debug)]
pub(super) struct Greeting {
    pub(super) scramble: Vec<u8>,
    pub(super) plugin: String,
    /// Contains `MariaDB` unless the server is MySQL.
    pub(super) version: String,
}

/// Reads the greeting, protocol version 10.
pub(super) fn greeting(packet: &[u8]) -> Option<Greeting> {
    let mut body = In(packet);
    if body.int(1)? != 10 {
        return None;
    }
    let version = body.text();
    body.take(4)?;
    let mut scramble = body.take(8)?.to_vec();
    // Filler, capabilities, character set, status, capabilities.
    body.take(1 + 2 + 1 + 2 + 2)?;
    let length = body.int(1)? as usize;
    body.take(10)?;
    let rest = body.take(length.saturating_sub(8).max(13))?;
    scramble.extend(&rest[..rest.len() - 1]);
    Some(Greeting { scramble, plugin: body.text(), version })
}

/// What proves the password to `mysql_native_password`: SHA1(p) xor SHA1(scramble, SHA1(SHA1(p))).
pub(super) fn native_proof(password: &str, scramble: &[u8]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let once = Sha1::digest(password.as_bytes());
    let twice = Sha1::digest(once);
    let mut both = Sha1::new();
    both.update(scramble);
    both.update(twice);
    once.iter().zip(both.finalize()).map(|(left, right)| left ^ right).collect()
}

/// What proves the password to `caching_sha2_password`: SHA256(p) xor SHA256(SHA256(SHA256(p)), scramble).
pub(super) fn sha2_proof(password: &str, scramble: &[u8]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let once = Sha256::digest(password.as_bytes());
    let both = Sha256::new().chain_update(Sha256::digest(once)).chain_update(scramble).finalize();
    once.iter().zip(both).map(|(left, right)| left ^ right).collect()
}

/// A packet of an error: code, SQLSTATE and text.
pub(super) fn server_error(packet: &[u8]) -> DatabaseError {
    let mut body = In(packet.get(1..).unwrap_or_default());
    let number = body.int(2).unwrap_or(0) as u16;
    let mut code = "HY000".to_owned();
    if body.0.first() == Some(&b'#')
        && let Some(state) = body.take(6)
    {
        code = String::from_utf8_lossy(&state[1..]).into_owned();
    }
    DatabaseError::Server { code, number, message: String::from_utf8_lossy(body.0).into_owned() }
}

/// A column of a result: how its values are written.
#[derive(Debug, Clone, Copy)]
pub(super) struct ColumnKind {
    kind: u8,
    unsigned: bool,
}

/// Reads a column's definition.
pub(super) fn column(packet: &[u8]) -> Option<ColumnKind> {
    let mut body = In(packet);
    for _ in 0..6 {
        body.bytes()?;
    }
    body.length()?;
    body.take(2 + 4)?;
    let kind = body.int(1)? as u8;
    let flags = body.int(2)?;
    Some(ColumnKind { kind, unsigned: flags & 0x20 != 0 })
}

/// Reads a row of a prepared statement's result.
pub(super) fn row(packet: &[u8], columns: &[ColumnKind]) -> Option<Row> {
    let mut body = In(packet);
    if body.int(1)? != 0 {
        return None;
    }
    let nulls = body.take((columns.len() + 9) / 8)?;
    let mut values = Vec::with_capacity(columns.len());
    for (place, column) in columns.iter().enumerate() {
        if nulls[(place + 2) / 8] & 1 << ((place + 2) % 8) != 0 {
            values.push(Value::Null);
            continue;
        }
        let (bytes, number) = match column.kind {
            1 => (1, true),
            2 | 13 => (2, true),
            3 | 9 => (4, true),
            LONGLONG => (8, true),
            NULL_KIND => {
                values.push(Value::Null);
                continue;
            }
            // DECIMAL and NEWDECIMAL (sums), then kinds of text.
            0 | 246 | 15 | 245 | 247..=254 => (0, false),
            _ => return None,
        };
        if number {
            let bits = body.int(bytes)?;
            let unused = 64 - 8 * bytes;
            values.push(Value::Int(if column.unsigned {
                i64::try_from(bits).ok()?
            } else {
                ((bits << unused) as i64) >> unused
            }));
        } else {
            let text = std::str::from_utf8(body.bytes()?).ok()?;
            values.push(match column.kind {
                0 | 246 => Value::Int(text.parse().ok()?),
                _ => Value::Text(text.to_owned()),
            });
        }
    }
    Some(Row(values))
}

/// Parameters of `COM_STMT_EXECUTE`: which are NULL, their kinds, their values.
pub(super) fn put_parameters(parameters: &[Value], to: &mut Vec<u8>) {
    if parameters.is_empty() {
        return;
    }
    let mut nulls = vec![0u8; parameters.len().div_ceil(8)];
    for (place, _) in parameters.iter().enumerate().filter(|(_, value)| **value == Value::Null) {
        nulls[place / 8] |= 1 << (place % 8);
    }
    to.extend(nulls);
    to.push(1);
    for parameter in parameters {
        to.extend(match parameter {
            Value::Null => [NULL_KIND, 0],
            Value::Int(_) => [LONGLONG, 0],
            Value::Text(_) => [VAR_STRING, 0],
        });
    }
    for parameter in parameters {
        match parameter {
            Value::Null => {}
            Value::Int(number) => to.extend(number.to_le_bytes()),
            Value::Text(text) => put_bytes(text.as_bytes(), to),
        }
    }
}

/// A value in the text of an `INSERT` statement.
pub(super) fn put_literal(value: &Value, to: &mut Vec<u8>) {
    match value {
        Value::Null => to.extend(b"NULL"),
        Value::Int(number) => to.extend(number.to_string().as_bytes()),
        Value::Text(text) => {
            to.push(b'\'');
            for byte in text.bytes() {
                match byte {
                    b'\'' => to.extend(b"''"),
                    b'\\' => to.extend(b"\\\\"),
                    0 => to.extend(b"\\0"),
                    other => to.push(other),
                }
            }
            to.push(b'\'');
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lengths_of_every_size() {
        for length in [0usize, 250, 251, 65_535, 65_536, 1 << 24] {
            let bytes = vec![7; length];
            let mut packet = Vec::new();
            put_bytes(&bytes, &mut packet);
            assert_eq!(In(&packet).bytes().map(<[u8]>::len), Some(length));
        }
    }

    #[test]
    fn whole_numbers_keep_their_sign() {
        let columns = [ColumnKind { kind: 1, unsigned: false }, ColumnKind { kind: 3, unsigned: true }];
        let found = row(&[0, 0, 0xff, 0xff, 0xff, 0xff, 0xff], &columns).unwrap();
        assert_eq!(found, Row(vec![Value::Int(-1), Value::Int(4_294_967_295)]));
        assert_eq!(row(&[0, 4, 1, 0, 0, 0], &columns), Some(Row(vec![Value::Null, Value::Int(1)])));
    }

    /// Values of the MySQL driver for Go (`TestScrambleSHA256Pass`).
    #[test]
    fn sha2_proofs_are_those_of_other_clients() {
        let scramble = [10, 47, 74, 111, 75, 73, 34, 48, 88, 76, 114, 74, 37, 13, 3, 80, 82, 2, 23, 21];
        for (password, expected) in [
            ("secret", "f490e76f66d9d86665ce54d98c78d0acfe2fb0b08b423da807144873d30b312c"),
            ("secret2", "abc3934a012cf342e876071c8ee202de51785b430258a7a0138bc79c4d800bc6"),
        ] {
            let proof: String =
                sha2_proof(password, &scramble).iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(proof, expected);
        }
    }

    proptest! {
        #[test]
        fn no_packet_is_too_strange(packet in proptest::collection::vec(any::<u8>(), 0..200)) {
            let columns = [ColumnKind { kind: 253, unsigned: false }, ColumnKind { kind: 8, unsigned: true }];
            let _ = (greeting(&packet), column(&packet), row(&packet, &columns), server_error(&packet));
        }
    }
}
