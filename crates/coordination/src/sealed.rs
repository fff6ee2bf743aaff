//! Sealed lines: a sequence number and an HMAC before each message.
//!
//! `NUMBER HMAC JSON`: the number counts from 0 in each direction, the HMAC (SHA-256, 64 hexadecimal digits) covers number and JSON
//! under the key of its connection and direction. A line that was modified, repeated, reordered, dropped or sent back to its
//! sender is an error.

use hmac::Mac as _;

use crate::Message;
use crate::token::{HmacSha256, hex, keyed, unhex};

/// Writes sealed lines of one direction.
pub(crate) struct Sealer {
    key: HmacSha256,
    next: u64,
}

/// Reads sealed lines of one direction.
pub(crate) struct Opener {
    key: HmacSha256,
    next: u64,
}

fn code(key: &HmacSha256, number: u64, json: &[u8]) -> HmacSha256 {
    let mut mac = key.clone();
    mac.update(&number.to_le_bytes());
    mac.update(json);
    mac
}

impl Sealer {
    pub(crate) fn new(key: &[u8; 32]) -> Self {
        Sealer { key: keyed(key), next: 0 }
    }

    /// The line, with its end.
    pub(crate) fn seal(&mut self, message: &Message) -> Vec<u8> {
        let json = message.json();
        let mac = hex(&code(&self.key, self.next, &json).finalize().into_bytes());
        let mut line = format!("{} {mac} ", self.next).into_bytes();
        line.extend_from_slice(&json);
        line.push(b'\n');
        self.next += 1;
        line
    }
}

impl Opener {
    pub(crate) fn new(key: &[u8; 32]) -> Self {
        Opener { key: keyed(key), next: 0 }
    }

    /// Opens a line without its end, and returns its message.
    ///
    /// # Errors
    /// The line is not sealed, not sealed by the other side of this connection, or not the next one; the text says which.
    pub(crate) fn open(&mut self, line: &[u8]) -> Result<Message, String> {
        let Some((number, mac, json)) = split(line) else {
            return Err(format!("message {} is not sealed: it is not from a host of this run", self.next));
        };
        if code(&self.key, number, json).verify_slice(&mac).is_err() {
            return Err(format!(
                "message {} has a wrong HMAC: it was modified in transit, or is not from a host of this run",
                self.next
            ));
        }
        if number != self.next {
            return Err(format!(
                "wrong message number (found {number}, expected {}): messages were repeated, reordered or dropped in transit",
                self.next
            ));
        }
        self.next += 1;
        Message::parse(json)
    }
}

/// Number, HMAC and JSON of a line.
fn split(line: &[u8]) -> Option<(u64, [u8; 32], &[u8])> {
    let mut parts = line.splitn(3, |byte| *byte == b' ');
    let (number, mac, json) = (parts.next()?, parts.next()?, parts.next()?);
    let is_number = number.iter().all(u8::is_ascii_digit) && (number.len() == 1 || !number.starts_with(b"0"));
    let number = std::str::from_utf8(number).ok().filter(|_| is_number)?.parse().ok()?;
    Some((number, unhex(mac)?, json))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{LineBuffer, MOST_BYTES};

    fn pair() -> (Sealer, Opener) {
        (Sealer::new(&[7; 32]), Opener::new(&[7; 32]))
    }

    fn without_end(mut line: Vec<u8>) -> Vec<u8> {
        assert_eq!(line.pop(), Some(b'\n'));
        line
    }

    #[test]
    fn lines_are_opened_in_their_order_only() {
        let (mut sealer, mut opener) = pair();
        let lines: Vec<_> = (0..5).map(|number| without_end(sealer.seal(&Message::Ask { number }))).collect();
        assert!(lines[0].starts_with(b"0 ") && lines[0].ends_with(b" {\"say\":\"ask\",\"number\":0}"));
        assert_eq!(opener.open(&lines[0]), Ok(Message::Ask { number: 0 }));
        let repeated = opener.open(&lines[0]).unwrap_err();
        assert!(repeated.starts_with("wrong message number (found 0, expected 1)"), "{repeated}");
        assert!(
            opener.open(&lines[2]).unwrap_err().starts_with("wrong message number (found 2, expected 1)")
        );
        assert_eq!(opener.open(&lines[1]), Ok(Message::Ask { number: 1 }));
        // Of the other direction, or of another connection.
        assert!(Opener::new(&[8; 32]).open(&lines[0]).unwrap_err().contains("wrong HMAC"));
        for plain in [&b"{\"say\":\"beat\"}"[..], b"", b"2", b"2 ", b"2 00 {}", b"02 ", b"+2 "] {
            assert!(opener.open(plain).unwrap_err().contains("message 2 is not sealed"));
        }
        // A number that was changed on the way.
        let changed = [b"2", &lines[3][1..]].concat();
        assert!(opener.open(&changed).unwrap_err().contains("wrong HMAC"));
    }

    #[test]
    fn the_longest_reason_fits_into_a_line() {
        let (mut sealer, mut opener) = pair();
        let reason = crate::message::short(&"\u{1}".repeat(10_000));
        let host = "h".repeat(128);
        let ended = crate::Ended { host, after_ns: Some(i64::MIN), failed: Some(reason) };
        sealer.next = u64::MAX - 1;
        opener.next = u64::MAX - 1;
        let line = sealer.seal(&Message::Over { ended: ended.clone() });
        assert!(line.len() < MOST_BYTES);
        assert_eq!(opener.open(&without_end(line)), Ok(Message::Over { ended }));
    }

    proptest! {
        #[test]
        fn one_changed_byte_is_found(number in any::<u32>(), at in any::<prop::sample::Index>(), to in any::<u8>()) {
            let (mut sealer, mut opener) = pair();
            let mut line = without_end(sealer.seal(&Message::Ask { number }));
            let at = at.index(line.len());
            let same = line[at] == to;
            line[at] = to;
            prop_assert_eq!(opener.open(&line).is_ok(), same);
        }

        #[test]
        fn any_bytes_are_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300), like in any::<bool>()) {
            let (_, mut opener) = pair();
            let line = if like { [b"0 ", &[b'a'; 64][..], b" ", &bytes].concat() } else { bytes };
            prop_assert!(opener.open(&line).is_err());
        }

        #[test]
        fn lines_come_out_as_they_went_in_however_they_are_cut(
            sent in prop::collection::vec(any::<u32>(), 0..20), cut in 1_usize..200,
        ) {
            let (mut sealer, mut opener) = pair();
            let bytes: Vec<u8> = sent.iter().flat_map(|&number| sealer.seal(&Message::Ask { number })).collect();
            let (mut buffer, mut found) = (LineBuffer::default(), Vec::new());
            for some in bytes.chunks(cut) {
                buffer.push(some);
                while let Some(line) = buffer.next_line().unwrap() {
                    found.push(opener.open(&line).unwrap());
                }
            }
            prop_assert!(!buffer.is_within_line());
            let sent: Vec<_> = sent.into_iter().map(|number| Message::Ask { number }).collect();
            prop_assert_eq!(found, sent);
        }
    }
}
