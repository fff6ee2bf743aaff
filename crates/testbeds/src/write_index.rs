//! Writes the index of `testbeds/` as Rust: one table for each of its folders, one entry for each YAML file.

use std::fmt::Write as _;
use std::path::Path;
use std::{fs, io};

/// Folders of `testbeds/`; each is a constant of the crate.
pub const FOLDERS: [&str; 4] = ["clusters", "daemons", "disks", "filesystems"];

/// The code of the index.
pub fn code(testbeds: &Path) -> io::Result<String> {
    let mut code = String::new();
    for folder in FOLDERS {
        let path = testbeds.join(folder);
        let mut names = Vec::new();
        for entry in fs::read_dir(&path)? {
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
            let file = path.join(format!("{name}.yml"));
            let _ = writeln!(code, "    ({name:?}, include_str!({file:?})),");
        }
        code.push_str("]);\n\n");
    }
    Ok(code)
}
