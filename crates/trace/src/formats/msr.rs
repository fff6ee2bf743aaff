//! Block traces of Microsoft Research Cambridge (Narayanan, Donnelly and Rowstron, FAST 2008).
//!
//! `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`, no header: a Windows file time (units of 100 ns since
//! 1601, made into ns since 1970), `Read` or `Write`, bytes, bytes, units of 100 ns. A device is `HOST_DISK`, as the
//! files are called.

use super::format::Format;
use crate::error::Bad;
use crate::request::{Devices, TraceOp, TraceRequest};
use crate::text::{LineFormat, split, whole, whole_ns};

pub(super) const FORMAT: Format =
    Format::of_lines::<Msr>("msr", "Microsoft Research Cambridge block traces; since 1970");

/// File time of the beginning of 1970.
const UNIX_EPOCH_TICKS: i128 = 116_444_736_000_000_000;
const TICK_NS: i64 = 100;

/// Ns since 1970 of a Windows file time.
pub(super) fn filetime_ns(field: &'static str, ticks: u64) -> Result<i64, Bad> {
    i64::try_from((i128::from(ticks) - UNIX_EPOCH_TICKS) * i128::from(TICK_NS))
        .map_err(|_| Bad::number(field, ticks, "a Windows file time of the years 1678 to 2262"))
}

#[derive(Default)]
struct Msr;

/// Longest device name that is built without an allocation.
const SHORT: usize = 64;

/// The number of `HOST_DISK`.
fn device(host: &[u8], disk: &[u8], devices: &mut Devices) -> u32 {
    let length = host.len() + 1 + disk.len();
    let mut name = [b'_'; SHORT];
    if length > SHORT {
        return devices.number(&[host, disk].join(&b'_'));
    }
    name[..host.len()].copy_from_slice(host);
    name[host.len() + 1..length].copy_from_slice(disk);
    devices.number(&name[..length])
}

impl LineFormat for Msr {
    fn parse(&mut self, line: &[u8], devices: &mut Devices) -> Result<Option<TraceRequest>, Bad> {
        let mut fields = split(line, b',');
        let mut need = |field, expected| fields.need(field, expected);
        let ticks = whole("Timestamp", need("Timestamp", "a Windows file time")?)?;
        let host = need("Hostname", "a name")?;
        let disk = need("DiskNumber", "a whole number")?;
        whole("DiskNumber", disk)?;
        let op = match need("Type", "Read or Write")? {
            b"Read" => TraceOp::Read,
            b"Write" => TraceOp::Write,
            other => return Err(Bad::text("Type", other, "Read or Write")),
        };
        let offset_bytes = whole("Offset", need("Offset", "bytes")?)?;
        let size_bytes = whole("Size", need("Size", "bytes")?)?;
        let response_ns = whole_ns("ResponseTime", need("ResponseTime", "units of 100 ns")?, TICK_NS)?;
        fields.end()?;
        Ok(Some(TraceRequest {
            arrival_ns: filetime_ns("Timestamp", ticks)?,
            response_ns: Some(response_ns),
            device: device(host, disk, devices),
            op,
            offset_bytes,
            size_bytes,
            ..TraceRequest::default()
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse_line;

    #[test]
    fn a_line_of_a_media_server() {
        let mut devices = Devices::default();
        let line = b"128166372003061629,mds,1,Read,3154132992,4096,41286";
        let request = Msr.parse(line, &mut devices).unwrap().unwrap();
        // 2007-02-22 17:00:00.3061629 UTC.
        assert_eq!(request.arrival_ns, 1_172_163_600_306_162_900);
        assert_eq!((request.offset_bytes, request.size_bytes), (3_154_132_992, 4096));
        assert_eq!((request.op, request.response_ns), (TraceOp::Read, Some(4_128_600)));
        assert_eq!(devices.name(request.device), "mds_1");
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, field) in [
            ("128166372003061629,mds,1,read,3154132992,4096,41286", "Type"),
            ("128166372003061629,mds,x,Read,3154132992,4096,41286", "DiskNumber"),
            ("18446744073709551615,mds,1,Read,3154132992,4096,41286", "Timestamp"),
            ("128166372003061629,mds,1,Read,3154132992,4096", "ResponseTime"),
            ("128166372003061629,mds,1,Read,3154132992,4096,4,1", "the end of the line"),
        ] {
            assert_eq!(parse_line::<Msr>(line).unwrap_err().field, field);
        }
    }
}
