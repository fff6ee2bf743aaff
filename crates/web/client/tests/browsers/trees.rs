//! Tests of document trees: written completely or not at all, recognised, compared byte by byte.

use std::fs;
use std::path::Path;

use crate::common::{content, documents};
use weir_web_client::tree::{LaidOut, check, lay_out};
use weir_web_client::{Documents, Folders};
use weir_workload::{Distribution, FileSet, Files, Popularity};

fn thousands(count: u32) -> Documents {
    let size = Distribution::Uniform { min_bytes: 4096, max_bytes: 12_288 };
    let files = Files { count, size, stratified: false, popularity: Popularity::Uniform };
    Documents::new(FileSet::new(&files, "site", 2), "site", 2, Folders::Thousands)
}

fn entries(folder: &Path) -> usize {
    fs::read_dir(folder).map_or(0, Iterator::count)
}

#[test]
fn a_tree_is_laid_out_once_and_is_right() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("www");
    let documents = thousands(1100);
    let mut written = 0;
    assert_eq!(lay_out(&documents, &root, |bytes| written += bytes).unwrap(), LaidOut::Written);
    assert_eq!(written, documents.total_bytes());
    assert_eq!(fs::read(root.join("001/001050.dat")).unwrap(), content(&documents, 1050));
    let checked = check(&documents, &root).unwrap();
    assert_eq!((checked.right, checked.wrong, checked.bytes), (1100, 0, written));
    assert_eq!(lay_out(&documents, &root, |_| panic!("writes again")).unwrap(), LaidOut::There);
    let other = Documents::new(FileSet::new(&files(3), "site", 3), "site", 3, Folders::One);
    let error = lay_out(&other, &root, |_| {}).unwrap_err().to_string();
    assert!(error.contains("1100 documents of class site and seed 2"), "{error}");
}

fn files(count: u32) -> Files {
    let size = Distribution::Fixed { bytes: 4096 };
    Files { count, size, stratified: false, popularity: Popularity::Uniform }
}

#[test]
fn damage_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let documents = documents(10, 8192);
    lay_out(&documents, root, |_| {}).unwrap();
    let mut bytes = content(&documents, 3);
    bytes[8000] ^= 4;
    fs::write(root.join("000003.dat"), bytes).unwrap();
    fs::write(root.join("000004.dat"), "short").unwrap();
    fs::remove_file(root.join("000005.dat")).unwrap();
    fs::write(root.join("stray.html"), "x").unwrap();
    let checked = check(&documents, root).unwrap();
    assert_eq!((checked.right, checked.wrong), (7, 4), "{checked:?}");
    for (named, says) in
        checked.named.iter().zip(["wrong bytes", "5 bytes, expected 8192", "No such file", "does not belong"])
    {
        assert!(named.contains(says), "{named}");
    }
    let error = lay_out(&documents, root, |_| {}).unwrap_err().to_string();
    assert!(error.contains("000004.dat: has 5 bytes"), "{error}");
}

#[test]
fn a_folder_that_holds_something_else_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("thesis.txt"), "years of work").unwrap();
    let error = lay_out(&documents(3, 4096), folder.path(), |_| {}).unwrap_err().to_string();
    assert!(error.contains("holds thesis.txt"), "{error}");
    assert_eq!(entries(folder.path()), 1);
    fs::remove_file(folder.path().join("thesis.txt")).unwrap();
    fs::create_dir(folder.path().join("lost+found")).unwrap();
    lay_out(&documents(3, 4096), folder.path(), |_| {}).unwrap();
    assert_eq!(check(&documents(3, 4096), folder.path()).unwrap().wrong, 0);
}

#[test]
fn what_fails_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("www");
    // A folder has the path of a document.
    fs::create_dir(&root).unwrap();
    let documents = documents(5, 4096);
    let mut count = 0;
    let stumble = root.join("000003.dat");
    let result = lay_out(&documents, &root, |_| {
        count += 1;
        if count == 3 {
            fs::create_dir(&stumble).unwrap();
        }
    });
    assert!(result.unwrap_err().to_string().contains("000003.dat"));
    fs::remove_dir(&stumble).unwrap();
    // The mark remains where something could not be removed; with it the tree is laid out anew.
    assert!(entries(&root) <= 1, "{}", entries(&root));
    lay_out(&documents, &root, |_| {}).unwrap();
    assert_eq!(check(&documents, &root).unwrap().right, 5);

    let huge = Documents::new(FileSet::new(&huge(), "site", 1), "site", 1, Folders::Thousands);
    let other = folder.path().join("huge");
    let error = lay_out(&huge, &other, |_| {}).unwrap_err().to_string();
    assert!(error.contains("bytes free") && error.contains(&(1_u64 << 52).to_string()), "{error}");
    assert!(!other.exists());
}

/// 4 PB.
fn huge() -> Files {
    let size = Distribution::Fixed { bytes: 1 << 52 };
    Files { count: 1, size, stratified: false, popularity: Popularity::Uniform }
}

#[test]
fn a_tree_left_half_is_said_to_be_and_is_written_anew() {
    let folder = tempfile::tempdir().unwrap();
    let documents = documents(4, 4096);
    lay_out(&documents, folder.path(), |_| {}).unwrap();
    let mark = folder.path().join("weir-documents.json");
    let text = fs::read_to_string(&mark).unwrap();
    fs::write(&mark, text.replace("true", "false")).unwrap();
    fs::write(folder.path().join("000001.dat"), "ha").unwrap();
    let checked = check(&documents, folder.path()).unwrap();
    assert!(checked.named[0].contains("incomplete tree"), "{checked:?}");
    assert_eq!(lay_out(&documents, folder.path(), |_| {}).unwrap(), LaidOut::Written);
    assert_eq!(check(&documents, folder.path()).unwrap().wrong, 0);
}
