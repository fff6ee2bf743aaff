//! Reads a trace and prints the time that reading took: `count_requests FILE [FORMAT]`. For comparison with other
//! readers.

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use weir_trace::{Error, Options, open};

fn count(file: &str, format: Option<String>) -> Result<(u64, u64), Error> {
    let options = Options { format, ..Options::default() };
    let (_, mut reader) = open(Path::new(file), &options)?;
    let (mut requests, mut bytes) = (0, 0_u64);
    while let Some(request) = reader.next_request()? {
        requests += 1;
        bytes = bytes.wrapping_add(request.size_bytes);
    }
    Ok((requests, bytes))
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(file) = arguments.next() else {
        eprintln!("count_requests FILE [FORMAT]");
        return ExitCode::from(2);
    };
    let start = Instant::now();
    match count(&file, arguments.next()) {
        Ok((requests, bytes)) => {
            println!("{requests} {bytes} {}", start.elapsed().as_nanos());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(1)
        }
    }
}
