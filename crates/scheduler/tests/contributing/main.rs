//! The documentation adds a policy by example: here it is compiled, to the letter, and serves a queue.

mod lcfs;

use std::collections::BTreeMap;
use std::path::Path;

use weir_scheduler::{Decision, KernelScheduler, LinearModel, Op, Policy, Request, Settings};

// The modules that the file imports in its crate.
mod entry {
    pub use weir_scheduler::Entry;
}
mod model {
    pub use weir_scheduler::ServiceModel;
}
mod policy {
    pub use weir_scheduler::{Decision, Policy};
}
mod request {
    pub use weir_scheduler::Request;
}
mod settings {
    pub use weir_scheduler::Settings;
}

const DEVICE: LinearModel = LinearModel {
    capacity_bytes: 1 << 30,
    cylinder_bytes: 1 << 20,
    seek_ns: 1000,
    seek_ns_per_cylinder: 10,
    revolution_ns: 10_000,
    transfer_ns_per_byte: 1,
    head_bytes: 0,
};

fn policy(patience_ms: &str) -> Result<Box<dyn Policy>, String> {
    let settings = BTreeMap::from([("patience_ms".to_owned(), patience_ms.to_owned())]);
    (lcfs::ENTRY.build)(&[], &Settings(settings)).map_err(|error| error.to_string())
}

fn read(tag: u64, arrived_ns: u64) -> Request {
    Request {
        tag,
        class: 0,
        stream: 0,
        op: Op::Read,
        offset_bytes: tag << 20,
        size_bytes: 4096,
        arrived_ns,
        deadline_ns: None,
    }
}

/// The blocks of Rust code of a page, without their indentation.
fn blocks(page: &str) -> Vec<String> {
    let text =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page)).unwrap();
    let mut blocks = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        match &mut open {
            None if line.trim() == "```rust" => open = Some((indent, String::new())),
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
fn the_page_shows_the_file_that_is_compiled_here() {
    let blocks = blocks("docs/reference/schedulers.md");
    let shown: Vec<&str> =
        blocks.iter().filter_map(|block| block.strip_prefix("// crates/scheduler/src/lcfs.rs\n")).collect();
    assert_eq!(shown, [include_str!("lcfs.rs")]);
}

#[test]
fn contributing_shows_the_entry_of_a_kernel_scheduler_that_is_compiled_here() {
    let blocks = blocks("CONTRIBUTING.md");
    let shown: Vec<&str> = blocks
        .iter()
        .filter_map(|block| block.strip_prefix("// crates/scheduler/src/registry.rs\n"))
        .collect();
    assert_eq!(shown, [include_str!("adios.rs")]);
    let entry: KernelScheduler = include!("adios.rs");
    assert!(weir_scheduler::kernel_scheduler(entry.name).is_none());
    assert!(weir_scheduler::names().any(|name| name == entry.counterpart));
}

#[test]
fn it_serves_what_came_last_until_the_oldest_is_tired() {
    let mut lcfs = policy("1").unwrap();
    for tag in 0..4 {
        lcfs.arrive(tag, read(tag, tag), &DEVICE);
    }
    let mut serve = |now_ns: u64| match lcfs.next(now_ns, &DEVICE) {
        Decision::Serve(request) => Some(request.tag),
        _ => None,
    };
    let served = [10, 20, 1_000_000, 1_000_000, 1_000_000].map(&mut serve);
    assert_eq!(served, [Some(3), Some(2), Some(0), Some(1), None]);
    assert_eq!(lcfs.waiting(), 0);
}

#[test]
fn it_says_what_it_is_and_refuses_what_is_no_time() {
    assert!(!lcfs::ENTRY.about.is_empty() && !lcfs::ENTRY.promises.is_empty());
    assert_eq!(lcfs::ENTRY.settings.len(), 1);
    let said = policy("soon").err().unwrap();
    assert!(said.contains("patience_ms=soon"), "{said}");
}
