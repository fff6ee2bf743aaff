//! Plan of a disk's day: requests per cell of 20 seconds.

use std::ops::Range;

use rand::Rng;

use crate::draw::{normal, unit, unit_mean_lognormal};
use crate::server::{Disk, ServerDay};

/// Length of a cell: a third of a minute.
pub(crate) const CELL_S: u32 = 20;
/// Cells of a day.
pub(crate) const DAY_CELLS: usize = (86_400 / CELL_S) as usize;
const MINUTE_CELLS: usize = (60 / CELL_S) as usize;
const HOUR_CELLS: usize = (3600 / CELL_S) as usize;
/// No other minute comes nearer to the busiest than this.
pub(crate) const SECOND_BUSIEST: f64 = 0.9;

/// Plan of a cell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    /// Requests in all.
    pub(crate) count: u32,
    /// How many of them fall into one second.
    pub(crate) spike: u32,
    /// The most in any second; 0: no limit.
    pub(crate) cap_per_s: u32,
    /// How many of them are one flush.
    pub(crate) flush: u32,
}

/// A disk's day.
pub(crate) fn plan(day: &ServerDay, disk: &Disk, rng: &mut impl Rng) -> Vec<Cell> {
    let weights = weights(day, rng);
    let mut cells = vec![Cell::default(); DAY_CELLS];
    let window: Vec<usize> = day.window.map_or_else(Vec::new, |window| {
        ((window.from_s / CELL_S) as usize..(window.to_s / CELL_S) as usize).collect()
    });
    let windowed = |cell: &usize| window.contains(cell);
    let cell_cap = (f64::from(disk.peak_per_minute) * SECOND_BUSIEST / MINUTE_CELLS as f64).floor();

    if !window.is_empty() {
        let peak = disk.window.peak_per_s;
        let caps: Vec<f64> = vec![cell_cap.min(f64::from(peak) * f64::from(CELL_S)); window.len()];
        let own: Vec<f64> = window.iter().map(|cell| weights[*cell]).collect();
        let mut counts = fill(&own, &caps, disk.window.requests, rng);
        if peak > 0 {
            gather(&mut counts, peak);
            // The fullest cell holds the busiest second.
            let fullest = (0..counts.len()).max_by_key(|at| counts[*at]).unwrap_or(0);
            cells[window[fullest]].spike = peak;
        }
        for (cell, count) in window.iter().zip(counts) {
            cells[*cell].count = count;
            cells[*cell].cap_per_s = peak;
        }
    }

    let load = known_load(disk, &weights, &cells, windowed);
    let minutes: Vec<f64> = (0..DAY_CELLS / MINUTE_CELLS)
        .map(|minute| {
            let own = minute * MINUTE_CELLS..(minute + 1) * MINUTE_CELLS;
            let load = load[own.start / HOUR_CELLS];
            if own.clone().any(|cell| windowed(&cell)) {
                0.0
            } else {
                load * own.map(|cell| weights[cell]).sum::<f64>()
            }
        })
        .collect();
    let busiest = draw_index(&minutes, rng) * MINUTE_CELLS;
    let flush = disk.longest_flush.min(disk.peak_per_minute);
    // A long flush must end within its cell to be one; the rest of the minute shares the remainder.
    let left = disk.peak_per_minute - flush;
    for (at, cell) in cells[busiest..busiest + MINUTE_CELLS].iter_mut().enumerate() {
        cell.count = left / 3 + u32::from((at as u32) < left % 3);
        if at == 0 {
            cell.count += flush;
            cell.flush = flush;
        }
    }

    let is_open = |cell: &usize| !windowed(cell) && !(busiest..busiest + MINUTE_CELLS).contains(cell);
    let mut share = |cells: &mut [Cell], own: Vec<usize>, count: u32| {
        let weights: Vec<f64> = own.iter().map(|cell| weights[*cell]).collect();
        let counts = fill(&weights, &vec![cell_cap; own.len()], count, rng);
        for (cell, count) in own.into_iter().zip(counts) {
            cells[cell].count = count;
        }
    };
    for known in &disk.known_hours {
        let hour = hour_cells(known.hour);
        let count = known.requests.saturating_sub(requests_of(&cells[hour.clone()]));
        share(&mut cells, hour.filter(is_open).collect(), count);
    }
    let is_known = |cell: &usize| disk.known_hours.iter().any(|known| hour_cells(known.hour).contains(cell));
    let rest = disk.requests.saturating_sub(requests_of(&cells));
    share(&mut cells, (0..DAY_CELLS).filter(|cell| is_open(cell) && !is_known(cell)).collect(), rest);
    cells
}

fn hour_cells(hour: u8) -> Range<usize> {
    usize::from(hour) * HOUR_CELLS..(usize::from(hour) + 1) * HOUR_CELLS
}

fn requests_of(cells: &[Cell]) -> u32 {
    cells.iter().map(|cell| cell.count).sum()
}

/// Requests by weight of each hour: by how much a known hour is busier than its weights say. All 1 if none is known.
fn known_load(disk: &Disk, weights: &[f64], cells: &[Cell], windowed: impl Fn(&usize) -> bool) -> [f64; 24] {
    let mut load = [1.0; 24];
    if disk.known_hours.is_empty() {
        return load;
    }
    let by_weight = |own: Vec<usize>, requests: u32| {
        let count = requests.saturating_sub(own.iter().map(|cell| cells[*cell].count).sum());
        let weight: f64 = own.iter().filter(|cell| !windowed(cell)).map(|cell| weights[*cell]).sum();
        if weight > 0.0 { f64::from(count) / weight } else { 0.0 }
    };
    let is_known = |cell: &usize| disk.known_hours.iter().any(|known| hour_cells(known.hour).contains(cell));
    let known: u32 = disk.known_hours.iter().map(|known| known.requests).sum();
    let others = (0..DAY_CELLS).filter(|cell| !is_known(cell)).collect();
    load = [by_weight(others, disk.requests.saturating_sub(known)); 24];
    for known in &disk.known_hours {
        load[usize::from(known.hour)] = by_weight(hour_cells(known.hour).collect(), known.requests);
    }
    load
}

/// Relative load at a time of day.
pub(crate) fn profile(day: &ServerDay, at_s: u32) -> f64 {
    match day.spike {
        Some(spike) if (spike.from_s..spike.to_s).contains(&at_s) => spike.weight,
        _ => day.hours.get((at_s / 3600) as usize).copied().unwrap_or(0.0),
    }
}

/// Expected load of each cell, in the measure of the hours, with the day's own variation.
fn weights(day: &ServerDay, rng: &mut impl Rng) -> Vec<f64> {
    let rho = libm::exp(-f64::from(CELL_S) / day.cell_memory_s);
    let mut z = normal(rng);
    (0..DAY_CELLS as u32)
        .map(|cell| {
            let profile = profile(day, cell * CELL_S);
            let weight = profile * unit_mean_lognormal(z, day.cell_cov);
            z = rho * z + (1.0 - rho * rho).sqrt() * normal(rng);
            weight
        })
        .collect()
}

/// Distributes `total` over cells in proportion to their weights, none above its cap (a whole number).
///
/// If the caps suffice, all of it is distributed; counts differ from exact proportion by less than 1.
pub(crate) fn fill(weights: &[f64], caps: &[f64], total: u32, rng: &mut impl Rng) -> Vec<u32> {
    let mut shares = vec![0.0; weights.len()];
    let mut open: Vec<usize> =
        (0..weights.len()).filter(|at| weights[*at] > 0.0 && caps[*at] >= 1.0).collect();
    let mut left = f64::from(total);
    loop {
        let sum: f64 = open.iter().map(|at| weights[*at]).sum();
        let (over, under): (Vec<usize>, Vec<usize>) =
            open.iter().partition(|at| left * weights[**at] / sum > caps[**at]);
        if over.is_empty() {
            open.iter().for_each(|at| shares[*at] = left * weights[*at] / sum);
            break;
        }
        for at in over {
            shares[at] = caps[at];
            left -= caps[at];
        }
        open = under;
    }
    // Systematic rounding: whole steps of the running sum, from a random phase.
    let phase = unit(rng);
    let (mut sum, mut dealt) = (phase, 0u32);
    let mut counts: Vec<u32> = shares
        .iter()
        .map(|share| {
            sum += share;
            let count = (sum.floor() as u32).saturating_sub(dealt);
            dealt += count;
            count
        })
        .collect();
    // Rounding of the running sum may have cost or gained one.
    while dealt != total {
        let room =
            |at: &usize| if dealt < total { f64::from(counts[*at]) < caps[*at] } else { counts[*at] > 0 };
        let Some(at) = (0..counts.len()).filter(room).max_by(|a, b| shares[*a].total_cmp(&shares[*b])) else {
            break;
        };
        if dealt < total {
            counts[at] += 1;
            dealt += 1;
        } else {
            counts[at] -= 1;
            dealt -= 1;
        }
    }
    counts
}

/// Takes from the others, fullest first, until one cell holds at least `least`.
fn gather(counts: &mut [u32], least: u32) {
    let Some(to) = (0..counts.len()).max_by_key(|at| counts[*at]) else { return };
    while counts[to] < least {
        let from = (0..counts.len()).filter(|at| *at != to).max_by_key(|at| counts[*at]);
        match from {
            Some(from) if counts[from] > 0 => {
                let moved = counts[from].min(least - counts[to]);
                counts[from] -= moved;
                counts[to] += moved;
            }
            _ => break,
        }
    }
}

/// An index in proportion to its weight.
fn draw_index(weights: &[f64], rng: &mut impl Rng) -> usize {
    let mut left = unit(rng) * weights.iter().sum::<f64>();
    for (at, weight) in weights.iter().enumerate() {
        left -= weight;
        if left < 0.0 {
            return at;
        }
    }
    weights.iter().rposition(|weight| *weight > 0.0).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    proptest! {
        #[test]
        fn fill_deals_everything_within_the_caps(
            weights in prop::collection::vec(0.0f64..100.0, 1..60),
            cap in 1u32..50,
            share in 0.0f64..=1.0,
            seed in any::<u64>(),
        ) {
            let open = weights.iter().filter(|weight| **weight > 0.0).count() as u32;
            let total = (f64::from(open * cap) * share) as u32;
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let counts = fill(&weights, &vec![f64::from(cap); weights.len()], total, &mut rng);
            prop_assert_eq!(counts.iter().sum::<u32>(), total);
            prop_assert!(counts.iter().all(|count| *count <= cap));
        }
    }

    #[test]
    fn gathering_keeps_the_sum() {
        let mut counts = [3, 1, 2, 0];
        gather(&mut counts, 5);
        assert_eq!(counts, [5, 1, 0, 0]);
        gather(&mut counts, 50);
        assert_eq!(counts, [6, 0, 0, 0]);
    }
}
