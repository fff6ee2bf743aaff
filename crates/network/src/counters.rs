//! Interface counters of a host of the test network.

use std::fs;
use std::ops::Sub;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::namespace::within;

/// Bytes and packets of all interfaces but the loopback, since the interfaces were made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Bytes received, with Ethernet headers.
    pub received_bytes: u64,
    /// Packets received, as the kernel passes them on: receive offload may merge several packets of the wire.
    pub received_packets: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Packets sent.
    pub sent_packets: u64,
}

impl Sub for Counters {
    type Output = Counters;

    fn sub(self, before: Counters) -> Counters {
        Counters {
            received_bytes: self.received_bytes.saturating_sub(before.received_bytes),
            received_packets: self.received_packets.saturating_sub(before.received_packets),
            sent_bytes: self.sent_bytes.saturating_sub(before.sent_bytes),
            sent_packets: self.sent_packets.saturating_sub(before.sent_packets),
        }
    }
}

/// Reads the counters of a network namespace.
///
/// # Errors
/// The namespace is absent, or cannot be entered.
pub fn counters(namespace: &Path) -> Result<Counters, Error> {
    let table = Path::new("/proc/thread-self/net/dev");
    let text = within(namespace, || fs::read_to_string(table))?;
    parse(&text.map_err(Error::io("cannot read", table))?)
        .ok_or_else(|| Error::Failed(format!("{}: its format is not that of proc(5)", table.display())))
}

/// `net/dev` of proc(5): two lines of head, then `NAME: 8 fields received, 8 sent`.
fn parse(text: &str) -> Option<Counters> {
    let mut sum = Counters::default();
    for line in text.lines().skip(2) {
        let (name, fields) = line.split_once(':')?;
        let fields: Vec<u64> =
            fields.split_ascii_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
        if name.trim() != "lo" {
            sum.received_bytes += fields.first()?;
            sum.received_packets += fields.get(1)?;
            sum.sent_bytes += fields.get(8)?;
            sum.sent_packets += fields.get(9)?;
        }
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_interfaces_but_the_loopback_are_summed() {
        let text = "Inter-|   Receive |  Transmit\n face |bytes packets ...\n\
                    \x20   lo: 99 9 0 0 0 0 0 0 99 9 0 0 0 0 0 0\n\
                    \x20 eth0: 1000 10 0 0 0 0 0 0 500 5 0 0 0 0 0 0\n\
                    \x20 eth1:1 1 0 0 0 0 0 0 2 1 0 0 0 0 0 0\n";
        let found = parse(text).unwrap();
        assert_eq!((found.received_bytes, found.received_packets), (1001, 11));
        assert_eq!((found.sent_bytes, found.sent_packets), (502, 6));
        assert_eq!((found - found), Counters::default());
        assert!(parse("a\nb\nno colon\n").is_none());
    }
}
