//! JSON documents with a checksum of their own content.
//!
//! The last field is `checksum`, the SHA-256 of all bytes before it: any changed bit is detected.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

const BEFORE: &str = ",\n  \"checksum\": \"";
const AFTER: &str = "\"\n}\n";
const HEX_DIGITS: usize = 64;

/// A pretty-printed JSON object with at least one field, with its checksum.
pub fn seal(object: &str) -> String {
    let body = object.trim_end().strip_suffix('}').unwrap_or(object).trim_end();
    format!("{body}{BEFORE}{}{AFTER}", hex(&Sha256::digest(body)))
}

/// The object without its checksum, and the checksum; `None` if they do not match.
pub fn unseal(text: &str) -> Option<(String, &str)> {
    let rest = text.strip_suffix(AFTER)?;
    let at = rest.len().checked_sub(HEX_DIGITS)?;
    let (rest, checksum) = (rest.get(..at)?, rest.get(at..)?);
    let body = rest.strip_suffix(BEFORE)?;
    (hex(&Sha256::digest(body)) == checksum).then(|| (format!("{body}\n}}\n"), checksum))
}

/// Bytes as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OBJECT: &str = "{\n  \"a\": 1,\n  \"b\": {\n    \"c\": []\n  }\n}\n";

    #[test]
    fn an_object_comes_back_as_it_was() {
        assert_eq!(unseal(&seal(OBJECT)).unwrap().0, OBJECT);
    }

    #[test]
    fn every_changed_bit_is_noticed() {
        let whole = seal(OBJECT).into_bytes();
        for bit in 0..whole.len() * 8 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let accepted = std::str::from_utf8(&bytes).is_ok_and(|text| unseal(text).is_some());
            assert!(!accepted, "bit {bit}");
        }
        for length in 0..whole.len() {
            assert!(unseal(std::str::from_utf8(&whole[..length]).unwrap()).is_none(), "{length} bytes");
        }
    }
}
