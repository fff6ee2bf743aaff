//! Tests of studies with `access`: the cost of opening and reading files.

use weir_study::Engine;

use crate::support::{each_is_named, plan_text};

const ACCESS: &str = "\
name: trial
question: What does a file cost?
testbed: device
seed: 7
repetitions: 2
warmup_s: 0
duration_s: 1
storage: {profile: hdd-7200, heads: 2, size_mib: 128}
access: {sizes: [4KiB, 1048576], repeat: 3}
factors:
  filesystem: [ext4, tmpfs, moosefs]
";

#[test]
fn what_a_file_costs_are_classes_of_a_run() {
    let plan = plan_text(ACCESS).unwrap();
    assert_eq!(plan.runs.len(), 6);
    for run in &plan.runs {
        let names: Vec<&str> = run.classes.iter().map(|class| class.name.as_str()).collect();
        let all = ["open-close", "cached-4KiB", "uncached-4KiB", "cached-1MiB", "uncached-1MiB"];
        let in_memory = ["open-close", "cached-4KiB", "cached-1MiB"];
        assert_eq!(names, if run.settings.filesystem == "tmpfs" { &in_memory[..] } else { &all[..] });
        assert!(run.classes.iter().all(|class| class.engine == Engine::Access));
        assert_eq!(run.access.as_ref().map(|access| access.repetitions), Some(3));
    }
}

#[test]
fn what_a_file_costs_is_checked_by_field() {
    let class = "access: {sizes: [4KiB]}\nclasses: {first: {workload: zipf-web, clients: 1}}\n";
    each_is_named(
        ACCESS,
        &[
            ("4KiB, 1048576", "4 KB", "access.sizes.0: found `4 KB`: `KB` is ambiguous"),
            ("4KiB, 1048576", "4KiB, 4096", "access.sizes.1: is given twice"),
            ("4KiB, 1048576", "0", "access.sizes.0: is 0 bytes"),
            ("4KiB, 1048576", "", "access.sizes: is empty"),
            ("4KiB, 1048576", "100MiB", "gives all heads 256 MiB, but the files of `access` need 1000 MiB"),
            ("repeat: 3", "repeat: 0", "access.repeat: is 0"),
            ("repeat: 3", "rounds: 3", "rounds"),
            (
                "access: {sizes: [4KiB, 1048576], repeat: 3}\n",
                class,
                "access: measures a file system without other load",
            ),
            ("access: {sizes: [4KiB, 1048576], repeat: 3}\n", "", "classes: is empty"),
            ("tmpfs", "raw", "factors.filesystem: has raw, which has no files for `access`"),
            ("testbed: device", "testbed: simulator", "access: applies to `testbed: device` only"),
        ],
    );
}
