//! Block references of LIRS (Jiang and Zhang, SIGMETRICS 2002): one block number a line, `*` where its simulator prints
//! its state.
//!
//! There are no times (all are 0) and no sizes. Without a `*` in the beginning it cannot be distinguished from frame
//! sizes: name the format.

use super::format::Format;
use crate::error::Bad;
use crate::request::{Devices, TraceRequest};
use crate::text::{LineFormat, head_lines, whole};

pub(super) const FORMAT: Format = Format {
    detect,
    ..Format::of_lines::<Lirs>(
        "lirs",
        "block numbers, one a line (LIRS); no times; detected only by a line *",
    )
};

const BREAKPOINT: &[u8] = b"*";

fn detect(head: &[u8]) -> bool {
    let known = |line| Lirs.parse(line, &mut Devices::default()).is_ok();
    head_lines(head).all(known) && head_lines(head).any(|line| line == BREAKPOINT)
}

#[derive(Default)]
struct Lirs;

impl LineFormat for Lirs {
    fn parse(&mut self, line: &[u8], devices: &mut Devices) -> Result<Option<TraceRequest>, Bad> {
        if line == BREAKPOINT {
            return Ok(None);
        }
        Ok(Some(TraceRequest {
            device: devices.number(b"0"),
            object: Some(whole("block", line)?),
            ..TraceRequest::default()
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn breakpoints_are_no_references() {
        let parse = |line: &str| Lirs.parse(line.as_bytes(), &mut Devices::default());
        assert_eq!(parse("7075").unwrap().unwrap().object, Some(7075));
        assert_eq!(parse("*"), Ok(None));
        assert_eq!(parse("7075 1").unwrap_err().field, "block");
        assert!(detect(b"1\n2\n*\n") && !detect(b"1\n2\n"));
    }
}
