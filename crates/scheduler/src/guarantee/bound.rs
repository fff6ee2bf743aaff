//! Schedulability bound for fixed priorities.

/// The utilisation up to which any `tasks` tasks meet their deadlines under rate-monotonic priorities with preemption:
/// n (2^(1/n) - 1), from 1 down to ln 2; 1 for none. Liu and Layland 1973, theorem 5. Sufficient, not necessary.
pub fn rate_monotonic_bound(tasks: u32) -> f64 {
    if tasks == 0 {
        return 1.0;
    }
    let n = f64::from(tasks);
    // exp_m1 keeps the digits that 2^(1/n) - 1 would lose for large n.
    n * (std::f64::consts::LN_2 / n).exp_m1()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_of_liu_and_layland() {
        let bounds = [(1, 1.0), (2, 0.828_427), (3, 0.779_763), (4, 0.756_828), (10, 0.717_735)];
        for (tasks, bound) in bounds {
            assert!((rate_monotonic_bound(tasks) - bound).abs() < 5e-7, "{tasks}");
        }
        assert!((rate_monotonic_bound(u32::MAX) - std::f64::consts::LN_2).abs() < 1e-9);
        assert_eq!(rate_monotonic_bound(0), 1.0);
    }
}
