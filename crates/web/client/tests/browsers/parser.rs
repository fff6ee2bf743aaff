//! Tests of the response parser: the result does not depend on the pieces.

use proptest::prelude::*;
use weir_web_client::Parser;

/// What became of an answer: whether it is malformed, whole, its status, body, and how many bytes belong to it.
#[derive(Debug, PartialEq)]
struct Outcome {
    malformed: bool,
    whole: bool,
    status: u16,
    keep_alive: bool,
    body: Vec<u8>,
    used: usize,
}

/// Reads `bytes` in pieces that end at `cuts`; then the connection ends.
fn read(bytes: &[u8], cuts: &[usize], bodiless: bool) -> Outcome {
    let mut parser = Parser::default();
    parser.begin(bodiless);
    let (mut body, mut used, mut malformed) = (Vec::new(), 0, false);
    let mut ends: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
    ends.push(bytes.len());
    ends.sort_unstable();
    let mut start = 0;
    for end in ends {
        match parser.feed(&bytes[start..end], |_, part| body.extend_from_slice(part)) {
            Ok(count) => used += count,
            Err(_) => {
                malformed = true;
                break;
            }
        }
        start = end;
        if parser.is_done() {
            break;
        }
    }
    let mut whole = !malformed && parser.is_done();
    if !malformed && !whole {
        match parser.close() {
            Ok(done) => whole = done,
            Err(_) => malformed = true,
        }
    }
    // How far a malformed answer was understood depends on the pieces, and is of no use to anyone.
    let (status, keep_alive) = if whole { (parser.status(), parser.keep_alive()) } else { (0, false) };
    let used = if malformed { 0 } else { used };
    Outcome { malformed, whole, status, keep_alive, body, used }
}

/// Answers that are nearly right: lines of all sorts behind one another.
fn nearly() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        Just("HTTP/1.1 200 OK\r\n".to_owned()),
        Just("HTTP/1.0 404\r\n".to_owned()),
        Just("HTTP/1.1 100 Continue\r\n\r\n".to_owned()),
        Just("Content-Length: 5\r\n".to_owned()),
        Just("Content-Length: 18446744073709551616\r\n".to_owned()),
        Just("Transfer-Encoding: chunked\r\n".to_owned()),
        Just("Connection: close\r\n".to_owned()),
        Just("\r\n".to_owned()),
        Just("\n".to_owned()),
        Just("5\r\nhello\r\n".to_owned()),
        Just("0\r\n\r\n".to_owned()),
        Just("ffffffffffffffff\r\n".to_owned()),
        "[ -~]{0,12}\r\n",
    ];
    let lines = prop::collection::vec(line, 0..12).prop_map(|lines| lines.concat().into_bytes());
    prop_oneof![
        lines.clone(),
        lines.prop_map(|bytes| [b"HTTP/1.1 200 OK\r\n".as_slice(), &bytes].concat()),
        prop::collection::vec(any::<u8>(), 0..200),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_bytes_in_any_pieces(
        mut bytes in nearly(),
        cuts in prop::collection::vec(any::<usize>(), 0..8),
        flip in proptest::option::of((any::<usize>(), any::<u8>())),
        bodiless: bool,
    ) {
        if let Some((at, with)) = flip && !bytes.is_empty() {
            let at = at % bytes.len();
            bytes[at] = with;
        }
        let whole = read(&bytes, &[], bodiless);
        prop_assert_eq!(&whole, &read(&bytes, &cuts, bodiless));
        let every: Vec<usize> = (0..bytes.len()).collect();
        prop_assert_eq!(&whole, &read(&bytes, &every, bodiless));
    }

    #[test]
    fn what_was_sent_is_what_is_read(
        body in prop::collection::vec(any::<u8>(), 0..3000),
        chunks in prop::collection::vec(1_usize..600, 1..6),
        framing in 0..3,
        interim: bool,
        behind in prop::collection::vec(any::<u8>(), 0..40),
        cuts in prop::collection::vec(any::<usize>(), 0..8),
    ) {
        let mut text = Vec::new();
        if interim {
            text.extend_from_slice(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
        }
        text.extend_from_slice(b"HTTP/1.1 200 OK\r\nDate: now\r\n");
        match framing {
            0 => {
                text.extend(format!("content-length:  {} \r\n\r\n", body.len()).bytes());
                text.extend_from_slice(&body);
            }
            1 => {
                text.extend_from_slice(b"TRANSFER-ENCODING: Chunked\r\n\r\n");
                let mut rest = &body[..];
                for size in chunks.iter().cycle() {
                    let (chunk, left) = rest.split_at((*size).min(rest.len()));
                    if chunk.is_empty() {
                        break;
                    }
                    text.extend(format!("{:X} ; a=\"b\"\r\n", chunk.len()).bytes());
                    text.extend_from_slice(chunk);
                    text.extend_from_slice(b"\r\n");
                    rest = left;
                }
                text.extend_from_slice(b"000\r\nA: b\r\nC: d\r\n\r\n");
            }
            _ => {
                text.extend_from_slice(b"\r\n");
                text.extend_from_slice(&body);
            }
        }
        let end = text.len();
        if framing != 2 {
            text.extend_from_slice(&behind);
        }
        let outcome = read(&text, &cuts, false);
        prop_assert!(outcome.whole && !outcome.malformed, "{:?}", outcome);
        prop_assert_eq!((outcome.status, outcome.used), (200, end));
        prop_assert_eq!(outcome.keep_alive, framing != 2);
        prop_assert!(outcome.body == body);
    }
}

#[test]
fn what_does_not_say_where_it_ends_is_refused() {
    for (text, malformed) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", true),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na", false),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", true),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", true),
        ("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", true),
        ("HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\na", true),
        ("HTTP/1.1 101 Switching\r\n\r\n", true),
        ("HTTP/2 200\r\n\r\n", true),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n", true),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\nab\r\n0\r\n\r\n", true),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n", true),
        ("no server", true),
    ] {
        let outcome = read(text.as_bytes(), &[], false);
        assert_eq!((outcome.malformed, outcome.whole), (malformed, !malformed), "{text:?}");
    }
    let endless = [b"HTTP/1.1 200 OK\r\nA: ".as_slice(), &vec![b'a'; 70_000]].concat();
    assert!(read(&endless, &[], false).malformed && read(&endless, &[3, 60_000], false).malformed);
}

#[test]
fn bodies_that_must_not_be_are_not_awaited() {
    for (text, bodiless) in [
        ("HTTP/1.1 204 No\r\nContent-Length: 9\r\n\r\n", false),
        ("HTTP/1.1 304 No\r\nContent-Length: 9\r\n\r\n", false),
        ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", true),
    ] {
        let outcome = read(text.as_bytes(), &[], bodiless);
        assert!(outcome.whole && outcome.keep_alive && outcome.used == text.len(), "{text:?}");
    }
    let half = read(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n1234", &[], false);
    assert!(!half.whole && !half.malformed);
}
