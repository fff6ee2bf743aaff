//! What every policy holds to.

use proptest::prelude::*;
use weir_scheduler::{Entry, POLICIES};

use crate::harness::{arrivals, policy, run};

/// Policies that hold requests back although the device could take one.
const HOLD_BACK: [&str; 4] = ["linux-kyber", "linux-bfq", "wr-round", "hds"];

/// Policies that dispatch one request at a time, even if the device could take several.
const ONE_AT_A_TIME: [&str; 4] = ["edf-background", "usd", "lst", "deltal"];

/// Settings, besides none, with which everything general is tested as well.
const SETTINGS: [(&str, &[(&str, &str)]); 29] = [
    ("satf", &[("age_weight", "0.3")]),
    ("n-step-scan", &[("n", "3")]),
    ("scan-edf", &[("batch_ms", "50")]),
    ("scan-edf", &[("sweep", "c-scan")]),
    ("round-robin", &[("quantum", "3"), ("order", "scan")]),
    ("sfq", &[("cost", "time")]),
    ("wf2q+", &[("cost", "time")]),
    ("cello", &[("sweep", "scan"), ("batches", "none"), ("period_ms", "50")]),
    ("cello", &[("slack", "insertion"), ("period_ms", "50")]),
    ("cello", &[("slack", "insertion"), ("interactive", "fcfs"), ("batches", "none")]),
    (
        "wr-round",
        &[("late_aperiodic", "wait"), ("late_periodic", "wait"), ("bucket", "tokens"), ("round_ms", "100")],
    ),
    ("wr-round", &[("bucket", "fixed"), ("subgroup", "1"), ("interactive_per_s", "5")]),
    ("deltal", &[("rules", "thesis")]),
    ("linux-mq-deadline", &[("fifo_batch", "1"), ("read_expire", "10"), ("write_expire", "20")]),
    ("linux-kyber", &[("read_lat_nsec", "10000"), ("write_lat_nsec", "10000000")]),
    ("linux-bfq", &[("queues", "class"), ("writes", "async"), ("max_budget", "16")]),
    ("linux-bfq", &[("timeout_sync", "10")]),
    ("linux-bfq", &[("slice_idle", "0")]),
    ("linux-elevator-linus", &[("read_latency", "40"), ("write_latency", "60")]),
    ("linux-elevator-linus", &[("kernel", "2.4.19"), ("read_latency", "5"), ("write_latency", "9")]),
    ("edf-background", &[("order", "sync"), ("sync", "class")]),
    ("lst", &[("order", "sync-scan"), ("writes", "stream"), ("estimate", "expected")]),
    ("deltal", &[("order", "scan"), ("writes", "class")]),
    ("deltal", &[("order", "sync-scan"), ("sync", "class"), ("writes", "stream"), ("mode", "thesis")]),
    ("hds", &[("clients", "apart"), ("leave_ms", "0"), ("root_kb_s", "40")]),
    ("hds", &[("root", "adapt"), ("every_ms", "1e6"), ("below", "linux-mq-deadline")]),
    ("hds", &[("pass", "own"), ("below", "linux-elevator-linus"), ("root_kb_s", "40")]),
    ("hds", &[("pass", "own"), ("clients", "apart"), ("leave_ms", "0"), ("root_kb_s", "40")]),
    ("hds", &[("root", "rise"), ("every_ms", "1e6"), ("burst_ms", "1"), ("below", "satf")]),
];

fn conserves(name: &str, settings: &[(&str, &str)], depth: usize) -> bool {
    let holds_back = HOLD_BACK.contains(&name) && !settings.contains(&("slice_idle", "0"));
    !holds_back && (depth == 1 || !ONE_AT_A_TIME.contains(&name))
}

fn all() -> impl Iterator<Item = (&'static Entry, &'static [(&'static str, &'static str)])> {
    let set = |entry: &'static Entry| {
        SETTINGS
            .into_iter()
            .filter(|(name, _)| *name == entry.name)
            .map(move |(_, settings)| (entry, settings))
    };
    POLICIES.iter().flat_map(move |entry| std::iter::once((entry, [].as_slice())).chain(set(entry)))
}

#[test]
fn settings_are_of_policies_that_there_are() {
    assert_eq!(all().count(), POLICIES.len() + SETTINGS.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn each_request_is_served_once_and_work_is_conserved(
        requests in arrivals(60),
        depth in prop_oneof![Just(1_usize), Just(4)],
    ) {
        for (entry, settings) in all() {
            let mut policy = policy(entry.name, &[1, 3, 2], settings);
            let choices = run(&mut *policy, &requests, depth, conserves(entry.name, settings, depth));
            let mut served: Vec<u64> = choices.iter().map(|choice| choice.chosen.tag).collect();
            served.sort_unstable();
            let all: Vec<u64> = (0..requests.len() as u64).collect();
            prop_assert_eq!(served, all, "{} {:?}", entry.name, settings);
        }
    }

    #[test]
    fn the_same_calls_give_the_same_decisions(requests in arrivals(60), depth in 1..3_usize) {
        for (entry, settings) in all() {
            let run = || run(&mut *policy(entry.name, &[1, 3, 2], settings), &requests, depth, false);
            prop_assert_eq!(run(), run(), "{} {:?}", entry.name, settings);
        }
    }

    /// Unknown classes, impossible offsets and sizes, clocks that do not advance: every request is served once.
    #[test]
    fn nothing_that_comes_makes_it_fall(
        drawn in prop::collection::vec((0..2000_u16, any::<u32>(), any::<u64>(), any::<u32>(), any::<u64>()), 1..40),
    ) {
        for (entry, settings) in all() {
            let mut requests = Vec::new();
            for (tag, (class, stream, offset_bytes, size_bytes, due_ns)) in (0..).zip(&drawn) {
                requests.push(weir_scheduler::Request {
                    tag,
                    class: *class,
                    stream: *stream,
                    op: if tag % 2 == 0 { weir_scheduler::Op::Read } else { weir_scheduler::Op::Write },
                    offset_bytes: *offset_bytes,
                    size_bytes: *size_bytes,
                    arrived_ns: 0,
                    deadline_ns: Some(*due_ns),
                });
            }
            let choices = run(&mut *policy(entry.name, &[1, 2], settings), &requests, 1, false);
            prop_assert_eq!(choices.len(), requests.len(), "{}", entry.name);
        }
    }
}
