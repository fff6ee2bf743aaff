//! The protocol, byte by byte; and that no bytes at all can do harm.

use std::io::{self, Cursor, Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use proptest::prelude::*;

use super::connection::serve;
use super::handshake::Admission;
use super::protocol::*;
use super::{Export, Exports};
use crate::engine::scheduled::Caller;
use crate::engine::scheduled::tests::Running;

const YAML: &str = "{name: disk, profile: \"null\", size_mib: 1, live: {policy: sfq, exports: [nbd]}}";

/// Keeps written data.
#[derive(Clone, Default)]
struct OwnedPayload(Arc<Mutex<Vec<u8>>>);

impl Write for OwnedPayload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// How many clients there may be.
struct Clients(AtomicUsize);

impl Admission for Clients {
    fn settle(&self) -> Result<(), String> {
        let enough = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        enough.map(drop).map_err(|_| "the limit is reached".to_owned())
    }

    fn activate(&self) {}
}

struct Disk {
    admission: Clients,
    running: Running,
    _folder: tempfile::TempDir,
}

impl Disk {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Disk {
            admission: Clients(AtomicUsize::new(usize::MAX)),
            running: Running::start(YAML, folder.path()),
            _folder: folder,
        }
    }

    fn exports(&self) -> Exports {
        let engine = Arc::clone(&self.running.engine);
        let export = |name: &str, first_byte, size_bytes| Export {
            name: name.to_owned(),
            about: "a test".to_owned(),
            engine: Arc::clone(&engine),
            first_byte,
            size_bytes,
            is_rotational: false,
        };
        Arc::new(vec![export("disk", 0, 1 << 20), export("half", 1 << 19, 1 << 19)])
    }

    /// The server's answer to these bytes, and the end of the connection.
    fn talk(&self, bytes: &[u8]) -> (Vec<u8>, io::Result<()>) {
        let kept = OwnedPayload::default();
        let ended =
            serve(Cursor::new(bytes), kept.clone(), &self.exports(), Caller::default(), &self.admission);
        let answer = kept.0.lock().unwrap().clone();
        (answer, ended)
    }
}

fn hello() -> Vec<u8> {
    u32::from(FIXED_NEWSTYLE | NO_ZEROES).to_be_bytes().to_vec()
}

fn option(number: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = OPTION_MAGIC.to_be_bytes().to_vec();
    bytes.extend(number.to_be_bytes());
    bytes.extend((data.len() as u32).to_be_bytes());
    bytes.extend(data);
    bytes
}

fn go(name: &str) -> Vec<u8> {
    let mut data = (name.len() as u32).to_be_bytes().to_vec();
    data.extend(name.as_bytes());
    data.extend(0u16.to_be_bytes());
    option(OPT_GO, &data)
}

fn request(command: u16, flags: u16, cookie: u64, offset: u64, size: u32) -> Vec<u8> {
    let mut bytes = REQUEST_MAGIC.to_be_bytes().to_vec();
    bytes.extend(flags.to_be_bytes());
    bytes.extend(command.to_be_bytes());
    bytes.extend(cookie.to_be_bytes());
    bytes.extend(offset.to_be_bytes());
    bytes.extend(size.to_be_bytes());
    bytes
}

/// The simple replies at the end of an answer: cookie and error, each followed by as many bytes as `data` states.
fn replies(answer: &[u8], data: impl Fn(u64) -> usize) -> Vec<(u64, u32, Vec<u8>)> {
    let start = answer.windows(4).position(|bytes| bytes == REPLY_MAGIC.to_be_bytes());
    let mut rest = &answer[start.unwrap_or(answer.len())..];
    let mut all = Vec::new();
    while rest.len() >= 16 {
        let mut head = [0; 16];
        rest.read_exact(&mut head).unwrap();
        let mut fields = Fields(&head);
        assert_eq!(fields.u32(), Some(REPLY_MAGIC));
        let (error, cookie) = (fields.u32().unwrap(), fields.u64().unwrap());
        let (bytes, behind) = rest.split_at(if error == 0 { data(cookie) } else { 0 });
        all.push((cookie, error, bytes.to_vec()));
        rest = behind;
    }
    assert!(rest.is_empty());
    all
}

#[test]
fn an_export_is_written_and_read() {
    let disk = Disk::new();
    let mut bytes = [hello(), go("half")].concat();
    bytes.extend(request(1, CMD_FLAG_FUA, 1, 4096, 512));
    bytes.extend([7; 512]);
    bytes.extend(request(3, 0, 2, 0, 0));
    bytes.extend(request(0, 0, 3, 4096, 512));
    bytes.extend(request(2, 0, 4, 0, 0));
    let (answer, ended) = disk.talk(&bytes);
    ended.unwrap();
    let mut greeting = Fields(&answer);
    assert_eq!((greeting.u64(), greeting.u64()), (Some(MAGIC), Some(OPTION_MAGIC)));
    assert_eq!(greeting.u16(), Some(FIXED_NEWSTYLE | NO_ZEROES));
    assert_eq!(
        (greeting.u64(), greeting.u32(), greeting.u32()),
        (Some(OPTION_REPLY_MAGIC), Some(OPT_GO), Some(REP_INFO))
    );
    assert_eq!(
        (greeting.u32(), greeting.u16(), greeting.u64()),
        (Some(12), Some(INFO_EXPORT), Some(1 << 19))
    );
    let all = replies(&answer, |cookie| if cookie == 3 { 512 } else { 0 });
    let heads: Vec<(u64, u32)> = all.iter().map(|(cookie, error, _)| (*cookie, *error)).collect();
    assert_eq!(heads, [(1, 0), (2, 0), (3, 0)]);
    assert_eq!(all[2].2, [7; 512]);
    // Outstanding requests have no order, so dependent requests wait for each other.
    disk.talk(&[hello(), go("half"), request(6, 0, 4, 4096, 256)].concat()).1.unwrap();
    let (answer, _) = disk.talk(&[hello(), go("half"), request(0, 0, 5, 4096, 512)].concat());
    assert_eq!(replies(&answer, |_| 512)[0].2, [vec![0; 256], vec![7; 256]].concat());
    // It is the second half of the whole.
    let (answer, _) = disk.talk(&[hello(), go(""), request(0, 0, 9, (1 << 19) + 4096 + 256, 4)].concat());
    assert_eq!(replies(&answer, |_| 4)[0].2, [7; 4]);
}

#[test]
fn what_is_out_of_range_gets_an_error() {
    let disk = Disk::new();
    let asks: [(u16, u64, u32, u32); 8] = [
        (0, 1 << 20, 512, EINVAL),
        (0, u64::MAX, 512, EINVAL),
        (0, 0, MOST_REQUEST_BYTES + 1, EOVERFLOW),
        (4, (1 << 20) - 1, 2, EINVAL),
        (6, 0, u32::MAX, ENOSPC),
        (0, 0, 0, EINVAL),
        (77, 0, 0, EINVAL),
        (5, 0, 512, EINVAL),
    ];
    let mut bytes = [hello(), go("disk")].concat();
    for (cookie, (command, offset, size, _)) in (0..).zip(asks) {
        bytes.extend(request(command, 0, cookie, offset, size));
    }
    bytes.extend(request(1, 0, 8, 1 << 20, 512));
    bytes.extend([1; 512]);
    let (answer, ended) = disk.talk(&bytes);
    ended.unwrap();
    let found: Vec<(u64, u32)> =
        replies(&answer, |_| 0).iter().map(|(cookie, error, _)| (*cookie, *error)).collect();
    let mut wanted: Vec<(u64, u32)> = (0..).zip(asks.map(|ask| ask.3)).collect();
    wanted.push((8, ENOSPC));
    assert_eq!(found, wanted);
    // A client that announces more than may be sent is cut off.
    let (_, ended) = disk.talk(&[hello(), go("disk"), request(1, 0, 1, 0, u32::MAX)].concat());
    assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::InvalidData);
}

#[test]
fn options_are_answered() {
    let disk = Disk::new();
    let mut bytes = hello();
    bytes.extend(option(OPT_LIST, &[]));
    bytes.extend(option(OPT_LIST, &[1]));
    bytes.extend(option(8, &[]));
    bytes.extend(go("nobody"));
    bytes.extend(option(OPT_INFO, &[0, 0]));
    bytes.extend(option(77, &vec![0; MOST_OPTION_BYTES as usize + 1]));
    bytes.extend(option(OPT_ABORT, &[]));
    let (answer, ended) = disk.talk(&bytes);
    ended.unwrap();
    let mut fields = Fields(&answer[18..]);
    let mut kinds = Vec::new();
    while fields.u64() == Some(OPTION_REPLY_MAGIC) {
        let (_, kind, length) = (fields.u32().unwrap(), fields.u32().unwrap(), fields.u32().unwrap());
        fields.bytes(length as usize).unwrap();
        kinds.push(kind);
    }
    let wanted = [
        REP_SERVER,
        REP_SERVER,
        REP_ACK,
        REP_ERR_INVALID,
        REP_ERR_UNSUP,
        REP_ERR_UNKNOWN,
        REP_ERR_INVALID,
        REP_ERR_TOO_BIG,
        REP_ACK,
    ];
    assert_eq!(kinds, wanted);
}

#[test]
fn a_client_above_the_limit_is_told_so_and_cut_off() {
    let disk = Disk { admission: Clients(AtomicUsize::new(1)), ..Disk::new() };
    assert_eq!(
        replies(&disk.talk(&[hello(), go("disk"), request(0, 0, 1, 0, 512)].concat()).0, |_| 512)[0].1,
        0
    );
    let (answer, ended) = disk.talk(&[hello(), go("disk"), request(0, 0, 1, 0, 512)].concat());
    ended.unwrap();
    let mut fields = Fields(&answer[18..]);
    assert_eq!(
        (fields.u64(), fields.u32(), fields.u32(), fields.u32()),
        (Some(OPTION_REPLY_MAGIC), Some(OPT_GO), Some(REP_ERR_POLICY), Some(20))
    );
    assert_eq!(fields.0, b"the limit is reached");
    // The old way of choosing an export has no answer but the end.
    let (answer, ended) = disk.talk(&[hello(), option(OPT_EXPORT_NAME, b"disk")].concat());
    ended.unwrap();
    assert_eq!(answer.len(), 18);
}

/// Bytes that look like the protocol for a while.
fn near_protocol() -> impl Strategy<Value = Vec<u8>> {
    let any_option =
        (0..12u32, prop::collection::vec(any::<u8>(), 0..40)).prop_map(|(n, data)| option(n, &data));
    let any_request =
        (0..9u16, any::<u16>(), any::<u64>(), prop_oneof![0..2_000_000u64, any::<u64>()], 0..70_000u32)
            .prop_map(|(command, flags, cookie, offset, size)| request(command, flags, cookie, offset, size));
    let noise = prop::collection::vec(any::<u8>(), 0..600);
    let piece = prop_oneof![any_option, Just(go("disk")), Just(go("half")), any_request, noise];
    (any::<bool>(), prop::collection::vec(piece, 0..20)).prop_map(|(chooses, pieces)| {
        let start = if chooses { [hello(), go("disk")].concat() } else { hello() };
        [start, pieces.concat()].concat()
    })
}

#[test]
fn any_bytes_end_in_an_answer_or_the_end_of_the_connection() {
    let disk = Disk::new();
    let runner_config = ProptestConfig { cases: 300, ..ProptestConfig::default() };
    let mut runner = proptest::test_runner::TestRunner::new(runner_config);
    let strategy = prop_oneof![near_protocol(), prop::collection::vec(any::<u8>(), 0..200)];
    runner
        .run(&strategy, |bytes| {
            let (answer, _) = disk.talk(&bytes);
            prop_assert!(answer.starts_with(&MAGIC.to_be_bytes()));
            Ok(())
        })
        .unwrap();
    // It still serves.
    let (answer, _) = disk.talk(&[hello(), go("disk"), request(0, 0, 1, 0, 512)].concat());
    assert_eq!(replies(&answer, |_| 512)[0].1, 0);
}
