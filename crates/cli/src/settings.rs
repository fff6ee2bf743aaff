//! What `weir queue` and `weir cgroup` share: desired settings as JSON on standard input, the record, the JSON answer.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use weir_host::Error;
use weir_specs::Document;

use crate::exit::bad_input;

/// Longest input, in bytes.
const MOST_BYTES: u64 = 1 << 20;

#[derive(clap::Args)]
pub struct Options {
    /// File that records the former settings
    #[arg(long, value_name = "FILE")]
    pub record: PathBuf,
    /// Report what would change, and change nothing
    #[arg(long)]
    pub check: bool,
    /// Add the settings before and after this call as `diff`
    #[arg(long)]
    pub diff: bool,
}

impl Options {
    /// Prints an answer, with the difference if it is asked for.
    pub fn print(&self, mut answer: Value, before: Value, after: Value) -> ExitCode {
        if self.diff {
            answer["diff"] = json!({"before": before, "after": after});
        }
        println!("{answer}");
        ExitCode::SUCCESS
    }
}

/// Reads desired settings from standard input.
pub fn input<T: DeserializeOwned>() -> anyhow::Result<T> {
    let mut text = String::new();
    std::io::stdin().take(MOST_BYTES).read_to_string(&mut text)?;
    Document::from_text(Path::new("stdin"), &text).and_then(|document| document.parse()).map_err(bad_input)
}

/// An error with its exit code: bad input where nothing was changed.
pub fn failed(error: Error) -> anyhow::Error {
    if error.is_refusal() { bad_input(error) } else { error.into() }
}
