//! Reads any bytes as any format: it has to end, without a panic and in bounded memory.
//!
//! The first byte is the format's number in `FORMATS`, or one beyond for telling it from the content; the second says
//! whether damage is passed over, and what has to be said of frames. The rest is the file.

#![no_main]

use std::io::Cursor;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use weir_traces::{FORMATS, Input, Options, open_input};

fuzz_target!(|data: &[u8]| {
    let [format, flags, file @ ..] = data else { return };
    let format = FORMATS.get(usize::from(*format) % (FORMATS.len() + 1)).map(|format| format.name.to_owned());
    let mut options = Options { format, skip_bad: flags & 1 != 0, ..Options::default() };
    for (bit, key, value) in [
        (2, "unit", "bits"),
        (4, "rate_hz", "30000/1001"),
        (8, "order", "coding"),
        (16, "delimiter", "space"),
        (32, "header", "no"),
        (64, "time_unit", "filetime"),
    ] {
        if flags & bit != 0 {
            options.set(key, value).unwrap();
        }
    }
    // A map of columns; the other bits vary how they are read.
    for (number, key) in ["time", "op", "offset", "size", "device", "object", "response"].into_iter().enumerate() {
        options.set(key, &(number + 1).to_string()).unwrap();
    }
    let Ok(input) = Input::from_reader(Path::new("fuzz"), Cursor::new(file.to_vec())) else { return };
    let Ok((_, mut reader)) = open_input(input, &options) else { return };
    while let Ok(Some(request)) = reader.next_request() {
        reader.devices().name(request.device);
    }
});
