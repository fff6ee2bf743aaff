//! Classes and policies that change while requests go on.

use std::time::Duration;

use super::super::attribution::Caller;
use super::{Running, reply};
use crate::engine::scheduled::{Arrangement, ClassSpec};

const YAML: &str = "{name: changes, profile: ssd-sata, heads: 2, size_mib: 64,
    live: {policy: sfq, classes: [{name: video, range_mib: [0, 32], deadline_ms: 0.001}]}}";

#[test]
fn no_request_is_lost_by_a_change() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(YAML, folder.path());
    let engine = &running.engine;
    let policies =
        ["fcfs", "edf", "round-robin", "wf2q+", "cello", "deltal", "hds root_kb_s=1000000", "linux-kyber"];
    let mut answers = Vec::new();
    for number in 0..400u64 {
        for at in 0..5 {
            let (reply, answer) = reply();
            engine.read((number * 5 + at) % 16_000 * 4096, 4096, &Caller::default(), reply);
            answers.push(answer);
        }
        match number % 5 {
            0 => {
                engine.set_class(ClassSpec { range_mib: Some([32, 48]), ..ClassSpec::named("text") }).unwrap()
            }
            1 => engine.set_policy(policies[number as usize / 5 % policies.len()]).unwrap(),
            2 => engine.remove_class("text").unwrap(),
            3 => {
                let before = engine.classes();
                assert!(engine.set_class(ClassSpec { weight: -1.0, ..ClassSpec::named("video") }).is_err());
                assert!(engine.set_policy("fcsf").unwrap_err().contains("fcfs"));
                assert_eq!(engine.classes(), before, "what is refused changes nothing");
            }
            _ => {}
        }
    }
    for answer in &answers {
        assert_eq!(answer.recv_timeout(Duration::from_secs(20)).unwrap().unwrap().len(), 4096);
    }
    let stats = engine.scheduling_stats();
    assert_eq!(stats.outstanding, 0);
    assert!(stats.classes.iter().all(|class| class.queue == 0), "{stats:?}");
    let video = stats.classes.iter().find(|class| class.name == "video").unwrap();
    // Nothing is read from a flash device in 1 us.
    assert!(video.requests > 0 && video.misses == video.requests, "{video:?}");
}

#[test]
fn a_server_is_arranged_anew_only_while_nobody_asks() {
    let folder = tempfile::tempdir().unwrap();
    let yaml = "{name: arranged, profile: hdd-7200, size_mib: 64, live: {policy: sfq}}";
    let running = Running::start(yaml, folder.path());
    let engine = &running.engine;
    let arrangement = |policy: &str| Arrangement {
        policy: policy.to_owned(),
        queue_depth: 2,
        seed: 3,
        classes: vec![ClassSpec { range_bytes: Some([4096, 8192]), ..ClassSpec::named("a") }],
    };
    let before = engine.arrangement();
    let (reply, answer) = reply();
    engine.read(0, 4096, &Caller::default(), reply);
    for refused in [engine.arrange(&arrangement("fcfs")), engine.begin_at(crate::clock::now_ns())] {
        assert!(refused.unwrap_err().contains("outstanding"));
    }
    answer.recv_timeout(Duration::from_secs(20)).unwrap().unwrap();
    let now_ns = crate::clock::now_ns();
    assert!(engine.arrange(&arrangement("fcsf")).unwrap_err().contains("fcfs"));
    assert!(engine.arrange(&arrangement("hds tree=b")).is_err(), "a tree of somebody else");
    assert!(engine.begin_at(now_ns + 3_600_000_000_000).unwrap_err().contains("CLOCK_MONOTONIC"));
    assert!(engine.begin_at(0).is_err());
    assert_eq!(engine.arrangement(), before, "what is refused changes nothing");
    engine.set_timing(false);
    assert!(engine.begin_at(now_ns).unwrap_err().contains("off"));
    engine.arrange(&arrangement("fcfs")).unwrap();
    let found = engine.arrangement();
    assert_eq!((found.policy.as_str(), found.queue_depth, found.classes.len()), ("fcfs", 2, 2));
    assert_eq!(engine.scheduling_stats().classes.len(), 2);
}

#[test]
fn a_class_that_is_asked_for_takes_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(YAML, folder.path());
    let names = || running.engine.classes().into_iter().map(|class| class.name).collect::<Vec<_>>().join(" ");
    assert_eq!(names(), "video other");
    running.engine.set_class(ClassSpec::named("text")).unwrap();
    assert_eq!(names(), "video text");
    let error = running.engine.set_class(ClassSpec::named("bulk")).unwrap_err();
    assert!(error.contains("bulk") && error.contains("range_mib"), "{error}");
    assert!(running.engine.remove_class("bulk").unwrap_err().contains("video, text"));
    running.engine.remove_class("text").unwrap();
    assert_eq!(names(), "video other");
}

#[test]
fn what_the_policy_has_in_account_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(YAML, folder.path());
    let ask = || {
        let (reply, answer) = reply();
        running.engine.read(0, 4096, &Caller::default(), reply);
        answer.recv_timeout(Duration::from_secs(5)).unwrap().unwrap();
    };
    running.engine.set_policy("hds root_kb_s=1000").unwrap();
    ask();
    let stats = running.engine.scheduling_stats();
    assert!(stats.classes[0].accounts.contains_key("tokens_kb"), "{stats:?}");
    let contract =
        Some(crate::engine::scheduled::ContractSpec { cost_ms: 1.0, period_ms: 100.0, streams: 1 });
    let wants = weir_vocabulary::TrafficKind::RealTime;
    let range_mib = Some([0, 32]);
    running.engine.set_class(ClassSpec { contract, wants, range_mib, ..ClassSpec::named("video") }).unwrap();
    running.engine.set_policy("deltal").unwrap();
    ask();
    let stats = running.engine.scheduling_stats();
    let head = &stats.heads[0];
    assert!(head.slack_ms.is_some() && head.accounts.contains_key("slack_left_ms"), "{stats:?}");
}
