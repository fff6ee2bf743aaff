//! Generated traces: a small writer for each format, and the fields of a request that the format keeps.

mod binary;
mod text;

use weir_trace::{Input, Options, Reader, TraceOp, TraceRequest};

/// How a damaged file is accounted for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Covers {
    /// Every line that is not empty is a request or is counted.
    Lines,
    /// So are all records of so many bytes, a part of one included.
    Records(usize),
    /// Records depend on one another, or on a header.
    Other,
}

/// A format, and how to write it.
pub struct Codec {
    /// As in `weir_trace::FORMATS`.
    pub format: &'static str,
    pub options: &'static [(&'static str, &'static str)],
    /// Requests as they are read back, without their devices.
    pub keep: fn(&[TraceRequest]) -> Vec<TraceRequest>,
    /// The name of a device, by place of the request and number.
    pub device: fn(usize, u32) -> String,
    pub encode: fn(&[TraceRequest]) -> Vec<u8>,
    pub covers: Covers,
    /// Whether it is detected from its content.
    pub detected: bool,
}

/// All of them; a format may have several.
pub fn codecs() -> Vec<Codec> {
    text::codecs().into_iter().chain(binary::codecs()).collect()
}

impl Codec {
    pub fn options(&self, skip_bad: bool) -> Options {
        let mut options = Options { format: Some(self.format.to_owned()), skip_bad, ..Options::default() };
        for (key, value) in self.options {
            options.set(key, value).expect("an option of the test's own");
        }
        options
    }

    pub fn open(&self, bytes: Vec<u8>, skip_bad: bool) -> Result<Box<dyn Reader>, weir_trace::Error> {
        let input = Input::from_reader(std::path::Path::new("trace"), std::io::Cursor::new(bytes))?;
        Ok(weir_trace::open_input(input, &self.options(skip_bad))?.1)
    }
}

/// Times of every request in a unit.
pub fn in_units(requests: &[TraceRequest], unit_ns: i64) -> impl Iterator<Item = TraceRequest> + '_ {
    requests.iter().map(move |request| TraceRequest {
        arrival_ns: request.arrival_ns / unit_ns * unit_ns,
        response_ns: request.response_ns.map(|ns| ns / unit_ns * unit_ns),
        queueing_ns: request.queueing_ns.map(|ns| ns / unit_ns * unit_ns),
        device: 0,
        ..*request
    })
}

/// Requests that look like any, from a seed: times in ns that do not go back, sectors and their multiples.
pub fn requests(count: usize, seed: u64) -> Vec<TraceRequest> {
    let mut state = seed;
    let mut draw = move |below: u64| {
        // Knuth's MMIX generator; the upper bits are the good ones.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut arrival_ns = 0;
    (0..count)
        .map(|_| {
            arrival_ns += draw(1_000_000) as i64;
            let queueing_ns = draw(100_000) as i64;
            TraceRequest {
                arrival_ns,
                queueing_ns: Some(queueing_ns),
                response_ns: Some(queueing_ns + draw(20_000_000) as i64),
                device: draw(4) as u32,
                op: if draw(10) < 7 { TraceOp::Read } else { TraceOp::Write },
                offset_bytes: draw(1 << 31) * 512,
                size_bytes: (1 + draw(256)) * 512,
                object: Some(draw(1 << 24)),
                queue_length: Some(draw(64) as u32),
                pid: Some(draw(32_768) as u32),
            }
        })
        .collect()
}
