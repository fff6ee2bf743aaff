//! Offsets are within their bounds on any network; converted times equal those of the coordinator's clock.

use proptest::prelude::*;
use weir_coordination::{Clocks, Exchange, Offset};

/// An exchange over ways of these lengths, with the other clock so far ahead.
fn exchange(at: i64, ahead: i64, there: i64, thought: i64, back: i64) -> Exchange {
    Exchange {
        sent_ns: at,
        received_ns: at + there + ahead,
        replied_ns: at + there + thought + ahead,
        heard_ns: at + there + thought + back,
    }
}

#[test]
fn equal_ways_give_the_offset_itself() {
    let found = exchange(1_000, 5_000_000_000, 300, 20, 300).offset().unwrap();
    assert_eq!(found, Offset { offset_ns: 5_000_000_000, bound_ns: 301, at_ns: 1_620 });
    // One way at once, the other slow: wrong by exactly half of the difference, as far as the bound allows.
    let found = exchange(0, -7_000, 0, 0, 1_000).offset().unwrap();
    assert_eq!((found.offset_ns, found.bound_ns), (-7_500, 501));
}

#[test]
fn what_cannot_be_an_exchange_gives_nothing() {
    let good = exchange(0, 0, 10, 10, 10);
    for bad in [
        Exchange { heard_ns: -1, ..good },
        Exchange { replied_ns: 9, ..good },
        // The answer was being made for longer than question and answer took.
        Exchange { replied_ns: 100, ..good },
        Exchange { received_ns: i64::MIN, replied_ns: i64::MAX, ..good },
    ] {
        assert_eq!(bad.offset(), None, "{bad:?}");
    }
    assert_eq!(Offset::best(&[]), None);
}

#[test]
fn a_drifting_clock_is_followed_between_the_measurements() {
    // 50 ppm fast: 5 ms after 100 s.
    let start = Offset { offset_ns: 1_000, bound_ns: 10, at_ns: 0 };
    let end = Offset { offset_ns: 5_001_000, bound_ns: 20, at_ns: 100_000_000_000 };
    let clocks = Clocks { start, end: Some(end) };
    assert_eq!(clocks.to_coordinator_ns(0), 1_000);
    assert_eq!(clocks.to_coordinator_ns(50_000_000_000), 50_000_000_000 + 2_501_000);
    assert_eq!(clocks.to_coordinator_ns(100_000_000_000), 100_005_001_000);
    let (drift, unsure) = clocks.drift_ppm().unwrap();
    assert!((drift - 50.0).abs() < 1e-9 && (unsure - 0.0003).abs() < 1e-9, "{drift} {unsure}");
    assert_eq!(clocks.bound_ns(), 20);
    assert_eq!(Clocks { start, end: None }.to_coordinator_ns(7), 1_007);
    assert_eq!(Clocks { start, end: None }.drift_ppm(), None);
}

proptest! {
    #[test]
    fn the_true_offset_is_within_the_bound(
        at in -1_000_000_000_000_i64..1_000_000_000_000,
        ahead in -1_000_000_000_000_000_i64..1_000_000_000_000_000,
        ways in proptest::collection::vec((0..50_000_000_i64, 0..1_000_000_i64, 0..50_000_000_i64), 1..40),
    ) {
        let exchanges: Vec<Exchange> = ways
            .iter()
            .map(|(there, thought, back)| exchange(at, ahead, *there, *thought, *back))
            .collect();
        for one in &exchanges {
            let found = one.offset().unwrap();
            prop_assert!((found.offset_ns - ahead).abs() <= found.bound_ns);
        }
        let best = Offset::best(&exchanges).unwrap();
        prop_assert!((best.offset_ns - ahead).abs() <= best.bound_ns);
        let quickest = ways.iter().map(|(there, _, back)| there + back).min().unwrap();
        prop_assert_eq!(best.bound_ns, (quickest + 1) / 2 + 1);
    }

    #[test]
    fn an_even_drift_is_undone_to_within_the_bounds(
        ppm in -200.0..200.0_f64,
        ahead in -1_000_000_000_000_i64..1_000_000_000_000,
        length in 1_000_000_000_i64..1_000_000_000_000,
        errors in (-100_000..100_000_i64, -100_000..100_000_i64),
        when in 0.0..1.0_f64,
    ) {
        let truth = |local: i64| ahead + (local as f64 * ppm / 1e6) as i64;
        let measured = |at_ns: i64, error: i64| {
            Offset { offset_ns: truth(at_ns) + error, bound_ns: error.abs(), at_ns }
        };
        let clocks = Clocks { start: measured(0, errors.0), end: Some(measured(length, errors.1)) };
        let local = (length as f64 * when) as i64;
        let told = clocks.to_coordinator_ns(local);
        prop_assert!((told - local - truth(local)).abs() <= clocks.bound_ns() + 4);
    }

    #[test]
    fn telling_times_keeps_their_order_and_never_overflows(
        start in any::<i64>(), end in any::<i64>(), from in any::<i64>(), to in any::<i64>(), time in any::<i64>(),
    ) {
        let offset = |offset_ns, at_ns| Offset { offset_ns, bound_ns: 0, at_ns };
        let clocks = Clocks { start: offset(start, from), end: Some(offset(end, to)) };
        clocks.to_coordinator_ns(time);
        clocks.drift_ppm();
        let calm = Clocks { start: offset(start / 4, 0), end: Some(offset(start / 4 + 100_000, 1_000_000_000)) };
        let early = time / 4;
        prop_assert!(calm.to_coordinator_ns(early) < calm.to_coordinator_ns(early + 2));
    }

    #[test]
    fn any_timestamps_are_taken_without_a_fall(
        sent_ns in any::<i64>(), received_ns in any::<i64>(), replied_ns in any::<i64>(), heard_ns in any::<i64>(),
    ) {
        if let Some(found) = (Exchange { sent_ns, received_ns, replied_ns, heard_ns }).offset() {
            prop_assert!(found.bound_ns > 0);
        }
    }
}
