//! Writes the index of `testbeds/`: one table for each of its folders, one entry for each YAML file.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs, io};

const FOLDERS: [&str; 4] = ["clusters", "daemons", "disks", "filesystems"];

fn main() -> io::Result<()> {
    let testbeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testbeds").canonicalize()?;
    let mut code = String::new();
    for folder in FOLDERS {
        let folder_path = testbeds.join(folder);
        // A file that is added or removed changes the folder; `include_str!` notices the change of a file.
        println!("cargo:rerun-if-changed={}", folder_path.display());
        let mut names = Vec::new();
        for entry in fs::read_dir(&folder_path)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            names.extend(name.strip_suffix(".yml").map(str::to_owned));
        }
        names.sort();
        let constant = folder.to_uppercase();
        let _ = writeln!(
            code,
            "/// `testbeds/{folder}/`, sorted by name.\npub const {constant}: Index = Index(&["
        );
        for name in names {
            let path = folder_path.join(format!("{name}.yml"));
            let _ = writeln!(code, "    ({name:?}, include_str!({path:?})),");
        }
        code.push_str("]);\n\n");
    }
    let out =
        env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("OUT_DIR is not set: run by cargo only"))?;
    fs::write(Path::new(&out).join("index.rs"), code)
}
