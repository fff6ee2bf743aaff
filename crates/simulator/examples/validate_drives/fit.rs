//! Fits parameters that data sheets omit: overheads, interface, settling, seek times.

use weir_simulator::Op;
use weir_simulator::profile::DiskProfile;

use crate::demerit::demerit_ms;
use crate::trace::{Measured, replay};

/// A figure of the profile that is fitted.
pub struct Figure {
    pub name: &'static str,
    /// How far the search begins to step, and the step at which it ends, in the figure's unit.
    steps: (f64, f64),
    get: fn(&DiskProfile) -> f64,
    set: fn(&mut DiskProfile, f64),
}

/// Parameters that are fitted for every drive.
pub const FIGURES: &[Figure] = &[
    Figure {
        name: "read_overhead_us",
        steps: (200.0, 5.0),
        get: |p| p.read_overhead_us.unwrap_or(p.command_overhead_us),
        set: |p, value| p.read_overhead_us = Some(value),
    },
    Figure {
        name: "write_overhead_us",
        steps: (200.0, 5.0),
        get: |p| p.write_overhead_us.unwrap_or(p.command_overhead_us),
        set: |p, value| p.write_overhead_us = Some(value),
    },
    Figure {
        name: "hit_overhead_us",
        steps: (200.0, 5.0),
        get: |p| p.hit_overhead_us.unwrap_or(p.command_overhead_us),
        set: |p, value| p.hit_overhead_us = Some(value),
    },
    Figure {
        name: "completion_overhead_us",
        steps: (100.0, 5.0),
        get: |p| p.completion_overhead_us,
        set: |p, value| p.completion_overhead_us = value,
    },
    Figure {
        name: "interface_mb_s",
        steps: (0.4, 0.01),
        get: |p| p.interface_mb_s,
        set: |p, value| p.interface_mb_s = value,
    },
    Figure {
        name: "watermark",
        steps: (0.25, 0.02),
        get: |p| p.watermark,
        set: |p, value| p.watermark = value,
    },
    Figure {
        name: "write_data_delay_us",
        steps: (200.0, 5.0),
        get: |p| p.write_data_delay_us,
        set: |p, value| p.write_data_delay_us = value,
    },
    Figure {
        name: "write_watermark",
        steps: (0.25, 0.02),
        get: |p| p.write_watermark.unwrap_or(p.watermark),
        set: |p, value| p.write_watermark = Some(value),
    },
    Figure {
        name: "write_settle_ms",
        steps: (0.3, 0.01),
        get: |p| p.write_settle_ms,
        set: |p, value| p.write_settle_ms = value,
    },
    Figure {
        name: "head_switch_ms",
        steps: (0.2, 0.02),
        get: |p| p.head_switch_ms,
        set: |p, value| p.head_switch_ms = value,
    },
];

/// The seek points as figures: one for each.
fn seek_ms(profile: &mut DiskProfile, index: usize) -> Option<&mut f64> {
    profile.seek_points.as_mut().and_then(|points| points.get_mut(index)).map(|point| &mut point.ms)
}

/// Weight of the mean distance between the two times of the same request, relative to the demerits. A distribution may
/// fit because errors of both signs cancel; single requests do not.
const PAIRED_WEIGHT: f64 = 1.0;

/// Error of the model: the demerits of sequential and other reads and writes, each weighted by its number of requests.
/// Infinite for an impossible profile.
fn badness(profile: &DiskProfile, requests: &[Measured]) -> f64 {
    let Ok(modelled_ns) = replay(profile, requests) else { return f64::INFINITY };
    let mut sum = 0.0;
    for (op, follows) in [(Op::Read, false), (Op::Read, true), (Op::Write, false), (Op::Write, true)] {
        let pairs = requests.iter().zip(&modelled_ns).filter(|(m, _)| m.op == op && m.follows == follows);
        let (measured, modelled): (Vec<u64>, Vec<u64>) = pairs.map(|(m, ns)| (m.response_ns, *ns)).unzip();
        sum += demerit_ms(&measured, &modelled).0.powi(2) * measured.len() as f64;
    }
    let count = requests.len().max(1) as f64;
    let apart_ms = |(m, ns): (&Measured, &u64)| m.response_ns.abs_diff(*ns) as f64 / 1e6;
    let apart_ms = requests.iter().zip(&modelled_ns).map(apart_ms).sum::<f64>() / count;
    (sum / count).sqrt() + PAIRED_WEIGHT * apart_ms
}

/// Fits the figures, the seek points and the choices of the profile to the requests, by steps along one figure at a time.
pub fn fit(start: &DiskProfile, requests: &[Measured]) -> DiskProfile {
    let mut best = start.clone();
    let mut least = badness(&best, requests);
    let mut try_one = |best: &mut DiskProfile, candidate: DiskProfile| {
        let found = badness(&candidate, requests);
        let better = found < least * 0.9995;
        if better {
            (*best, least) = (candidate, found);
        }
        better
    };
    let points = start.seek_points.as_ref().map_or(0, Vec::len);
    let mut steps: Vec<f64> = FIGURES.iter().map(|figure| figure.steps.0).collect();
    let mut seek_steps = vec![0.2; points];
    let mut shift_step = 0.2;
    for _ in 0..12 {
        for kib in [0, 16, 32, 64, 96, 128, 192, 256] {
            let segment_kib = best.segment_kib.map(|segment| segment.max(kib));
            let candidate = DiskProfile { read_ahead_kib: kib, segment_kib, ..best.clone() };
            try_one(&mut best, candidate);
        }
        let flipped = DiskProfile { read_on_arrival: !best.read_on_arrival, ..best.clone() };
        try_one(&mut best, flipped);
        for (figure, step) in FIGURES.iter().zip(&mut steps) {
            let at = (figure.get)(&best);
            let moved = [at + *step, at - *step].into_iter().any(|value| {
                let mut candidate = best.clone();
                (figure.set)(&mut candidate, value);
                try_one(&mut best, candidate)
            });
            if !moved {
                *step = (*step / 2.0).max(figure.steps.1);
            }
        }
        // All seeks longer or shorter, then each point.
        let moved = [shift_step, -shift_step].into_iter().any(|by| {
            let mut candidate = best.clone();
            (0..points).for_each(|index| {
                seek_ms(&mut candidate, index).into_iter().for_each(|ms| *ms += by);
            });
            try_one(&mut best, candidate)
        });
        if !moved {
            shift_step /= 2.0;
        }
        for (index, step) in seek_steps.iter_mut().enumerate() {
            let moved = [*step, -*step].into_iter().any(|by| {
                let mut candidate = best.clone();
                seek_ms(&mut candidate, index).into_iter().for_each(|ms| *ms += by);
                try_one(&mut best, candidate)
            });
            if !moved {
                *step = (*step / 2.0).max(0.02);
            }
        }
    }
    best
}

/// The fitted lines of the profile file.
pub fn lines(profile: &DiskProfile) -> String {
    let mut text = String::from("seek_points:\n");
    for point in profile.seek_points.iter().flatten() {
        text += &format!("  - {{ distance_cylinders: {}, ms: {:.3} }}\n", point.distance_cylinders, point.ms);
    }
    for figure in FIGURES {
        text += &format!("{}: {:.3}\n", figure.name, (figure.get)(profile));
    }
    text += &format!(
        "read_on_arrival: {}\nread_ahead_kib: {}\n",
        profile.read_on_arrival, profile.read_ahead_kib
    );
    if let Some(segment_kib) = profile.segment_kib {
        text += &format!("segment_kib: {segment_kib}\n");
    }
    text
}
