//! Tests of runs of several hosts.

use std::collections::HashSet;

use weir_study::{Lost, Run};

use crate::support::plan_text;

const JOINT: &str = "\
name: trial
question: Does it work?
testbed: device
seed: 7
repetitions: 2
warmup_s: 1
duration_s: 2
hosts: {clients: 3}
storage: {profile: hdd-7200, heads: 1, size_mib: 1024}
classes:
  text: {workload: poisson-text, clients: 10}
factors:
  load: [0.5, 1]
hold: {filesystem: mounted}
";

#[test]
fn clients_of_a_run_of_several_hosts_are_asked_apart() {
    let plan = plan_text(JOINT).unwrap();
    let run = &plan.runs[0];
    assert_eq!(run.hosts.map(|hosts| (hosts.clients, hosts.lost)), Some((3, Lost::Stop)));
    let seeds: HashSet<u64> = plan.runs.iter().map(|run| run.seed).collect();
    let parts: Vec<u64> =
        plan.runs.iter().flat_map(|run| (0..3).map(|client| run.part(client).seed)).collect();
    // Both cells of a block are asked the same, all clients and blocks differ.
    assert_eq!(seeds.len(), 2);
    assert_eq!(parts.iter().collect::<HashSet<_>>().len(), 2 * 3);
    assert!(parts.iter().all(|seed| !seeds.contains(seed)));
    assert_eq!(run.part(1), run.part(1));
    assert_eq!(Run { seed: run.seed, ..run.part(2) }, *run);
    let ids = |text: &str| plan_text(text).unwrap().runs.into_iter().map(|run| run.id).collect::<Vec<_>>();
    assert_eq!(ids(JOINT), ids(&JOINT.replace("clients: 3}", "clients: 3, lost: continue}")));
    assert_ne!(ids(JOINT), ids(&JOINT.replace("clients: 3}", "clients: 4}")));
    assert_ne!(ids(JOINT), ids(&JOINT.replace("hosts: {clients: 3}\n", "")));
}

#[test]
fn several_hosts_are_refused_where_they_make_no_sense() {
    for (from, to, said) in [
        ("clients: 3}", "clients: 1}", "hosts.clients: is 1; it must be from 2 to 256"),
        ("clients: 3}", "clients: 3, lost: wait}", "hosts.lost"),
        ("testbed: device", "testbed: simulator", "hosts: is given, but testbed simulator has no hosts"),
        (
            "filesystem: mounted",
            "filesystem: ext4",
            "hold.filesystem: is ext4, which each client would make on its own disks",
        ),
        ("load: [0.5, 1]", "filesystem: [mounted, tmpfs]", "factors.filesystem: is tmpfs"),
        (
            "load: [0.5, 1]",
            "scheduler: [none, bfq]",
            "factors.scheduler: is varied, but a run of several hosts does not change",
        ),
        ("load: [0.5, 1]", "variant: {a: {hosts.clients: 4}, b: {}}", "`hosts` is the same in all variants"),
    ] {
        assert!(JOINT.contains(from));
        let found = plan_text(&JOINT.replace(from, to)).unwrap_err();
        assert!(found.contains(said), "{to}: {found}");
    }
}
