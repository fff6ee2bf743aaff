//! Fuzz targets of trace formats.

use std::io::Cursor;
use std::path::Path;

use weir_cache::Policy;
use weir_trace::filter::{Absorb, Pipeline, Rebase, ScaleAddress, ScaleTime, Step, Writes};
use weir_trace::stat::Statistics;
use weir_trace::{FORMATS, Input, Options, Reader, Unit, open_input};

/// Most requests that are read from a file.
const REQUESTS: usize = 200;

/// Opens bytes as any format. The first byte is the index of the format in `FORMATS`, or one more to detect it from the
/// content. The second says whether damage is skipped, and the parameters of frames. The rest is the file.
fn open(data: &[u8]) -> Option<Box<dyn Reader>> {
    let [format, flags, file @ ..] = data else { return None };
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
            options.set(key, value).ok()?;
        }
    }
    // A map of columns; the other bits vary how they are read.
    for (number, key) in
        ["time", "op", "offset", "size", "device", "object", "response"].into_iter().enumerate()
    {
        options.set(key, &(number + 1).to_string()).ok()?;
    }
    let input = Input::from_reader(Path::new("fuzzed"), Cursor::new(file.to_vec())).ok()?;
    open_input(input, &options).ok().map(|(_, reader)| reader)
}

/// Reads any bytes as any format.
pub(crate) fn any_format(data: &[u8]) {
    let Some(mut reader) = open(data) else { return };
    while let Ok(Some(request)) = reader.next_request() {
        reader.devices().name(request.device);
    }
}

/// The same through a cache and every scale, into statistics.
pub(crate) fn pipeline(data: &[u8]) {
    let Some(reader) = open(data) else { return };
    let policy = Policy::ALL[data.len() % Policy::ALL.len()];
    let factor = "1/3".parse();
    let Ok(factor) = factor else { return };
    let steps: Vec<Box<dyn Step>> = vec![
        Box::new(Absorb::new(policy, 1 << 20, Unit::PAGE, Writes::Absorb)),
        Box::new(ScaleAddress::fit(1 << 50, 1 << 30)),
        Box::new(ScaleTime::new(factor)),
        Box::new(Rebase::default()),
    ];
    let mut pipeline = Pipeline::new(Path::new("fuzzed"), reader, steps);
    let mut statistics = Statistics::new(Unit::PAGE);
    for _ in 0..REQUESTS {
        let Ok(Some(request)) = pipeline.next_request() else { break };
        statistics.add(&request);
    }
    statistics.finish(&pipeline);
}
