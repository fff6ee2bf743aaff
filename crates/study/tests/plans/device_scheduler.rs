//! Tests of studies with weir's own schedulers on devices and in virtual time.

use weir_study::{Run, Testbed};

use crate::support::{plan_text, trial};

const TRIAL: &str = trial!(
    "\
classes:
  text: {workload: poisson-text, clients: 10, weight: 2}
  video: {workload: mpeg-vbr, clients: 3, wants: real_time, contract: {cost_ms: 20, period_ms: 1000}}
factors:
  scheduler: [scan-edf batch_ms=20, deltal]
"
);

#[test]
fn one_file_is_planned_for_both_testbeds() {
    let live = plan_text(TRIAL).unwrap();
    let virtual_time = plan_text(&TRIAL.replace("device", "simulator")).unwrap();
    assert_eq!((live.runs.len(), live.factors.clone()), (virtual_time.runs.len(), virtual_time.factors));
    for (live, virtual_time) in live.runs.iter().zip(&virtual_time.runs) {
        assert_eq!(live.settings, virtual_time.settings, "queue depth among them");
        assert_eq!(live.settings.queue_depth, 1);
        assert_eq!(live.classes, virtual_time.classes, "what policies are told");
        assert_eq!((live.seed, &live.levels), (virtual_time.seed, &virtual_time.levels));
        assert!(live.live && live.devices[0].live);
        assert!(!virtual_time.live && !virtual_time.devices[0].live);
        assert_ne!(live.id, virtual_time.id);
        let kernel = live.kernel_settings("shared");
        assert_eq!((kernel.scheduler.to_string().as_str(), kernel.queue_depth), ("none", 128));
        assert_eq!(*live.scheduler_of("shared"), live.settings.scheduler);
    }
}

#[test]
fn policies_stand_beside_the_kernels_schedulers() {
    let text = TRIAL.replace("[scan-edf batch_ms=20, deltal]", "[mq-deadline, deltal]");
    let runs = plan_text(&text).unwrap().runs;
    assert!(runs.iter().all(|run| run.settings.queue_depth == 4 && run.devices[0].live));
    let of = |name: &str| runs.iter().find(|run| run.settings.scheduler.name == name).unwrap();
    assert!(of("deltal").live && !of("mq-deadline").live);
    assert_eq!(of("mq-deadline").kernel_settings("shared"), of("mq-deadline").settings);
    let both = plan_text(&text.replace("testbed: device", "testbed: [device, simulator]")).unwrap().runs;
    let simulated = |run: &&Run| run.testbed == Testbed::Simulator;
    let names: Vec<String> =
        both.iter().filter(simulated).map(|run| run.settings.scheduler.to_string()).collect();
    assert!(names.contains(&"linux-mq-deadline".to_owned()) && names.contains(&"deltal".to_owned()));
    assert!(both.iter().filter(simulated).all(|run| !run.live && !run.devices[0].live));
}

#[test]
fn a_partition_may_have_a_policy_of_its_own() {
    let text = TRIAL
        .replace("weight: 2", "scheduler: look")
        .replace("[scan-edf batch_ms=20, deltal]", "[mq-deadline, deltal]\n  architecture: [partitioned]");
    for run in plan_text(&text).unwrap().runs {
        assert_eq!(run.scheduler_of("text").name, "look");
        assert_eq!(*run.scheduler_of("video"), run.settings.scheduler);
        assert_eq!(run.kernel_settings("text").scheduler.name, "none");
    }
    let wrong = plan_text(&text.replace("scheduler: look", "scheduler: bfq")).unwrap_err();
    assert!(wrong.contains("classes.text.scheduler: is bfq, which is the kernel's"), "{wrong}");
}

#[test]
fn a_study_of_the_kernels_schedulers_is_as_it_was() {
    let text = TRIAL
        .replace(", weight: 2", "")
        .replace(", wants: real_time, contract: {cost_ms: 20, period_ms: 1000}", "")
        .replace("[scan-edf batch_ms=20, deltal]", "[none]");
    let run = plan_text(&text).unwrap().runs.remove(0);
    let written = serde_json::to_string(&run).unwrap();
    assert!(!written.contains("\"live\"") && run.classes.iter().all(|class| class.simulated.is_none()));
    let wrong = plan_text(&text.replace("clients: 10", "clients: 10, weight: 2")).unwrap_err();
    assert!(wrong.contains("classes.text.weight") && wrong.contains("or use one of them"), "{wrong}");
}

#[test]
fn what_cannot_be_live_is_named_with_its_remedy() {
    let hold = |text: &str| format!("{TRIAL}hold: {{{text}}}\n");
    for (text, said) in [
        (TRIAL.replace("deltal]", "detlal]"), "did you mean `deltal`"),
        (TRIAL.replace("batch_ms=20", "batch=20"), "factors.scheduler.0"),
        (TRIAL.replace("deltal]", "hds tree=other:1]"), "factors.scheduler.1"),
        (TRIAL.replace("weight: 2", "weight: 0"), "classes.text.weight"),
        (TRIAL.replace("weight: 2", "cache_mib: 2"), "classes.text.cache_mib"),
        (
            TRIAL.replace("size_mib: 1024", "size_mib: 1024, placement: spread"),
            "storage.placement: is not packed",
        ),
        (hold("filesystem: btrfs"), "hold.filesystem: has btrfs with scheduler scan-edf"),
        (hold("filesystem: tmpfs"), "hold.filesystem: has tmpfs"),
        (hold("queue_depth: 129"), "hold.queue_depth"),
        (
            TRIAL.replace("deltal]", "none]\n  queue_depth: [1, 8]"),
            "factors.queue_depth.0: is 1; the kernel allows 4 to 128",
        ),
    ] {
        let found = plan_text(&text).unwrap_err();
        assert!(found.contains(said) && found.contains("trial.yml"), "{said}: {found}");
    }
    for possible in ["ext4", "xfs", "btrfs, architecture: partitioned"] {
        assert!(plan_text(&hold(&format!("filesystem: {possible}"))).is_ok(), "{possible}");
    }
    // What a database writes has no place beforehand.
    let site = "services:\n  shop:\n    service: nginx\n    port: 8080\n    site: {benchmark: tpcw, database: postgresql, items: 1000, browsers: 5}\n";
    let told = plan_text(&format!("{}{site}", hold("filesystem: ext4, buffered: true"))).unwrap_err();
    assert!(told.contains("with a site, whose database creates files during the run"), "{told}");
    // What the kernel's scheduler has is its own.
    let mixed = TRIAL.replace(
        "deltal]",
        "none]\n  filesystem: [raw, btrfs]\nexclude:\n  - {scheduler: scan-edf batch_ms=20, filesystem: btrfs}",
    );
    assert!(plan_text(&mixed).is_ok());
}
