//! Steady state of a device under a workload.

/// Rounds of a measurement window.
const WINDOW: usize = 5;

/// Whether the last five rounds are steady, as in SNIA's Solid State Storage Performance Test Specification 2.0.2 (3.2.4): the
/// difference of the largest and the smallest is within 20 % of their mean, and their best-fit line changes by at most 10 % of
/// the mean.
pub fn is_steady(rounds: &[f64]) -> bool {
    let Some(window) = rounds.len().checked_sub(WINDOW).map(|first| &rounds[first..]) else { return false };
    let mean = window.iter().sum::<f64>() / WINDOW as f64;
    let (least, most) =
        window.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), one| (a.min(*one), b.max(*one)));
    let middle = (WINDOW - 1) as f64 / 2.0;
    let (mut together, mut squares) = (0.0, 0.0);
    for (round, value) in window.iter().enumerate() {
        let at = round as f64 - middle;
        together += at * (value - mean);
        squares += at * at;
    }
    let change = together / squares * (WINDOW - 1) as f64;
    most - least <= 0.2 * mean && change.abs() <= 0.1 * mean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_of_five_rounds_decides() {
        assert!(!is_steady(&[1.0; 4]));
        assert!(is_steady(&[1.0; 5]));
        assert!(is_steady(&[9.0, 5.0, 1.0, 1.08, 0.92, 1.0, 1.0]));
        // 21 % between the largest and the smallest.
        assert!(!is_steady(&[1.0, 1.0, 1.21, 1.0, 1.0]));
        // Within 20 %, but rising by 12 %.
        assert!(!is_steady(&[0.94, 0.97, 1.0, 1.03, 1.06]));
        assert!(is_steady(&[0.96, 0.98, 1.0, 1.02, 1.04]));
    }
}
