//! Tests of the shipped studies of Clockwise: runs, and contracts of their streams.

use weir_study::{Run, RunClass};
use weir_workload::{Arrivals, Distribution, Sizes};

use crate::support::shipped;

const LAYOUTS: [(&str, usize); 4] = [
    ("clockwise-rotation", 3 * 14),
    ("clockwise-random", 5 * 11),
    ("clockwise-memory", 3 * 12),
    ("clockwise-memory-large", 3 * 15),
];

/// Bytes a second that the streams of a class ask for.
fn rate(class: &RunClass) -> Option<f64> {
    let Arrivals::Periodic { interval_ms, in_step: true } = class.recipe.requests().unwrap().arrivals else {
        return None;
    };
    let Sizes::Drawn(Distribution::Fixed { bytes }) = class.recipe.requests().unwrap().sizes else {
        panic!("{}", class.name)
    };
    Some(bytes as f64 / interval_ms * 1e3 * f64::from(class.clients))
}

fn streams(run: &Run) -> impl Iterator<Item = &RunClass> {
    run.classes.iter().filter(|class| rate(class).is_some())
}

#[test]
fn they_have_a_run_of_each_cell_and_repetition() {
    for (name, cells) in LAYOUTS {
        assert_eq!(shipped(name).runs.len(), cells * 2, "{name}");
    }
    for (name, runs) in
        [("clockwise-qos", 6 * 2), ("clockwise-crosstalk", 36 * 2), ("clockwise-slice", 42 * 5)]
    {
        assert_eq!(shipped(name).runs.len(), runs, "{name}");
    }
}

/// A block of each disk in each period, whatever the layout; a file is whole rows of blocks.
#[test]
fn contracts_are_those_of_the_streams() {
    for (name, _) in LAYOUTS.into_iter().chain([("clockwise-qos", 0), ("clockwise-slice", 0)]) {
        for run in &shipped(name).runs {
            for class in streams(run) {
                let simulated = class.simulated.as_ref().unwrap();
                let disks = simulated.disks.as_ref().map_or(3, Vec::len) as u64;
                let Arrivals::Periodic { interval_ms, .. } = class.recipe.requests().unwrap().arrivals else {
                    unreachable!()
                };
                let Sizes::Drawn(Distribution::Fixed { bytes }) = class.recipe.requests().unwrap().sizes
                else {
                    unreachable!()
                };
                assert!((simulated.contract.unwrap().period_ms - interval_ms).abs() < 1e-6, "{name}");
                let block = class.recipe.requests().unwrap().block_bytes.unwrap();
                assert_eq!((simulated.stripe_unit_kib << 10, bytes), (block, disks * block), "{name}");
                assert_eq!(class.recipe.requests().unwrap().alignment_bytes, bytes, "{name}");
                let Distribution::Fixed { bytes: film_bytes } = class.recipe.requests().unwrap().files.size
                else {
                    unreachable!()
                };
                assert_eq!(film_bytes % bytes, 0, "{name}");
            }
        }
    }
}

/// Section 6.5: 12 pairs of each kind are 16.5 MB/s; one more of Wallace and Gromit makes 16.9.
#[test]
fn loads_are_those_of_the_thesis() {
    let mb_s = |name: &str, pairs: u32| {
        let of = |run: &Run| {
            let video = streams(run).filter(|class| class.name.ends_with("video"));
            (video.map(|class| class.clients).sum::<u32>() == pairs)
                .then(|| streams(run).filter_map(rate).sum::<f64>() / f64::from(1 << 20))
        };
        shipped(name).runs.iter().find_map(of).unwrap()
    };
    for name in ["clockwise-rotation", "clockwise-memory-large", "clockwise-slice", "clockwise-qos"] {
        assert!((mb_s(name, 24) - 16.48).abs() < 0.01, "{name}");
    }
    assert!((mb_s("clockwise-rotation", 25) - 16.88).abs() < 0.01);
    assert!((mb_s("clockwise-memory", 22) - 15.10).abs() < 0.01);
    assert!((mb_s("clockwise-random", 18) - 12.36).abs() < 0.01);
}
