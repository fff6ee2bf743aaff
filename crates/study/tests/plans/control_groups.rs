//! Tests of control groups of classes: levels of a factor, resolved runs, refused values.

use std::collections::BTreeSet;

use weir_study::{ControlGroup, Plan, Run};

use crate::support::{plan_text, shipped};

fn planned(testbed: &str, classes: &str, factors: &str, hold: &str) -> Result<Plan, String> {
    let text = format!(
        "name: trial\nquestion: Who gets what?\ntestbed: {testbed}\nseed: 7\nrepetitions: 1\nwarmup_s: 1\nduration_s: 2\n\
         storage: {{profile: hdd-7200, heads: 1, size_mib: 1024}}\nclasses: {{{classes}}}\nfactors: {{{factors}}}\n\
         hold: {{{hold}}}\n"
    );
    plan_text(&text)
}

const TEXT: &str = "text: {workload: poisson-text, clients: 10}";
const VIDEO: &str = "video: {workload: mpeg-vbr, clients: 3, cgroup: io.weight=800}";

fn group(run: &Run, class: &str) -> Option<ControlGroup> {
    run.classes.iter().find(|known| known.name == class).unwrap().cgroup
}

#[test]
fn a_level_replaces_the_class_s_own() {
    let factors = "cgroup: [{}, {text: io.weight=200}, {video: io.weight=100 io.max.wbps=5000000, text: ''}]";
    let plan = planned("device", &format!("{TEXT}, {VIDEO}"), factors, "scheduler: none").unwrap();
    let own = ControlGroup { weight: Some(800), ..ControlGroup::default() };
    assert_eq!(plan.runs.len(), 3);
    for run in &plan.runs {
        match run.levels["cgroup"].as_str().unwrap() {
            "" => assert_eq!((group(run, "text"), group(run, "video")), (None, Some(own))),
            "text=io.weight=200" => {
                assert_eq!((group(run, "text").unwrap().weight, group(run, "video")), (Some(200), Some(own)));
            }
            "text= video=io.max.wbps=5000000 io.weight=100" => {
                assert_eq!(group(run, "text"), Some(ControlGroup::default()));
                assert_eq!(group(run, "video").unwrap().max.wbps, Some(5_000_000));
            }
            other => panic!("{other}"),
        }
    }
}

#[test]
fn a_run_without_them_has_the_id_that_it_had() {
    // What is absent is not written down, and does not decide who a run is.
    let plan = planned("device", TEXT, "scheduler: [none]", "").unwrap();
    let text = serde_json::to_string(&plan.runs[0]).unwrap();
    assert!(!text.contains("cgroup") && !text.contains("io_cost"), "{text}");
}

#[test]
fn what_would_say_nothing_is_refused_with_its_field() {
    let refused = |testbed: &str, classes: &str, factors: &str, hold: &str| {
        planned(testbed, classes, factors, hold).err().unwrap_or_default()
    };
    let both = format!("{TEXT}, {VIDEO}");
    let said = refused("device", &both, "cgroup: [{vido: io.weight=5}]", "");
    assert!(said.contains("factors.cgroup: `vido`") || said.contains("did you mean `video`"), "{said}");
    let said = refused("device", TEXT, "cgroup: [{text: io.bfq.weight=5}]", "scheduler: kyber");
    assert!(said.contains("factors.cgroup") && said.contains("only the scheduler bfq reads"), "{said}");
    let said = refused("device", &both, "scheduler: [none]", "filesystem: tmpfs");
    assert!(said.contains("classes.video.cgroup") && said.contains("tmpfs"), "{said}");
    let said = refused("device", &both, "scheduler: [none]", "filesystem: ext4, buffered: true");
    assert!(said.contains("classes.video.cgroup") && said.contains("buffered"), "{said}");
    let said = refused("simulator", &both, "scheduler: [fcfs]", "");
    assert!(said.contains("classes.video.cgroup") && said.contains("use weight"), "{said}");
    let said = refused("simulator", TEXT, "cgroup: [{text: io.weight=5}]", "");
    assert!(said.contains("factors.cgroup") && said.contains("a setting of the kernel"), "{said}");
    let said = refused("device", TEXT, "io_cost: [calibrated]", "");
    assert!(said.contains("factors.io_cost") && said.contains("no class has an io.weight"), "{said}");
    assert!(refused("device", &both, "io_cost: [calibrated, calibrated min=50]", "").is_empty());
}

/// The benchmark asks the same of all mechanisms: what differs is how the classes are kept apart.
#[test]
fn the_isolation_benchmark_is_whole() {
    for (name, cells) in [("overhead", 26), ("fairness", 19), ("priority", 21)] {
        let plan = shipped(&format!("isolation-{name}"));
        assert_eq!(
            plan.runs.iter().filter(|run| !run.duplicate).count(),
            cells * plan.repetitions as usize,
            "{name}"
        );
        let seconds: BTreeSet<String> =
            plan.runs.iter().map(|run| format!("{} {}", run.warmup_s, run.duration_s)).collect();
        assert_eq!(seconds.len(), 1, "{name}");
        for run in &plan.runs {
            let mechanism = run.levels["variant"].as_str().unwrap().split('/').next().unwrap();
            let files: BTreeSet<&str> =
                run.classes.iter().filter_map(|class| class.cgroup).flat_map(|group| group.files()).collect();
            match mechanism {
                "io.max" | "io.weight" | "io.latency" | "io.prio.class" => {
                    assert_eq!(files, BTreeSet::from([mechanism]), "{name}");
                }
                "bfq" => assert!(
                    run.settings.scheduler.name == "bfq" && files.iter().all(|file| *file == "io.bfq.weight")
                ),
                _ => assert!(files.is_empty(), "{name}: {mechanism}"),
            }
        }
    }
}
