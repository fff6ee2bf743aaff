//! Shares by weight.

use proptest::prelude::*;
use weir_scheduler::{Decision, Policy, Request};

use crate::harness::{disk, policy};

/// A class's weight, and the sizes of its requests.
type Demand = (u32, Vec<u32>);

fn demands() -> impl Strategy<Value = Vec<Demand>> {
    prop::collection::vec((1..10_u32, prop::collection::vec(1..5000_u32, 40..60)), 2..5)
}

fn weights(demands: &[Demand]) -> Vec<u32> {
    demands.iter().map(|(weight, _)| *weight).collect()
}

/// Serves classes that all have requests from the beginning, one at a time, until one has none: bytes of each class
/// after each request, from zero on.
fn served(policy: &mut dyn Policy, demands: &[Demand]) -> Vec<Vec<i128>> {
    let mut disk = disk();
    let longest = demands.iter().map(|(_, sizes)| sizes.len()).max().unwrap_or(0);
    for index in 0..longest {
        for (class, (_, sizes)) in (0..).zip(demands) {
            let Some(size_bytes) = sizes.get(index) else { continue };
            let request = Request {
                tag: index as u64,
                class,
                stream: 0,
                op: weir_scheduler::Op::Read,
                offset_bytes: index as u64 * 512,
                size_bytes: *size_bytes,
                arrived_ns: 0,
                deadline_ns: None,
            };
            policy.arrive(0, request, &disk);
        }
    }
    let mut left: Vec<usize> = demands.iter().map(|(_, sizes)| sizes.len()).collect();
    let mut bytes = vec![vec![0; demands.len()]];
    let mut now_ns = 0;
    while left.iter().all(|left| *left > 0) {
        let Decision::Serve(request) = policy.next(now_ns, &disk) else { panic!("requests wait") };
        disk.serve(&request);
        policy.complete(now_ns + 1000, &request, now_ns);
        now_ns += 1000;
        let class = usize::from(request.class);
        left[class] -= 1;
        let mut sum = bytes.last().cloned().unwrap_or_default();
        sum[class] += i128::from(request.size_bytes);
        bytes.push(sum);
    }
    bytes
}

/// Whether, between any two moments at which requests are done, the work by weight of any two classes differs by no more
/// than `bound` bytes of each by its weight.
fn differ_by_at_most(
    bytes: &[Vec<i128>],
    weights: &[u32],
    bound: impl Fn(usize) -> i128,
) -> Result<(), String> {
    for (i, wi) in weights.iter().map(|weight| i128::from(*weight)).enumerate() {
        for (j, wj) in weights.iter().map(|weight| i128::from(*weight)).enumerate().take(i) {
            // |Wi / wi - Wj / wj| <= bi / wi + bj / wj, times wi wj. The greatest difference of any interval is that of
            // the greatest and the least of the running difference.
            let ahead = bytes.iter().map(|sum| sum[i] * wj - sum[j] * wi);
            let spread = ahead.clone().max().unwrap_or(0) - ahead.min().unwrap_or(0);
            let most = bound(i) * wj + bound(j) * wi;
            if spread > most {
                return Err(format!("classes {j} and {i} differ by {spread}, more than {most}"));
            }
        }
    }
    Ok(())
}

fn greatest(demands: &[Demand], class: usize) -> i128 {
    i128::from(demands[class].1.iter().copied().max().unwrap_or(0))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Goyal, Vin and Cheng 1996, Theorem 1.
    #[test]
    fn sfq_is_fair(demands in demands()) {
        let weights = weights(&demands);
        let bytes = served(&mut *policy("sfq", &weights, &[]), &demands);
        prop_assert_eq!(differ_by_at_most(&bytes, &weights, |class| greatest(&demands, class)), Ok(()));
    }

    /// Bennett and Zhang 1996, Theorem 4 and Definition 2: whenever a request of a backlogged class is done, the class
    /// has had its share of the work since any earlier moment, less at most L_i + (L - L_i) share, where L_i is its
    /// greatest request and L the greatest of all.
    #[test]
    fn wf2q_plus_is_worst_case_fair(demands in demands()) {
        let weights = weights(&demands);
        let bytes = served(&mut *policy("wf2q+", &weights, &[]), &demands);
        let total: i128 = weights.iter().map(|weight| i128::from(*weight)).sum();
        let greatest_of_all = (0..demands.len()).map(|class| greatest(&demands, class)).max().unwrap_or(0);
        for (class, weight) in weights.iter().map(|weight| i128::from(*weight)).enumerate() {
            let own = greatest(&demands, class);
            // Maximum deficit to its share of the work in any interval, times the total weight.
            let most = own * total + (greatest_of_all - own) * weight;
            let behind = |sum: &Vec<i128>| sum.iter().sum::<i128>() * weight - sum[class] * total;
            let mut least = 0;
            for pair in bytes.windows(2) {
                if pair[1][class] > pair[0][class] {
                    let now = behind(&pair[1]) - least;
                    prop_assert!(now <= most, "class {class} is behind by {now}, more than {most}");
                }
                least = least.min(behind(&pair[1]));
            }
        }
    }

    /// And it does not run ahead from the beginning by more than a request, which plain WFQ does.
    #[test]
    fn wf2q_plus_does_not_run_ahead(demands in demands()) {
        let weights = weights(&demands);
        let bytes = served(&mut *policy("wf2q+", &weights, &[]), &demands);
        let total: i128 = weights.iter().map(|weight| i128::from(*weight)).sum();
        for (class, weight) in weights.iter().map(|weight| i128::from(*weight)).enumerate() {
            let own = greatest(&demands, class);
            for sum in &bytes {
                let ahead = sum[class] * total - sum.iter().sum::<i128>() * weight;
                prop_assert!(ahead <= own * total, "class {class} is ahead by {ahead}");
            }
        }
    }

    #[test]
    fn bfq_is_fair_up_to_two_budgets(demands in demands(), budget in 1..40_u32) {
        let weights = weights(&demands);
        // It counts sectors.
        let demands: Vec<Demand> = demands
            .into_iter()
            .map(|(weight, sizes)| (weight, sizes.into_iter().map(|size| size.div_ceil(512) * 512).collect()))
            .collect();
        let max_budget = budget.to_string();
        let mut policy = policy("linux-bfq", &weights, &[("max_budget", &max_budget), ("slice_idle", "0")]);
        let bytes = served(&mut *policy, &demands);
        let bound = |class| 2 * greatest(&demands, class).max(i128::from(budget) * 512);
        prop_assert_eq!(differ_by_at_most(&bytes, &weights, bound), Ok(()));
    }

    /// The counterpart: that the tests above can fail.
    #[test]
    fn round_robin_does_not_know_weights(sizes in prop::collection::vec(1000..1001_u32, 50..60)) {
        let demands = [(1, sizes.clone()), (9, sizes)];
        let weights = weights(&demands);
        let bytes = served(&mut *policy("round-robin", &weights, &[]), &demands);
        prop_assert!(differ_by_at_most(&bytes, &weights, |class| greatest(&demands, class)).is_err());
    }
}
