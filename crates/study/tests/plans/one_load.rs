//! Tests of the studies of all schedulers under one load: both disks have the same requests.

use std::collections::BTreeSet;

use weir_study::Plan;

use crate::support::shipped;

/// Schedulers of a plan, without the rate of a disk that one of them has to be told.
fn schedulers(plan: &Plan) -> BTreeSet<String> {
    let text = |run: &weir_study::Run| {
        let mut scheduler = run.settings.scheduler.clone();
        scheduler.tunables.remove("root_kb_s");
        scheduler.to_string()
    };
    plan.runs.iter().map(text).collect()
}

#[test]
fn both_disks_have_the_same_schedulers_classes_and_repetitions() {
    let (one, other) = (shipped("common"), shipped("common-atlas"));
    assert_eq!(schedulers(&one), schedulers(&other));
    assert_eq!(schedulers(&one).len(), 12);
    assert_eq!((one.runs.len(), other.runs.len()), (12 * 2 * 23 * 5, 12 * 2 * 22 * 5));
    for plan in [&one, &other] {
        let run = &plan.runs[0];
        let classes: Vec<(&str, f64)> = run
            .classes
            .iter()
            .filter_map(|class| Some((class.name.as_str(), class.simulated.as_ref()?.weight)))
            .collect();
        assert_eq!(classes, [("bulk", 10.0), ("text", 25.0), ("video", 65.0)]);
    }
}

#[test]
fn other_shares_are_asked_for_where_they_are_meant() {
    let plan = shipped("common-shares");
    assert_eq!(plan.runs.len(), 2 * 5 * 2 * 16 * 5);
    for run in &plan.runs {
        let video = run.classes.iter().find(|class| class.name == "video").unwrap();
        let weight = video.simulated.as_ref().unwrap().weight;
        let scheduler = run.settings.scheduler.to_string();
        for said in ["periodic=65", "periodic=80", "video:65%", "video:80%"] {
            assert!(!scheduler.contains(said) || said.contains(&weight.to_string()), "{weight}: {scheduler}");
        }
    }
}

/// Streams that leave 350 of 1000 ms are 20 and 12, and both are loads that are run: what is left if the refused go is read
/// off there.
#[test]
fn as_many_streams_as_are_promised_are_a_load() {
    for (name, streams) in [("common", 20), ("common-atlas", 12)] {
        let plan = shipped(name);
        let mut loads = BTreeSet::new();
        for run in &plan.runs {
            let video = run.classes.iter().find(|class| class.name == "video").unwrap();
            let contract = video.simulated.as_ref().unwrap().contract.unwrap();
            assert_eq!(((contract.period_ms - 350.0) / contract.cost_ms).floor() as u32, streams);
            loads.insert(video.clients);
        }
        assert!(loads.contains(&streams), "{name}: {loads:?}");
    }
}
