//! CONTRIBUTING adds a file system by one YAML file: the index finds the file.

use std::fs;
use std::path::Path;

#[path = "../src/write_index.rs"]
mod write_index;

#[test]
fn a_file_system_is_found_by_its_file_alone() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let page = fs::read_to_string(root.join("CONTRIBUTING.md")).unwrap();
    let testbeds = new_folder("weir-testbeds");
    for folder in write_index::FOLDERS {
        fs::create_dir_all(testbeds.join(folder)).unwrap();
    }
    let (_, example) = page.split_once("# testbeds/filesystems/f2fs.yml\n").expect("the example");
    fs::write(testbeds.join("filesystems/f2fs.yml"), example.split("```").next().unwrap()).unwrap();
    fs::write(testbeds.join("filesystems/notes.txt"), "").unwrap();
    let code = write_index::code(&testbeds).unwrap();
    let file = testbeds.join("filesystems/f2fs.yml");
    let entry = format!("FILESYSTEMS: Index = Index(&[\n    (\"f2fs\", include_str!({file:?})),\n]);");
    assert!(code.contains(&entry), "{code}");
    fs::remove_dir_all(testbeds).unwrap();
}

/// A new folder: this crate has no dependencies, so none that makes one.
fn new_folder(name: &str) -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
    fs::create_dir(&folder).unwrap();
    folder
}
