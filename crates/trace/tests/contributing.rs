//! CONTRIBUTING shows how a format is added with parts of one that was: they stay the same.

use std::path::Path;

const SECTION: &str = "\n## Add a trace format\n";

fn file(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    std::fs::read_to_string(root.join(path)).unwrap()
}

/// The fenced blocks of the section, without their indentation.
fn blocks() -> Vec<String> {
    let text = file("CONTRIBUTING.md");
    let (_, section) = text.split_once(SECTION).expect("a section on trace formats");
    let section = section.split("\n## ").next().unwrap();
    let mut blocks = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for line in section.lines() {
        let indent = line.len() - line.trim_start().len();
        match &mut open {
            None if line.trim_start().starts_with("```") => open = Some((indent, String::new())),
            Some((_, block)) if line.trim() == "```" => {
                blocks.push(std::mem::take(block));
                open = None;
            }
            Some((indent, block)) => {
                block.push_str(line.get(*indent..).unwrap_or(""));
                block.push('\n');
            }
            None => {}
        }
    }
    blocks
}

#[test]
fn what_is_shown_is_what_is_there() {
    let blocks = blocks();
    let mut shown = 0;
    for block in &blocks {
        let (first, rest) = block.split_once('\n').unwrap();
        let Some(path) = first.strip_prefix("// crates/trace/") else { continue };
        let (whole, there) = (path.split(' ').next().unwrap(), path.split(' ').nth(1));
        let text = file(&format!("crates/trace/{whole}"));
        match there {
            // A part of the file, with other indentation.
            Some(_) => {
                let squeeze = |text: &str| text.lines().map(str::trim).collect::<Vec<_>>().join("\n");
                assert!(squeeze(&text).contains(squeeze(rest).trim()), "{whole} has not:\n{rest}");
            }
            None => assert_eq!(text, rest, "{whole}"),
        }
        shown += 1;
    }
    assert_eq!(shown, 3, "the format, its lines in the registry, and its writer");
}
