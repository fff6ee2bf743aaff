//! HTTP/1.1 requests with their forms.

use std::io::{BufRead, BufReader, Read};

use super::form;
use crate::Error;

const MOST_HEADERS: usize = 64;
const LONGEST_HEAD_BYTES: u64 = 16 << 10;
const LONGEST_BODY_BYTES: usize = 64 << 10;

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Its method.
    pub method: String,
    /// Its path, without the query.
    pub path: String,
    /// The parameters of the query, then those of a form in the body.
    pub form: Form,
    /// Whether the connection stays open after the answer.
    pub keep_alive: bool,
}

/// Why there is no request.
#[derive(Debug)]
pub enum NoRequest {
    /// The client has closed the connection, or it broke.
    Closed,
    /// The input is not HTTP, or too long: status of the answer, and reason.
    Refused(u16, &'static str),
}

impl From<std::io::Error> for NoRequest {
    fn from(_: std::io::Error) -> Self {
        NoRequest::Closed
    }
}

/// Reads the next request of a connection.
///
/// # Errors
/// The connection is closed, or the input is no request; then the connection must be closed.
pub fn read<S: Read>(from: &mut BufReader<S>) -> Result<Request, NoRequest> {
    let mut head = Vec::new();
    loop {
        let before = head.len();
        let room = LONGEST_HEAD_BYTES - before as u64;
        (&mut *from).take(room).read_until(b'\n', &mut head)?;
        if head.len() == before {
            return Err(match before {
                0 => NoRequest::Closed,
                _ if room == 0 => NoRequest::Refused(431, "the head of the request is longer than 16 KiB"),
                _ => NoRequest::Closed,
            });
        }
        // An empty line before a request is ignored (RFC 9112, 2.2).
        if head == b"\r\n" || head == b"\n" {
            head.clear();
        }
        if head.ends_with(b"\r\n\r\n") || head.ends_with(b"\n\n") {
            break;
        }
    }
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    match parsed.parse(&head) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) => {
            return Err(NoRequest::Refused(400, "the head of the request ends early"));
        }
        Err(httparse::Error::TooManyHeaders) => {
            return Err(NoRequest::Refused(431, "more than 64 header lines"));
        }
        Err(_) => return Err(NoRequest::Refused(400, "not a request of HTTP/1")),
    }
    let header = |name: &str| {
        parsed.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name)).map(|header| header.value)
    };
    if header("transfer-encoding").is_some() {
        return Err(NoRequest::Refused(411, "send a Content-Length"));
    }
    let length = match header("content-length") {
        None => 0,
        Some(value) => std::str::from_utf8(value)
            .ok()
            .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))
            .and_then(|text| text.parse::<usize>().ok())
            .ok_or(NoRequest::Refused(400, "Content-Length is no number"))?,
    };
    if length > LONGEST_BODY_BYTES {
        return Err(NoRequest::Refused(413, "the body is longer than 64 KiB"));
    }
    let has = |token: &[u8]| header("connection").is_some_and(|value| value.eq_ignore_ascii_case(token));
    let keep_alive = if parsed.version == Some(1) { !has(b"close") } else { has(b"keep-alive") };
    let method = parsed.method.unwrap_or_default().to_owned();
    let target = parsed.path.unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let (path, mut pairs) = (path.to_owned(), form::pairs(query));
    if length > 0 {
        let mut body = vec![0; length];
        from.read_exact(&mut body)?;
        pairs.extend(form::pairs(&String::from_utf8_lossy(&body)));
    }
    Ok(Request { method, path, form: Form(pairs), keep_alive })
}

/// The parameters of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Form(pub Vec<(String, String)>);

impl Form {
    /// A parameter's text, if it is there and not empty.
    pub fn maybe(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// A parameter's text.
    ///
    /// # Errors
    /// It is absent, or longer than `most` characters: refused with 400.
    pub fn text(&self, name: &str, most: usize) -> Result<&str, Error> {
        let found = self.maybe(name).ok_or_else(|| Error::bad(format!("parameter `{name}` is missing")))?;
        if found.chars().count() > most {
            return Err(Error::bad(format!("parameter `{name}` is longer than {most} characters")));
        }
        Ok(found)
    }

    /// A parameter's number.
    ///
    /// # Errors
    /// It is absent, or no whole number from `least` to `most`: refused with 400.
    pub fn int(&self, name: &str, least: i64, most: i64) -> Result<i64, Error> {
        let found = self.maybe(name).ok_or_else(|| Error::bad(format!("parameter `{name}` is missing")))?;
        in_range(name, found, least, most)
    }

    /// A parameter's number, if it is there.
    ///
    /// # Errors
    /// It is no whole number from 1 upwards: refused with 400.
    pub fn maybe_id(&self, name: &str) -> Result<Option<i64>, Error> {
        self.maybe(name).map(|found| in_range(name, found, 1, i64::MAX)).transpose()
    }

    /// An id.
    ///
    /// # Errors
    /// It is absent, or no whole number from 1 upwards: refused with 400.
    pub fn id(&self, name: &str) -> Result<i64, Error> {
        self.int(name, 1, i64::MAX)
    }
}

fn in_range(name: &str, text: &str, least: i64, most: i64) -> Result<i64, Error> {
    let number = text.parse().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| {
        Error::bad(format!("parameter `{name}` is {text:?}, expected a number from {least} to {most}"))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(bytes: &[u8]) -> Result<Request, NoRequest> {
        read(&mut BufReader::new(bytes))
    }

    #[test]
    fn a_form_in_the_query_and_in_the_body() {
        let request =
            parse(b"\r\nPOST /tpcw/BUYC?sc_id=5 HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\ntoken=a+b")
                .unwrap();
        assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/tpcw/BUYC"));
        assert_eq!(request.form.id("sc_id").unwrap(), 5);
        assert_eq!(request.form.text("token", 9).unwrap(), "a b");
        assert!(request.keep_alive);
        assert!(!parse(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n").unwrap().keep_alive);
        assert!(!parse(b"GET / HTTP/1.0\r\n\r\n").unwrap().keep_alive);
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let status = |bytes: &[u8]| match parse(bytes) {
            Err(NoRequest::Refused(status, _)) => status,
            Err(NoRequest::Closed) => 0,
            Ok(_) => 200,
        };
        assert_eq!(status(b""), 0);
        assert_eq!(status(b"GET / HTTP/1.1\r\n"), 0);
        assert_eq!(status(b"nonsense\r\n\r\n"), 400);
        assert_eq!(status(b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n"), 400);
        assert_eq!(status(b"POST / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n"), 413);
        assert_eq!(status(&[b"GET /".as_slice(), &[b'a'; 20_000]].concat()), 431);
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_strange(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse(&bytes);
            let _ = parse(&[b"GET /?", bytes.as_slice(), b" HTTP/1.1\r\n\r\n"].concat());
        }
    }
}
