//! Makes the index of `studies/` and `workloads/` when the crate is built.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Folders of the library, below the repository.
const FOLDERS: [&str; 2] = ["studies", "workloads"];

fn main() -> io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    let mut files = Vec::new();
    for folder in FOLDERS {
        list(&root.join(folder), &mut files)?;
    }
    files.sort();
    let mut code = String::from(
        "/// Every file: its path in the library, and its content.\npub const FILES: &[(&str, &[u8])] = &[\n",
    );
    let mut sum = Sum::default();
    for file in &files {
        let name = file.strip_prefix(&root).map_err(io::Error::other)?.to_string_lossy().into_owned();
        sum.add(name.as_bytes());
        sum.add(&fs::read(file)?);
        let _ = writeln!(code, "    ({name:?}, include_bytes!({file:?})),");
    }
    let _ = writeln!(
        code,
        "];\n\n/// Distinguishes the libraries of two versions.\npub const SUM: &str = \"{:016x}\";",
        sum.0
    );
    let out =
        env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("OUT_DIR is not set: run by cargo only"))?;
    fs::write(Path::new(&out).join("files.rs"), code)
}

/// The files in a folder and below it.
fn list(folder: &Path, into: &mut Vec<PathBuf>) -> io::Result<()> {
    // A file that is added or removed changes the folder; `include_bytes!` notices the change of a file, but not the sum.
    println!("cargo:rerun-if-changed={}", folder.display());
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            list(&path, into)?;
        } else if path.file_name().is_some_and(|name| !name.to_string_lossy().starts_with('.')) {
            println!("cargo:rerun-if-changed={}", path.display());
            into.push(path);
        }
    }
    Ok(())
}

/// FNV-1a of 64 bits (Fowler, Noll, Vo): a name, not a protection.
struct Sum(u64);

impl Default for Sum {
    fn default() -> Self {
        Sum(0xcbf2_9ce4_8422_2325)
    }
}

impl Sum {
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes.iter().chain(&(bytes.len() as u64).to_le_bytes()) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}
