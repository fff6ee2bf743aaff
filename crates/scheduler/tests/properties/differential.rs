//! Each plain policy against its definition.

use proptest::prelude::*;
use weir_scheduler::{Decision, Policy, Request};

use crate::harness::{arrivals, disk, policy, run};
use crate::references::{self, Reference};

/// What every request takes on the server of [`order`].
pub const SERVICE_NS: u64 = 10_000_000;

fn check(name: &str, settings: &[(&str, &str)], requests: &[Request], mut reference: Reference) {
    for choice in run(&mut *policy(name, &[1, 1, 1], settings), requests, 1, true) {
        assert_eq!(choice.chosen, reference(&choice), "{name} {settings:?}: {choice:?}");
    }
}

/// Tags in the order of service, where every request takes the same time.
fn order(policy: &mut dyn Policy, requests: &[Request]) -> Vec<u64> {
    let mut order = Vec::new();
    let mut arrivals = requests.iter().peekable();
    let mut now_ns = 0;
    let disk = disk();
    let mut in_service: Option<(Request, u64)> = None;
    loop {
        while let Some(request) = arrivals.next_if(|request| request.arrived_ns <= now_ns) {
            policy.arrive(now_ns, *request, &disk);
        }
        if let Some((request, begun_ns)) = in_service.take() {
            policy.complete(now_ns, &request, begun_ns);
        }
        match (policy.next(now_ns, &disk), arrivals.peek()) {
            (Decision::Serve(request), _) => {
                order.push(request.tag);
                in_service = Some((request, now_ns));
                now_ns += SERVICE_NS;
            }
            (_, Some(next)) => now_ns = next.arrived_ns,
            (_, None) => return order,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn plain_policies_are_as_they_are_defined(requests in arrivals(80), n in 1..8_usize) {
        check("fcfs", &[], &requests, references::fcfs());
        check("edf", &[], &requests, references::edf());
        check("sstf", &[], &requests, references::sstf());
        check("satf", &[], &requests, references::satf(0));
        check("satf", &[("age_weight", "0.25")], &requests, references::satf(250_000));
        check("look", &[], &requests, references::look(false));
        check("scan", &[], &requests, references::look(false));
        check("c-look", &[], &requests, references::look(true));
        check("c-scan", &[], &requests, references::look(true));
        check("fscan", &[], &requests, references::n_step_scan(usize::MAX));
        check("n-step-scan", &[("n", &n.to_string())], &requests, references::n_step_scan(n));
        check("scan-edf", &[], &requests, references::scan_edf(false));
        check("scan-edf", &[("sweep", "c-scan")], &requests, references::scan_edf(true));
    }

    /// Weights that are powers of two, also in sum, for which virtual time is exact.
    #[test]
    fn fair_queueing_is_as_it_is_defined(requests in arrivals(80)) {
        for weights in [[1, 1, 2], [2, 1, 1], [1, 2, 1]] {
            let sfq = order(&mut *policy("sfq", &weights, &[]), &requests);
            prop_assert_eq!(sfq, references::sfq(&weights, &requests));
            let wf2q = order(&mut *policy("wf2q+", &weights, &[]), &requests);
            prop_assert_eq!(wf2q, references::wf2q_plus(&weights, &requests));
        }
    }
}
