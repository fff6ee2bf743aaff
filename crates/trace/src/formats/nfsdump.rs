//! nfsdump: NFS calls and replies captured by Ellard and others at Harvard (FAST 2003), one a line.
//!
//! `SEC.USEC SRC DST T|U C3|R3|C2|R2 XID PROCNO PROC [STATUS] KEY VALUE ... con = XXX len = XXX`. Addresses are
//! anonymised, `IP.PORT` in hexadecimal; so are the transaction id (`XID`) and all values but times. `C` is a call, `R` a
//! reply. Version 2 says `offset` and `tcount` where version 3 says `off` and `count`.
//!
//! A call and the reply of the same client and transaction are one request, in the order of the calls; the first LIMIT
//! calls without a reply are kept in memory. A call without a captured reply has no response time and is counted; a reply
//! without a call is counted too. Times are since 1970. The device is the server, the process the client's address, the
//! object a 64-bit hash (FNV-1a) of the file handle, the offset one within the file.

use super::format::Format;
use super::options::Options;
use super::under_way::UnderWay;
use crate::error::Bad;
use crate::input::Input;
use crate::reader::Skipping;
use crate::request::{Devices, TraceOp, TraceRequest};
use crate::text::{Lines, decimal_ns, head_lines, hexadecimal, words};
use crate::{Error, Reader};

pub(super) const FORMAT: Format = Format {
    name: "nfsdump",
    about: "nfsdump (Harvard) NFS calls, with their replies; since 1970",
    detect,
    open,
};

const SECOND_NS: u64 = 1_000_000_000;
const DETECTED: usize = 16;
const UNANSWERED: &str = "calls without a reply (kept, without a response time)";
const UNASKED: &str = "replies without a call (left out)";

fn detect(head: &[u8]) -> bool {
    let parsed = || head_lines(head).take(DETECTED).map(Message::parse);
    parsed().filter(Result::is_ok).count() > parsed().filter(Result::is_err).count()
}

fn open(input: Input, options: &Options) -> Result<Box<dyn Reader>, Error> {
    Ok(Box::new(NfsDump {
        lines: Lines::new(input),
        under_way: UnderWay::new(),
        ended: false,
        devices: Devices::default(),
        skipping: Skipping::new(options.skip_bad),
    }))
}

/// The client's address and port, and its transaction.
type Key = (u32, u16, u32);

struct NfsDump {
    lines: Lines,
    under_way: UnderWay<Key>,
    ended: bool,
    devices: Devices,
    skipping: Skipping,
}

impl Reader for NfsDump {
    fn next_request(&mut self) -> Result<Option<TraceRequest>, Error> {
        loop {
            if let Some((request, answered)) = self.under_way.next(self.ended) {
                if !answered {
                    self.skipping.note(UNANSWERED);
                }
                return Ok(Some(request));
            }
            if self.ended {
                return Ok(None);
            }
            let message = match self.lines.next() {
                Ok(Some(line)) => Message::parse(line),
                Ok(None) => {
                    self.ended = true;
                    continue;
                }
                Err(error) => {
                    self.skipping.over_bad(error)?;
                    continue;
                }
            };
            match message {
                Ok(Message { is_call: true, key, server, request, .. }) => {
                    let device = self.devices.number(server);
                    self.under_way.begin(key, TraceRequest { device, ..request });
                }
                Ok(Message { key, request: reply, .. }) => match self.under_way.end(key) {
                    Some(call) => call.response_ns = reply.arrival_ns.checked_sub(call.arrival_ns),
                    None => self.skipping.note(UNASKED),
                },
                Err(bad) => self.skipping.over(self.lines.bad(bad))?,
            }
        }
    }

    fn devices(&self) -> &Devices {
        &self.devices
    }

    fn skipped(&self) -> &Skipping {
        &self.skipping
    }
}

/// A call or a reply.
struct Message<'a> {
    is_call: bool,
    key: Key,
    /// The server's address.
    server: &'a [u8],
    /// Of a reply only the time.
    request: TraceRequest,
}

impl<'a> Message<'a> {
    fn parse(line: &'a [u8]) -> Result<Self, Bad> {
        let mut fields = words(line);
        let mut need = |field, expected| fields.need(field, expected);
        let arrival_ns = decimal_ns("time", need("time", "seconds")?, SECOND_NS)?;
        let source = need("source", "IP.PORT")?;
        let destination = need("destination", "IP.PORT")?;
        match need("transport", "T or U")? {
            b"T" | b"U" => {}
            other => return Err(Bad::text("transport", other, "T or U")),
        }
        let is_call = match need("direction", "C or R, and 2 or 3")? {
            b"C2" | b"C3" => true,
            b"R2" | b"R3" => false,
            other => return Err(Bad::text("direction", other, "C or R, and 2 or 3")),
        };
        let transaction = need("xid", "a hexadecimal number")?;
        let transaction = u32::try_from(hexadecimal("xid", transaction)?)
            .map_err(|_| Bad::text("xid", transaction, "a hexadecimal number below 2^32"))?;
        hexadecimal("procedure number", need("procedure number", "a hexadecimal number")?)?;
        let procedure = need("procedure", "a name, such as read")?;
        let (client, server) = if is_call { (source, destination) } else { (destination, source) };
        let (client, port, _) = address("client", client)?;
        let mut request = TraceRequest { arrival_ns, pid: Some(client), ..TraceRequest::default() };
        if is_call {
            request.op = match procedure {
                b"read" => TraceOp::Read,
                b"write" => TraceOp::Write,
                b"commit" => TraceOp::Flush,
                _ => TraceOp::Other,
            };
            arguments(fields, &mut request)?;
        }
        let server = address("server", server)?.2;
        Ok(Message { is_call, key: (client, port, transaction), server, request })
    }
}

/// `IP.PORT`: both as numbers, and the text of the address.
fn address<'a>(field: &'static str, text: &'a [u8]) -> Result<(u32, u16, &'a [u8]), Bad> {
    let bad = || Bad::text(field, text, "IP.PORT in hexadecimal");
    let at = text.iter().position(|byte| *byte == b'.').ok_or_else(bad)?;
    let host = u32::try_from(hexadecimal(field, &text[..at])?).map_err(|_| bad())?;
    let port = u16::try_from(hexadecimal(field, &text[at + 1..])?).map_err(|_| bad())?;
    Ok((host, port, &text[..at]))
}

/// Reads the keys and values of a call. Names of files may contain anything, but data has none.
fn arguments<'a>(mut fields: impl Iterator<Item = &'a [u8]>, request: &mut TraceRequest) -> Result<(), Bad> {
    let has_data = matches!(request.op, TraceOp::Read | TraceOp::Write);
    let (mut offset, mut size) = (None, None);
    while let Some(key) = fields.next() {
        match key {
            b"fh" if request.object.is_none() => {
                request.object = Some(hash(fields.next().unwrap_or_default()));
            }
            b"off" | b"offset" if has_data => {
                offset = Some(hexadecimal("off", fields.next().unwrap_or_default())?);
            }
            b"count" | b"tcount" if has_data => {
                size = Some(hexadecimal("count", fields.next().unwrap_or_default())?);
            }
            _ => {}
        }
    }
    if has_data {
        request.offset_bytes = offset.ok_or_else(|| Bad::text("off", b"", "a hexadecimal number"))?;
        request.size_bytes = size.ok_or_else(|| Bad::text("count", b"", "a hexadecimal number"))?;
    }
    Ok(())
}

/// FNV-1a, 64 bits.
fn hash(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(text: &'static str, skip_bad: bool) -> Box<dyn Reader> {
        let input = Input::from_reader(std::path::Path::new("nfs"), text.as_bytes()).unwrap();
        open(input, &Options { skip_bad, ..Options::default() }).unwrap()
    }

    const TEXT: &str = "\
1006231504.000001 32.03fd 30.0801 T C3 1cf0d105 6 read fh cfbc off 6000 count 2000 con = XXX len = XXX
1006231504.000002 33.03fd 30.0801 U C2 1cf0d105 8 write fh cfbd begoff 0 offset 10 tcount bba con = XXX len = XXX
1006231504.000003 33.03fd 30.0801 U C3 2 3 lookup fh cfbe name \"off \" con = XXX len = XXX
1006231504.000500 30.0801 33.03fd U R2 1cf0d105 8 write OK ftype 1 con = XXX len = XXX
1006231504.000901 30.0801 32.03fd T R3 1cf0d105 6 read OK count 2000 eof 0 con = XXX len = XXX
1006231504.000902 30.0801 32.03fd T R3 7 6 read OK count 2000 eof 0 con = XXX len = XXX
";

    #[test]
    fn replies_answer_the_calls_of_their_clients() {
        let mut reader = reader(TEXT, false);
        let mut requests = Vec::new();
        while let Some(request) = reader.next_request().unwrap() {
            requests.push(request);
        }
        let [read, write, lookup] = requests[..] else { panic!("{requests:?}") };
        assert_eq!((read.arrival_ns, read.response_ns), (1_006_231_504_000_001_000, Some(900_000)));
        assert_eq!((read.op, read.offset_bytes, read.size_bytes), (TraceOp::Read, 0x6000, 0x2000));
        assert_eq!((read.pid, read.object), (Some(0x32), Some(hash(b"cfbc"))));
        assert_eq!((write.op, write.response_ns), (TraceOp::Write, Some(498_000)));
        assert_eq!((write.offset_bytes, write.size_bytes), (0x10, 0xbba));
        assert_eq!((lookup.op, lookup.response_ns, lookup.size_bytes), (TraceOp::Other, None, 0));
        assert_eq!(reader.skipped().noted(), [(UNASKED, 1), (UNANSWERED, 1)]);
        assert_eq!(reader.devices().name(read.device), "30");
    }

    #[test]
    fn the_hash_is_the_published_one() {
        assert_eq!(hash(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(hash(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let field = |line: &str| Message::parse(line.as_bytes()).err().map(|bad| bad.field);
        let line = "1.5 32.03fd 30.0801 T C3 1c 6 read fh cfbc off 0 count 2000";
        assert_eq!(field(line), None);
        for (from, to, wrong) in [
            ("32.03fd", "32", "client"),
            (" T ", " X ", "transport"),
            ("C3", "C4", "direction"),
            ("1c", "xx", "xid"),
            ("off 0 ", "", "off"),
            ("count 2000", "count", "count"),
        ] {
            assert_eq!(field(&line.replace(from, to)), Some(wrong));
        }
    }
}
