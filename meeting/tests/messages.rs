//! Lines: what was said is heard, and whatever else comes is an error and not a fall.

use proptest::prelude::*;
use weir_meeting::{Ended, Lines, MOST_BYTES, Message};

fn message() -> impl Strategy<Value = Message> {
    let ended = (".{0,20}", any::<Option<i64>>(), proptest::option::of(".{0,40}"))
        .prop_map(|(host, after_ns, failed)| Ended { host, after_ns, failed });
    prop_oneof![
        (any::<u32>(), ".{0,40}").prop_map(|(version, nonce)| Message::Challenge { version, nonce }),
        (".{0,20}", ".{0,20}", ".{0,70}").prop_map(|(host, run, answer)| Message::Hello {
            host,
            run,
            answer
        }),
        ".{0,60}".prop_map(|reason| Message::Refused { reason }),
        ".{0,60}".prop_map(|reason| Message::Failed { reason }),
        any::<i64>().prop_map(|sent_ns| Message::Ask { sent_ns }),
        any::<[i64; 3]>().prop_map(|[sent_ns, received_ns, replied_ns]| Message::Told {
            sent_ns,
            received_ns,
            replied_ns
        }),
        any::<i64>().prop_map(|epoch_ns| Message::Begin { epoch_ns }),
        ended.prop_map(|ended| Message::Over { ended }),
        prop_oneof![
            Just(Message::Welcome {}),
            Just(Message::Ready {}),
            Just(Message::Asked {}),
            Just(Message::Done {}),
            Just(Message::End {}),
            Just(Message::Beat {}),
        ],
    ]
}

/// Gives a few bytes at a time, as a network does.
struct Drops<'a>(&'a [u8], usize);

impl std::io::Read for Drops<'_> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let some = self.0.len().min(self.1).min(to.len());
        to[..some].copy_from_slice(&self.0[..some]);
        self.0 = &self.0[some..];
        Ok(some)
    }
}

#[test]
fn a_line_is_what_it_is_said_to_be() {
    let told = Message::Told { sent_ns: -1, received_ns: 2, replied_ns: i64::MAX };
    let text = "{\"say\":\"told\",\"sent_ns\":-1,\"received_ns\":2,\"replied_ns\":9223372036854775807}\n";
    assert_eq!(String::from_utf8(told.line()).unwrap(), text);
    assert_eq!(Message::Ready {}.line(), b"{\"say\":\"ready\"}\n");
    assert!(Message::parse(b"{\"say\":\"ready\",\"and\":1}").unwrap_err().contains("and"));
    assert!(Message::parse(b"{\"say\":\"sing\"}").is_err() && Message::parse(b"").is_err());
}

#[test]
fn a_line_that_never_ends_is_refused() {
    let mut lines = Lines::new(std::io::repeat(b' '));
    assert!(lines.next_message().unwrap_err().to_string().contains(&MOST_BYTES.to_string()));
    // Cut short in the middle.
    assert!(Lines::new(&b"{\"say\":\"re"[..]).next_message().is_err());
    assert!(Lines::new(&b""[..]).next_message().unwrap().is_none());
}

proptest! {
    #[test]
    fn what_is_said_is_heard(said in proptest::collection::vec(message(), 0..8), drop in 1_usize..200) {
        let bytes: Vec<u8> = said.iter().flat_map(Message::line).collect();
        let mut lines = Lines::new(Drops(&bytes, drop));
        for message in &said {
            prop_assert_eq!(lines.next_message().unwrap(), Some(message.clone()));
        }
        prop_assert_eq!(lines.next_message().unwrap(), None);
    }

    #[test]
    fn any_bytes_end_in_messages_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..6000), drop in 1_usize..5000) {
        let mut lines = Lines::new(Drops(&bytes, drop));
        while let Ok(Some(_)) = lines.next_message() {}
    }

    #[test]
    fn a_damaged_line_is_no_other_message_by_a_fall(message in message(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut line = message.line();
        let at = at.index(line.len());
        line[at] = byte;
        let mut lines = Lines::new(&line[..]);
        while let Ok(Some(_)) = lines.next_message() {}
    }
}
