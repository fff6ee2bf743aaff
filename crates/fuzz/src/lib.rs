//! Fuzz targets of weir's parsers: each must return from any bytes without a panic, in bounded memory and time.
//!
//! `src/main.rs` runs one of them in libFuzzer. `tests/corpus.rs` runs all on the corpus and on earlier findings.

mod formats;
mod records;
mod servers;
mod specs;
mod texts;

/// A parser, or several of one kind.
pub struct Target {
    /// Its name, and that of its folder in `corpus/` and in `regressions/`.
    pub name: &'static str,
    /// Parses the bytes and checks the result.
    pub run: fn(&[u8]),
    /// Longest input, in bytes. Longer ones are slower and find little.
    pub most_bytes: usize,
}

/// All of them.
pub const TARGETS: &[Target] = &[
    Target { name: "any-format", run: formats::any_format, most_bytes: 4096 },
    Target { name: "trace-pipeline", run: formats::pipeline, most_bytes: 4096 },
    Target { name: "study", run: specs::study, most_bytes: 4096 },
    Target { name: "workload", run: specs::workload, most_bytes: 4096 },
    Target { name: "specs", run: specs::others, most_bytes: 4096 },
    Target { name: "parquet", run: records::parquet, most_bytes: 16384 },
    Target { name: "json", run: records::json, most_bytes: 8192 },
    Target { name: "fio-log", run: records::fio_log, most_bytes: 2048 },
    Target { name: "block-events", run: records::block_events, most_bytes: 4096 },
    Target { name: "messages", run: servers::messages, most_bytes: 1024 },
    Target { name: "http", run: servers::http, most_bytes: 2048 },
    Target { name: "database", run: servers::database, most_bytes: 1024 },
    Target { name: "texts", run: texts::texts, most_bytes: 1024 },
];

/// The target of a name.
pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

/// The first byte chooses one of `count`; the rest is its input.
fn choice(data: &[u8], count: u8) -> Option<(u8, &[u8])> {
    let (first, rest) = data.split_first()?;
    Some((first % count, rest))
}
