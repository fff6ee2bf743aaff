//! Address of a web server, from its URL.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;

use crate::Error;

/// A server, and the base path of all requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    /// For the `Host` line.
    pub(crate) host: String,
    /// Put before every path; empty, or begins with `/` and does not end with one.
    pub(crate) base: String,
    /// The URL as written by the user, without a `/` at the end.
    pub url: Arc<str>,
}

impl Server {
    /// Reads `http://HOST[:PORT][/PATH]` and resolves the host; the first of several addresses is used.
    ///
    /// # Errors
    /// The URL is malformed or not of HTTP, or there is no such host.
    pub fn new(url: &str) -> Result<Self, Error> {
        let bad = |reason: &str| Error::Url { url: url.to_owned(), reason: reason.to_owned() };
        let Some(rest) = url.strip_prefix("http://") else {
            return Err(bad("write http://HOST:PORT/ (TLS is not supported: name the server behind it)"));
        };
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if host.is_empty() || host.contains(['@', '?', '#']) {
            return Err(bad("names no host; write http://HOST:PORT/"));
        }
        if let Some(wrong) = rest.bytes().find(|byte| !byte.is_ascii_graphic()) {
            return Err(bad(&format!("has the byte 0x{wrong:02x}; percent-encode it")));
        }
        if path.contains(['?', '#']) {
            return Err(bad("ends in a query or fragment; give the folder that the documents are in"));
        }
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
        let looked_up = if has_port { host.to_owned() } else { format!("{host}:80") };
        let address = looked_up
            .to_socket_addrs()
            .map_err(|error| bad(&format!("cannot look up {looked_up}: {error}")))?
            .next()
            .ok_or_else(|| bad(&format!("{looked_up} has no address")))?;
        let base = path.trim_end_matches('/').to_owned();
        Ok(Server { address, host: host.to_owned(), base, url: url.trim_end_matches('/').into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_url() {
        let server = Server::new("http://127.0.0.1:8080/site/a/").unwrap();
        assert_eq!(server.address, "127.0.0.1:8080".parse().unwrap());
        assert_eq!((server.host.as_str(), server.base.as_str()), ("127.0.0.1:8080", "/site/a"));
        assert_eq!(&*server.url, "http://127.0.0.1:8080/site/a");
        let server = Server::new("http://[::1]").unwrap();
        assert_eq!((server.address, server.base.as_str()), ("[::1]:80".parse().unwrap(), ""));
        assert_eq!(Server::new("http://[::1]:81/").unwrap().address, "[::1]:81".parse().unwrap());
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (url, says) in [
            ("https://a/", "TLS is not supported"),
            ("127.0.0.1:80", "write http://"),
            ("http://", "names no host"),
            ("http:///x", "names no host"),
            ("http://127.0.0.1:1/a b", "0x20"),
            ("http://127.0.0.1:1/a?b", "query"),
            ("http://127.0.0.1:99999/", "cannot look up"),
            ("http://no.such.host.invalid/", "cannot look up"),
        ] {
            let error = Server::new(url).unwrap_err().to_string();
            assert!(error.contains(says) && error.contains(url), "{error}");
        }
    }
}
