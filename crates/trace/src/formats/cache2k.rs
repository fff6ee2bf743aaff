//! Keys only, as big-endian u32: cache2k's web traces and the CloudPhysics traces of LIRS2.
//!
//! There are no times (all are 0), no sizes and no mark: the format is not detected.

use super::format::Format;
use crate::binary::{RecordFormat, u32_be};
use crate::error::Bad;
use crate::request::{Devices, TraceRequest};

pub(super) const FORMAT: Format = Format::of_records::<Keys, 4>(
    "cache2k",
    "keys of objects in 4 bytes, big endian (cache2k, LIRS2); no times; not detected",
    |_| false,
);

#[derive(Default)]
struct Keys;

impl RecordFormat<4> for Keys {
    fn parse(&mut self, record: &[u8; 4], devices: &mut Devices) -> Result<Option<TraceRequest>, Bad> {
        Ok(Some(TraceRequest {
            device: devices.number(b"0"),
            object: Some(u64::from(u32_be(record, 0))),
            ..TraceRequest::default()
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_big_endian() {
        let request = Keys.parse(&[0, 0, 1, 2], &mut Devices::default()).unwrap().unwrap();
        assert_eq!((request.object, request.size_bytes, request.arrival_ns), (Some(258), 0, 0));
    }
}
