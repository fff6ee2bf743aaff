//! Makes the index of `testbeds/` when the crate is built.

use std::path::Path;
use std::{env, fs, io};

#[path = "src/write_index.rs"]
mod write_index;

fn main() -> io::Result<()> {
    let testbeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testbeds").canonicalize()?;
    for folder in write_index::FOLDERS {
        // A file that is added or removed changes the folder; `include_str!` notices the change of a file.
        println!("cargo:rerun-if-changed={}", testbeds.join(folder).display());
    }
    let out =
        env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("OUT_DIR is not set: run by cargo only"))?;
    fs::write(Path::new(&out).join("index.rs"), write_index::code(&testbeds)?)
}
