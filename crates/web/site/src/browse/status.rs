//! Client of a site's `/status` page.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use crate::Error;

const PATIENCE: Duration = Duration::from_secs(10);
const LONGEST_ANSWER_BYTES: u64 = 1 << 20;

/// The status report of a site.
#[derive(Debug, Clone, PartialEq)]
pub struct Status {
    /// The benchmark.
    pub site: String,
    /// Facts that determine its content, by name.
    pub facts: Vec<(String, String)>,
    /// Requests that were answered, by page.
    pub answered: Vec<(String, u64)>,
}

/// Reads `/status` of a site at `http://HOST:PORT`.
///
/// # Errors
/// The site is not reachable, or the answer is malformed.
pub fn read_status(server: &weir_web_client::Server) -> Result<Status, Error> {
    let strange =
        |what: &str| Error::Input(format!("{}/status: {what}; is a site served there?", server.url));
    let io = |source| Error::Io { path: server.url.to_string(), source };
    let mut stream = TcpStream::connect_timeout(&server.address, PATIENCE).map_err(io)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(io)?;
    stream.write_all(b"GET /status HTTP/1.1\r\nHost: site\r\nConnection: close\r\n\r\n").map_err(io)?;
    let mut answer = Vec::new();
    stream.take(LONGEST_ANSWER_BYTES).read_to_end(&mut answer).map_err(io)?;
    let text = String::from_utf8_lossy(&answer);
    let (head, body) = text.split_once("\r\n\r\n").ok_or_else(|| strange("no answer of HTTP"))?;
    if !head.starts_with("HTTP/1.1 200 ") {
        return Err(strange(head.lines().next().unwrap_or_default()));
    }
    let value: Value = serde_json::from_str(body).map_err(|_| strange("no JSON"))?;
    let site = value.get("site").and_then(Value::as_str).ok_or_else(|| strange("names no site"))?;
    let facts = value.get("facts").and_then(Value::as_object).into_iter().flatten();
    let pages = value.get("pages").and_then(Value::as_object).into_iter().flatten();
    Ok(Status {
        site: site.to_owned(),
        facts: facts.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect(),
        answered: pages
            .filter_map(|(page, counts)| Some((page.clone(), counts.get("answered")?.as_u64()?)))
            .collect(),
    })
}
