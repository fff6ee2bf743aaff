//! Specification of the test network.

use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

use crate::Error;

/// A test network and its hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// Name of the network; namespaces are called `weir-NAME-HOST`.
    pub name: String,
    /// Address range; hosts have its first addresses, in order.
    pub subnet: Subnet,
    /// Names of the hosts.
    pub hosts: Vec<String>,
    /// Limit on what each host sends, and on what it receives, in 10^6 bits a second; absent if unlimited.
    pub rate_mbit: Option<u32>,
}

/// A private address range, such as `10.77.0.0/24`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Subnet {
    first: Ipv4Addr,
    prefix: u8,
}

impl Subnet {
    /// Prefix length, in bits.
    pub fn prefix(self) -> u8 {
        self.prefix
    }

    /// The address of a host by number, from 0; `None` if the range is used up.
    pub fn address(self, host: usize) -> Option<Ipv4Addr> {
        let room = (1u64 << (32 - self.prefix)) - 2;
        let number = u32::try_from(host).ok().filter(|host| u64::from(*host) < room)?;
        Some(Ipv4Addr::from(u32::from(self.first) + 1 + number))
    }
}

impl TryFrom<String> for Subnet {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is not an address range. Write one like 10.77.0.0/24, with a prefix of 8 to 30 bits"
            )
        };
        let (first, prefix) = text.split_once('/').ok_or_else(wrong)?;
        let first: Ipv4Addr = first.parse().map_err(|_| wrong())?;
        let prefix: u8 = prefix.parse().ok().filter(|prefix| (8..=30).contains(prefix)).ok_or_else(wrong)?;
        if !first.is_private() {
            return Err(format!("{text} is not private (RFC 1918). Choose a range in 10.0.0.0/8"));
        }
        if u32::from(first) & (u32::MAX >> prefix) != 0 {
            return Err(format!(
                "{text} does not begin with its first address. Set the last {} bits to 0",
                32 - prefix
            ));
        }
        Ok(Subnet { first, prefix })
    }
}

impl From<Subnet> for String {
    fn from(subnet: Subnet) -> String {
        format!("{}/{}", subnet.first, subnet.prefix)
    }
}

impl Spec {
    /// The namespace of a host, or of the bridge.
    pub(crate) fn namespace(&self, host: &str) -> String {
        format!("weir-{}-{host}", self.name)
    }

    /// # Errors
    /// A name is invalid or given twice, or there are more hosts than addresses.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let refuse = |text: String| Err(Error::Refused(text));
        let is_name = |name: &str| {
            !name.is_empty()
                && name.len() <= 32
                && name.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-')
        };
        for name in self.hosts.iter().chain([&self.name]) {
            if !is_name(name) {
                return refuse(format!(
                    "`{name}` is not a name. Use 1 to 32 lower-case letters, digits and -"
                ));
            }
        }
        if self.rate_mbit == Some(0) {
            return refuse("the rate is 0 Mbit/s. Give at least 1, or leave it out for no limit".to_owned());
        }
        if self.hosts.is_empty() {
            return refuse("no host is named. Name at least one".to_owned());
        }
        for (index, host) in self.hosts.iter().enumerate() {
            if host == BRIDGE {
                return refuse(format!("host `{host}` has the name of the bridge. Choose another name"));
            }
            if self.hosts[..index].contains(host) {
                return refuse(format!("host `{host}` is given twice. Leave one out"));
            }
            if self.subnet.address(index).is_none() {
                return refuse(format!(
                    "{} has no address for host `{host}`. Use a shorter prefix",
                    String::from(self.subnet)
                ));
            }
        }
        Ok(())
    }
}

/// Name of the bridge's namespace within the network.
pub(crate) const BRIDGE: &str = "bridge";

#[cfg(test)]
mod tests {
    use super::*;

    fn subnet(text: &str) -> Result<Subnet, String> {
        Subnet::try_from(text.to_owned())
    }

    #[test]
    fn addresses_are_those_of_the_range_without_its_ends() {
        let tiny = subnet("10.1.2.4/30").unwrap();
        assert_eq!(tiny.address(0), Some(Ipv4Addr::new(10, 1, 2, 5)));
        assert_eq!(tiny.address(1), Some(Ipv4Addr::new(10, 1, 2, 6)));
        assert_eq!(tiny.address(2), None);
        assert_eq!(String::from(tiny), "10.1.2.4/30");
    }

    #[test]
    fn what_is_not_private_or_no_range_is_refused() {
        for text in ["8.8.8.0/24", "10.0.0.0", "10.0.0.1/24", "10.0.0.0/31", "x/24"] {
            assert!(subnet(text).is_err(), "{text}");
        }
    }

    #[test]
    fn hosts_have_names_of_their_own_and_addresses() {
        let spec = |hosts: &[&str]| Spec {
            name: "lab".to_owned(),
            subnet: subnet("10.1.2.0/30").unwrap(),
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
            rate_mbit: None,
        };
        assert!(spec(&["a", "b"]).check().is_ok());
        let limited = |rate| Spec { rate_mbit: Some(rate), ..spec(&["a"]) }.check();
        assert!(limited(1).is_ok() && limited(0).is_err_and(|error| error.is_refusal()));
        for hosts in [&["a", "a"][..], &["bridge"], &["A"], &[], &["a", "b", "c"], &["../x"]] {
            assert!(spec(hosts).check().is_err_and(|error| error.is_refusal()), "{hosts:?}");
        }
    }
}
