//! Arrivals in windows of 1 ms, 2 ms, 4 ms ... 2^22 ms (70 minutes), all in one pass and in constant memory.
//!
//! A window of one scale is two of the scale below, so only windows that are not empty are passed upwards: the cost of a
//! request does not depend on the length of pauses. Windows begin with the first arrival. The last window is incomplete
//! and not counted.

use serde::Serialize;

/// The finest window.
const BASE_NS: i64 = 1_000_000;
/// Scales.
const SCALES: usize = 23;

#[derive(Debug, Clone, Copy, Default)]
struct Scale {
    /// The current window, and the counts of its two halves.
    window: i64,
    halves: [u64; 2],
    /// Sums over the windows that are done.
    squares: f64,
    sum: u64,
    largest: u64,
    /// Squared differences between the halves: the energy of Haar's wavelet.
    energy: f64,
}

/// Counts arrivals at all scales.
#[derive(Debug)]
pub struct Scales {
    scales: [Scale; SCALES],
}

/// Counts at one scale.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AtScale {
    /// Length of a window.
    pub window_ns: i64,
    /// Whole windows from the first arrival to the last.
    pub windows: u64,
    /// Mean of arrivals in a window.
    pub mean: f64,
    /// Variance of arrivals in a window.
    pub variance: f64,
    /// Index of dispersion for counts: variance by mean; 1 at all scales for a Poisson process.
    pub dispersion: f64,
    /// Most arrivals in a window, by the mean.
    pub peak_to_mean: f64,
    /// Mean square of Haar's wavelet coefficients at this scale, from the difference of a window's halves; absent at
    /// the finest one.
    pub wavelet_energy: Option<f64>,
}

impl Default for Scales {
    fn default() -> Self {
        Scales { scales: [Scale::default(); SCALES] }
    }
}

impl Scales {
    /// Counts an arrival, in ns since the first one; not earlier than any before.
    pub fn add(&mut self, since_first_ns: i64) {
        let window = since_first_ns / BASE_NS;
        if self.scales[0].window == window {
            self.scales[0].halves[0] += 1;
            return;
        }
        self.advance(window);
        self.scales[0].halves[0] = 1;
    }

    /// Ends the windows before this one of the finest scale.
    fn advance(&mut self, window: i64) {
        for level in 0..SCALES {
            let to = window >> level;
            let (done, count) = {
                let scale = &mut self.scales[level];
                if scale.window == to {
                    return;
                }
                let count = scale.halves[0] + scale.halves[1];
                scale.sum += count;
                scale.squares += count as f64 * count as f64;
                scale.largest = scale.largest.max(count);
                if level > 0 {
                    let difference = scale.halves[0] as f64 - scale.halves[1] as f64;
                    scale.energy += difference * difference;
                }
                scale.halves = [0; 2];
                (std::mem::replace(&mut scale.window, to), count)
            };
            if let Some(above) = self.scales.get_mut(level + 1) {
                above.halves[(done & 1) as usize] += count;
            }
        }
    }

    /// Counts, from the finest scale; scales with fewer than two whole windows are left out.
    pub fn finish(&self) -> Vec<AtScale> {
        let mut found = Vec::new();
        for (level, scale) in self.scales.iter().enumerate() {
            let windows = scale.window as u64;
            if windows < 2 || scale.sum == 0 {
                break;
            }
            let (n, sum) = (windows as f64, scale.sum as f64);
            let mean = sum / n;
            let variance = ((scale.squares - sum * mean) / (n - 1.0)).max(0.0);
            // 2^level finest windows: the wavelet is 2^(-level/2) on one half and minus that on the other.
            let energy = (level > 0).then(|| scale.energy / n / (1_u64 << level) as f64);
            found.push(AtScale {
                window_ns: BASE_NS << level,
                windows,
                mean,
                variance,
                dispersion: variance / mean,
                peak_to_mean: scale.largest as f64 / mean,
                wavelet_energy: energy,
            });
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn arrivals_like_a_clock_have_no_dispersion() {
        let mut scales = Scales::default();
        (0..10_000).for_each(|i| scales.add(i * BASE_NS / 4));
        for scale in scales.finish() {
            assert!(scale.dispersion < 1e-9 && scale.peak_to_mean < 1.0 + 1e-9, "{scale:?}");
            assert!(scale.wavelet_energy.unwrap_or(0.0) < 1e-9);
        }
    }

    proptest! {
        /// The cascade against windows that are counted one by one.
        #[test]
        fn each_scale_is_what_counting_gives(gaps in prop::collection::vec(0_i64..9_000_000, 2..200)) {
            let mut scales = Scales::default();
            let mut at = 0;
            let times: Vec<i64> = gaps.iter().map(|gap| { let now = at; at += gap; now }).collect();
            times.iter().for_each(|time| scales.add(*time));
            let last = times[times.len() - 1];
            for (level, found) in scales.finish().iter().enumerate() {
                let window_ns = BASE_NS << level;
                let n = (last / window_ns) as usize;
                let mut counts = vec![0.0_f64; n];
                let mut halves = vec![0.0_f64; 2 * n];
                for time in &times {
                    if let Some(count) = counts.get_mut((time / window_ns) as usize) {
                        *count += 1.0;
                        halves[(time / (window_ns / 2)) as usize] += 1.0;
                    }
                }
                let mean = counts.iter().sum::<f64>() / n as f64;
                let variance = counts.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / (n as f64 - 1.0);
                prop_assert_eq!(found.windows, n as u64);
                prop_assert!((found.mean - mean).abs() < 1e-9);
                prop_assert!((found.variance - variance).abs() < 1e-6);
                if let Some(energy) = found.wavelet_energy {
                    let sum: f64 = halves.chunks(2).map(|pair| (pair[0] - pair[1]).powi(2)).sum();
                    prop_assert!((energy - sum / n as f64 / (1_u64 << level) as f64).abs() < 1e-6);
                }
            }
        }
    }
}
