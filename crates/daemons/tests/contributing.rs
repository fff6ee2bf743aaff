//! CONTRIBUTING adds f2fs, and shows how MooseFS was added: the example is carried out, and what is shown is what is there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use weir_daemons::Daemon;
use weir_daemons::cluster::Description;
use weir_specs::Document;
use weir_study::FileSystem;

const SECTION: &str = "\n## Add a file system\n";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What the first line of each fenced block of the section names, and the block's other lines without their indentation.
fn blocks() -> Vec<(String, String)> {
    let text = fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    let (_, section) = text.split_once(SECTION).expect("a section on file systems");
    let section = section.split("\n## ").next().unwrap();
    let mut blocks = Vec::new();
    let mut open: Option<(usize, Vec<&str>)> = None;
    for line in section.lines() {
        match &mut open {
            None if line.trim_start().starts_with("```") => {
                open = Some((line.len() - line.trim_start().len(), Vec::new()));
            }
            Some((_, block)) if line.trim() == "```" => {
                let first = block.first().and_then(|first| first.strip_prefix("# ")).unwrap_or_default();
                blocks.push((first.to_owned(), block.get(1..).unwrap_or_default().join("\n") + "\n"));
                open = None;
            }
            Some((indent, block)) => block.push(line.get(*indent..).unwrap_or_default()),
            None => {}
        }
    }
    blocks
}

#[test]
fn the_local_file_system_of_the_example_can_be_made() {
    let (path, text) = blocks().into_iter().find(|(first, _)| first.ends_with("/f2fs.yml")).unwrap();
    assert!(!root().join(&path).exists(), "{path} is there: take another example");
    let found: FileSystem = Document::from_text(path.as_ref(), &text).and_then(|read| read.parse()).unwrap();
    assert_eq!(format!("testbeds/filesystems/{}.yml", found.name), path);
    assert!(found.on_device && !found.is_remote() && found.is_of_type("f2fs"));
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("image");
    let file = fs::File::create(&image).unwrap();
    file.set_len(found.smallest_mib << 20).unwrap();
    let words = found.make_command();
    let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
    let done = Command::new(&words[0]).args(&words[1..]).arg(&image).env("PATH", path).output();
    let done = match done {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            eprintln!("skipped: {} is not installed", words[0]);
            return;
        }
        done => done.unwrap(),
    };
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    // The superblock's magic number, at 1 KiB.
    assert_eq!(fs::read(&image).unwrap()[1024..1028], 0xF2F5_2010_u32.to_le_bytes());
}

#[test]
fn what_is_shown_of_the_network_file_system_is_what_is_there() {
    let shown: Vec<_> = blocks().into_iter().filter(|(first, _)| first.contains("moosefs")).collect();
    for (first, block) in &shown {
        let (path, is_part) = match first.strip_suffix(" has") {
            Some(path) => (path, true),
            None => (first.as_str(), false),
        };
        let there = fs::read_to_string(root().join(path)).unwrap();
        if is_part {
            assert!(there.contains(block.trim_end()), "{path} does not have:\n{block}");
        } else {
            assert_eq!(&there, block, "{path}");
        }
    }
    let paths: Vec<&str> = shown.iter().map(|(first, _)| first.trim_end_matches(" has")).collect();
    assert_eq!(
        paths,
        [
            "testbeds/filesystems/moosefs.yml",
            "testbeds/clusters/moosefs.yml",
            "testbeds/daemons/moosefs-chunkserver.yml",
            "ansible/roles/fs_moosefs/tasks/main.yml",
        ]
    );
}

/// What a network file system needs is found from its file alone: cluster, daemons and role.
#[test]
fn every_network_file_system_has_its_cluster_daemons_and_role() {
    let mut count = 0;
    for filesystem in FileSystem::names().filter_map(FileSystem::load) {
        let Some(network) = &filesystem.network else { continue };
        let cluster = Description::load(&network.cluster).unwrap_or_else(|| panic!("{}", network.cluster));
        for member in &cluster.daemons {
            assert!(Daemon::load(&member.daemon).is_some(), "{}: {}", cluster.name, member.daemon);
        }
        let role = root().join(format!("ansible/roles/fs_{}/tasks/main.yml", cluster.name));
        assert!(role.is_file(), "{} has no role {}", filesystem.name, role.display());
        count += 1;
    }
    assert!(count > 0);
}
