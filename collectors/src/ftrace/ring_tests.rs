use proptest::prelude::*;

use super::*;

/// Of Linux 6.18 on x86-64.
const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
    \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
    \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
    \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

fn layout() -> PageLayout {
    PageLayout::parse(HEADER_PAGE).unwrap()
}

/// What the kernel writes one after the other.
#[derive(Debug, Clone)]
enum Written {
    Data {
        delta: u32,
        data: Vec<u8>,
    },
    /// An event that was taken back: time goes on.
    Discarded {
        delta: u32,
        bytes: u32,
    },
    Extend(u64),
    Stamp(u64),
}

fn word(kind: u32, delta: u32) -> [u8; 4] {
    let word = if cfg!(target_endian = "little") { kind | delta << 5 } else { kind << 27 | delta };
    word.to_ne_bytes()
}

/// A page as the kernel would write it, and the events in it.
fn page(begin_ns: u64, written: &[Written], is_padded: bool) -> (Vec<u8>, Vec<(u64, Vec<u8>)>) {
    let (mut bytes, mut events, mut time_ns) = (Vec::new(), Vec::new(), begin_ns);
    for written in written {
        match written {
            Written::Data { delta, data } => {
                time_ns = time_ns.wrapping_add(u64::from(*delta));
                if data.len() % 4 == 0 && (4..=112).contains(&data.len()) {
                    bytes.extend(word(u32::try_from(data.len() / 4).unwrap(), *delta));
                } else {
                    bytes.extend(word(0, *delta));
                    bytes.extend(u32::try_from(data.len() + 4).unwrap().to_ne_bytes());
                }
                bytes.extend(data);
                bytes.resize(bytes.len().next_multiple_of(4), 0);
                events.push((time_ns, data.clone()));
            }
            Written::Discarded { delta, bytes: length } => {
                time_ns = time_ns.wrapping_add(u64::from(*delta));
                bytes.extend(word(PADDING, *delta));
                bytes.extend((length + 4).to_ne_bytes());
                bytes.resize(bytes.len() + *length as usize, 0xaa);
            }
            Written::Extend(by) => {
                time_ns = time_ns.wrapping_add(*by);
                bytes.extend(word(TIME_EXTEND, u32::try_from(by & ((1 << 27) - 1)).unwrap()));
                bytes.extend(u32::try_from(by >> 27).unwrap().to_ne_bytes());
            }
            Written::Stamp(at) => {
                time_ns = time_ns >> 59 << 59 | at;
                bytes.extend(word(TIME_STAMP, u32::try_from(at & ((1 << 27) - 1)).unwrap()));
                bytes.extend(u32::try_from(at >> 27).unwrap().to_ne_bytes());
            }
        }
    }
    if is_padded {
        bytes.extend(word(PADDING, 0));
        bytes.extend([0xff; 12]);
    }
    let mut page = begin_ns.to_ne_bytes().to_vec();
    // Bits that say that events were lost before this page are not part of the length.
    page.extend((bytes.len() as u64 | 1 << 31 | 1 << 30).to_ne_bytes());
    page.extend(&bytes);
    // What is beyond the commit is of no meaning.
    page.extend([0x55; 40]);
    (page, events)
}

fn written() -> impl Strategy<Value = Written> {
    let delta = 0_u32..1 << 27;
    prop_oneof![
        4 => (delta.clone(), proptest::collection::vec(any::<u8>(), 0..200))
            .prop_map(|(delta, data)| Written::Data { delta, data }),
        1 => (1_u32..1 << 27, 0_u32..20).prop_map(|(delta, words)| Written::Discarded { delta, bytes: words * 4 }),
        1 => (0_u64..1 << 59).prop_map(Written::Extend),
        1 => (0_u64..1 << 59).prop_map(Written::Stamp),
    ]
}

#[test]
fn the_kernels_description_of_a_page_and_of_an_event_is_read() {
    let expected = PageLayout {
        timestamp: Field { offset: 0, size: 8 },
        commit: Field { offset: 8, size: 8 },
        data: 16,
    };
    assert_eq!(layout(), expected);
    assert_eq!(PageLayout::parse("\tfield: u64 timestamp;\toffset:0;\tsize:8;"), None);
    let text = "name: x\nID: 2107\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:char comm[TASK_COMM_LEN];\toffset:44;\tsize:16;\tsigned:0;\n\
        \tfield:__data_loc char[] cmd;\toffset:60;\tsize:4;\tsigned:0;\n\nprint fmt: \"field:x; %d\"";
    let format = Format::parse(text);
    assert_eq!(format.id, Some(2107));
    assert_eq!(format.field("common_type"), Some(Field { offset: 0, size: 2 }));
    assert_eq!(format.field("comm"), Some(Field { offset: 44, size: 16 }));
    assert_eq!(format.field("cmd"), Some(Field { offset: 60, size: 4 }));
    assert_eq!(format.field("x"), None);
}

#[test]
fn a_field_beyond_the_end_or_of_another_size_is_none() {
    let field = |offset, size| Field { offset, size };
    assert_eq!(field(2, 4).unsigned(&[0; 5]), None);
    assert_eq!(field(usize::MAX, 4).unsigned(&[0; 5]), None);
    assert_eq!(field(0, 3).unsigned(&[0; 5]), None);
    assert_eq!(field(0, 4).signed(&(-5_i32).to_ne_bytes()), Some(-5));
}

#[test]
fn an_event_that_ends_beyond_its_page_is_damage_at_its_place() {
    let (mut bytes, _) = page(5, &[Written::Data { delta: 1, data: vec![1; 8] }], false);
    bytes[16..20].copy_from_slice(&word(28, 1));
    let found: Vec<_> = layout().events(&bytes).collect();
    assert_eq!(found, [Err(Damaged { at: 16 })]);
    assert_eq!(layout().events(&bytes[..10]).collect::<Vec<_>>(), []);
    assert_eq!(layout().events(&bytes[..7]).collect::<Vec<_>>(), [Err(Damaged { at: 0 })]);
}

proptest! {
    #[test]
    fn what_the_kernel_writes_is_read(
        begin_ns in any::<u64>(),
        written in proptest::collection::vec(written(), 0..40),
        is_padded in any::<bool>(),
    ) {
        let (bytes, expected) = page(begin_ns, &written, is_padded);
        let found: Result<Vec<_>, _> = layout()
            .events(&bytes)
            .map(|event| event.map(|event| (event.time_ns, event.data.to_vec())))
            .collect();
        prop_assert_eq!(found.unwrap(), expected);
    }

    #[test]
    fn a_page_that_is_cut_gives_the_events_before_the_cut(
        written in proptest::collection::vec(written(), 0..20),
        cut in any::<prop::sample::Index>(),
    ) {
        let (bytes, expected) = page(7, &written, false);
        let bytes = &bytes[..cut.index(bytes.len() + 1)];
        let found: Vec<_> = layout()
            .events(bytes)
            .map_while(Result::ok)
            .map(|event| (event.time_ns, event.data.to_vec()))
            .collect();
        prop_assert!(expected.starts_with(&found));
    }

    #[test]
    fn no_bytes_and_no_layout_make_it_panic_or_run_on(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        offsets in proptest::array::uniform3(prop_oneof![0_usize..64, any::<usize>()]),
        sizes in proptest::array::uniform2(0_usize..10),
    ) {
        let layout = PageLayout {
            timestamp: Field { offset: offsets[0], size: sizes[0] },
            commit: Field { offset: offsets[1], size: sizes[1] },
            data: offsets[2],
        };
        prop_assert!(layout.used(&bytes) <= bytes.len());
        // An event has at least the 4 bytes of its header.
        prop_assert!(layout.events(&bytes).count() <= bytes.len() / 4 + 1);
    }

    #[test]
    fn no_text_makes_it_panic(text in "(ID:|field:|offset:|size:|;|\\[|\\*|[0-9]{1,25}|[ \t\n]|.){0,60}") {
        let format = Format::parse(&text);
        let _ = (format.id, PageLayout::parse(&text));
    }
}
