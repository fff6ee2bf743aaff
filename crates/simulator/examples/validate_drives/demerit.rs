//! How far two sets of times lie apart.

/// Root of the mean squared horizontal distance of the two cumulative distributions, in ms, and in percent of the mean of
/// the measured times: the demerit figure of C. Ruemmler and J. Wilkes, "An introduction to disk drive modeling", IEEE
/// Computer 27(3), 1994. The two sets have the same size, so the distances are those of the sorted times.
pub fn demerit_ms(measured_ns: &[u64], modelled_ns: &[u64]) -> (f64, f64) {
    let (mut measured, mut modelled) = (measured_ns.to_vec(), modelled_ns.to_vec());
    measured.sort_unstable();
    modelled.sort_unstable();
    let count = measured.len().max(1) as f64;
    let square = |(a, b): (&u64, &u64)| ((*a as f64 - *b as f64) / 1e6).powi(2);
    let rms_ms = (measured.iter().zip(&modelled).map(square).sum::<f64>() / count).sqrt();
    let mean_ms = measured.iter().sum::<u64>() as f64 / count / 1e6;
    (rms_ms, rms_ms / mean_ms * 100.0)
}
