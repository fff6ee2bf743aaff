//! Lines: what was said is heard, and whatever else comes is an error and not a fall.

use proptest::prelude::*;
use weir_coordination::{Ended, LineBuffer, MOST_BYTES, Message};

fn message() -> impl Strategy<Value = Message> {
    let ended = (".{0,20}", any::<Option<i64>>(), proptest::option::of(".{0,40}"))
        .prop_map(|(host, after_ns, failed)| Ended { host, after_ns, failed });
    prop_oneof![
        (any::<u32>(), ".{0,40}").prop_map(|(version, nonce)| Message::Challenge { version, nonce }),
        (any::<u32>(), ".{0,20}", ".{0,20}", ".{0,70}", ".{0,70}").prop_map(
            |(version, host, run, nonce, proof)| Message::Hello { version, host, run, nonce, proof }
        ),
        ".{0,70}".prop_map(|proof| Message::Welcome { proof }),
        ".{0,60}".prop_map(|reason| Message::Refused { reason }),
        ".{0,60}".prop_map(|reason| Message::Failed { reason }),
        any::<u32>().prop_map(|number| Message::Ask { number }),
        any::<(u32, i64)>().prop_map(|(number, received_ns)| Message::Told { number, received_ns }),
        any::<(u32, i64)>().prop_map(|(number, replied_ns)| Message::Replied { number, replied_ns }),
        any::<i64>().prop_map(|epoch_ns| Message::Begin { epoch_ns }),
        ended.prop_map(|ended| Message::Over { ended }),
        prop_oneof![
            Just(Message::Joined {}),
            Just(Message::Ready {}),
            Just(Message::Asked {}),
            Just(Message::Done {}),
            Just(Message::End {}),
            Just(Message::Beat {}),
        ],
    ]
}

/// All messages in these bytes, which come so many at a time; or what is wrong.
fn read(bytes: &[u8], at_once: usize) -> Result<Vec<Message>, String> {
    let (mut buffer, mut found) = (LineBuffer::default(), Vec::new());
    for some in bytes.chunks(at_once) {
        buffer.push(some);
        while let Some(line) = buffer.next_line().map_err(|error| error.to_string())? {
            found.push(Message::parse(&line)?);
        }
    }
    if buffer.is_within_line() { Err("it ends within a line".to_owned()) } else { Ok(found) }
}

#[test]
fn a_line_is_what_it_is_said_to_be() {
    let told = Message::Told { number: 2, received_ns: i64::MIN };
    let text = "{\"say\":\"told\",\"number\":2,\"received_ns\":-9223372036854775808}\n";
    assert_eq!(String::from_utf8(told.line()).unwrap(), text);
    assert_eq!(Message::Ready {}.line(), b"{\"say\":\"ready\"}\n");
    assert!(Message::parse(b"{\"say\":\"ready\",\"and\":1}").unwrap_err().contains("and"));
    assert!(Message::parse(b"{\"say\":\"sing\"}").is_err() && Message::parse(b"").is_err());
}

#[test]
fn a_line_that_is_too_long_or_cut_short_is_refused() {
    for length in [MOST_BYTES + 1, 3 * MOST_BYTES] {
        let error = read(&vec![b' '; length], 100).unwrap_err();
        assert!(error.contains(&MOST_BYTES.to_string()), "{error}");
    }
    let long = [vec![b' '; MOST_BYTES + 1], vec![b'\n']].concat();
    assert!(read(&long, long.len()).is_err());
    let longest = [b"{\"say\":\"ready\"}".to_vec(), vec![b' '; MOST_BYTES - 15], vec![b'\n']].concat();
    assert_eq!(read(&longest, 7), Ok(vec![Message::Ready {}]));
    assert!(read(b"{\"say\":\"re", 4).is_err());
    assert_eq!(read(b"", 1), Ok(vec![]));
}

proptest! {
    #[test]
    fn what_is_said_is_heard(said in proptest::collection::vec(message(), 0..8), at_once in 1_usize..200) {
        let bytes: Vec<u8> = said.iter().flat_map(Message::line).collect();
        prop_assert_eq!(read(&bytes, at_once), Ok(said));
    }

    #[test]
    fn any_bytes_end_in_messages_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..6000), at_once in 1_usize..5000) {
        let _ = read(&bytes, at_once);
    }

    #[test]
    fn a_damaged_line_is_no_panic(message in message(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut line = message.line();
        let at = at.index(line.len());
        line[at] = byte;
        let _ = read(&line, 1);
    }
}
