//! The root's rate, against a device that has another (section 5).

use crate::clients::{Greedy, S, kb, policy, serve};

const DEVICE_KB_S: u64 = 10_000;

fn names(count: usize) -> Vec<String> {
    ["a", "b", "c"].into_iter().take(count).map(str::to_owned).collect()
}

/// KB/s of each of greedy clients of 64 KB in the last 50 of 200 s.
fn rates(count: usize, settings: &[(&str, &str)]) -> Vec<u64> {
    let clients = vec![Greedy::always(64); count];
    let mut policy = policy(&names(count), settings);
    let served = serve(&mut *policy, &clients, DEVICE_KB_S, 200 * S, None);
    kb(&served, count, 150 * S, 200 * S).into_iter().map(|kb| kb / 50).collect()
}

fn share(rates: &[u64], of: usize) -> f64 {
    rates[of] as f64 / rates.iter().sum::<u64>() as f64
}

/// Fig. 7: a root that is faster than the disk passes everything and shares nothing.
#[test]
fn a_fixed_root_beyond_the_device_shares_nothing() {
    let rates = rates(2, &[("root_kb_s", "20000"), ("tree", "a:0.75,b:0.25"), ("below", "fcfs")]);
    assert!((share(&rates, 0) - 0.5).abs() < 0.01, "{rates:?}");
}

/// Fig. 8, from both sides.
#[test]
fn an_adaptive_root_finds_the_device_and_keeps_the_shares() {
    for start in ["5000", "20000"] {
        let settings =
            [("root_kb_s", start), ("tree", "a:0.75,b:0.25"), ("root", "adapt"), ("below", "fcfs")];
        let rates = rates(2, &settings);
        let total: u64 = rates.iter().sum();
        assert!(total as f64 > 0.9 * DEVICE_KB_S as f64, "from {start}: {rates:?}");
        assert!((share(&rates, 0) - 0.75).abs() < 0.04, "from {start}: {rates:?}");
    }
}

/// Section 5: reserved bandwidth is protected by slowing down classes with shares.
#[test]
fn a_bandwidth_is_protected_by_throttling_the_shares() {
    let tree = ("tree", "a:4500kb_s,b:w1,c:w1");
    let fixed = rates(3, &[("root_kb_s", "20000"), tree, ("below", "fcfs")]);
    assert!(fixed[0] < 3600, "{fixed:?}");
    let adapted = rates(3, &[("root_kb_s", "20000"), tree, ("root", "adapt"), ("below", "fcfs")]);
    assert!(adapted[0] as f64 >= 0.95 * 4500.0, "{adapted:?}");
    assert!(adapted.iter().sum::<u64>() as f64 > 0.9 * DEVICE_KB_S as f64, "{adapted:?}");
    // Never below the reserved bandwidth, however slow the device is.
    let slow = rates(
        3,
        &[("root_kb_s", "20000"), ("tree", "a:9000kb_s,b:w1,c:w1"), ("root", "adapt"), ("below", "fcfs")],
    );
    assert!(slow[0] as f64 >= 0.8 * 9000.0, "{slow:?}");
}

/// A root that is not exhausted is unchanged.
#[test]
fn an_idle_disk_is_no_reason_to_raise_the_root() {
    let clients =
        [Greedy { kb: 64, from_ns: 0, to_ns: S }, Greedy { kb: 64, from_ns: 100 * S, to_ns: u64::MAX }];
    let settings = [("root_kb_s", "5000"), ("root", "adapt"), ("below", "fcfs")];
    let served = serve(&mut *policy(&names(2), &settings), &clients, 0, 101 * S, None);
    let first = kb(&served, 2, 100 * S, 101 * S)[1];
    // One step in the first second, the burst of half a second, and a request of 64.
    assert!(first <= 5000 + 384 + 2700 + 64, "{first}");
}
