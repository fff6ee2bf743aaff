//! Orders that policies promise.

use proptest::prelude::*;
use weir_scheduler::{Op, Request};

use crate::harness::{Choice, arrivals, policy, run};

fn least_due_ns(choice: &Choice) -> u64 {
    choice.waiting.iter().map(Request::due_ns).min().unwrap_or(u64::MAX)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn edf_serves_the_earliest_deadline(requests in arrivals(60)) {
        for choice in run(&mut *policy("edf", &[1, 1, 1], &[]), &requests, 1, true) {
            prop_assert_eq!(choice.chosen.due_ns(), least_due_ns(&choice));
        }
    }

    #[test]
    fn scan_edf_serves_the_earliest_deadline_up_to_a_batch(requests in arrivals(60), batch_ms in 0..100_u64) {
        let settings = batch_ms.to_string();
        let mut policy = policy("scan-edf", &[1, 1, 1], &[("batch_ms", &settings)]);
        for choice in run(&mut *policy, &requests, 1, true) {
            let latest_ns = least_due_ns(&choice).saturating_add(batch_ms * 1_000_000);
            prop_assert!(choice.chosen.due_ns() <= latest_ns);
        }
    }

    /// If all deadlines are equal nothing is left but the sweep.
    #[test]
    fn scan_edf_is_scan_among_equals(requests in arrivals(60), with_deadline in any::<bool>()) {
        let deadline_ns = with_deadline.then_some(1_000_000_000);
        let requests: Vec<Request> =
            requests.into_iter().map(|request| Request { deadline_ns, ..request }).collect();
        for (sweep, name) in [("scan", "scan"), ("c-scan", "c-scan")] {
            let by_deadline = run(&mut *policy("scan-edf", &[1], &[("sweep", sweep)]), &requests, 1, true);
            let by_scan = run(&mut *policy(name, &[1], &[]), &requests, 1, true);
            // Requests for one offset may change places: a batch that has been served is forgotten by SCAN-EDF.
            let offsets = |choices: &[Choice]| choices.iter().map(|choice| choice.chosen.offset_bytes).collect::<Vec<_>>();
            prop_assert_eq!(offsets(&by_deadline), offsets(&by_scan));
        }
    }

    /// Offsets of LOOK turn only where nothing waits ahead, and C-LOOK's go down only where nothing waits above.
    #[test]
    fn sweeps_go_one_way_while_there_is_something_ahead(requests in arrivals(60)) {
        for (name, circular) in [("look", false), ("scan", false), ("c-look", true), ("c-scan", true)] {
            let choices = run(&mut *policy(name, &[1, 1, 1], &[]), &requests, 1, true);
            // Unknown after a request for the offset where the sweep was with nothing ahead: it may have turned there.
            let mut up = Some(true);
            for pair in choices.windows(2) {
                let (from, to) = (pair[0].chosen.offset_bytes, pair[1].chosen.offset_bytes);
                let ahead = |up: bool| pair[1].waiting.iter().any(|request| match up {
                    true => request.offset_bytes > from,
                    false => request.offset_bytes < from,
                });
                match up {
                    _ if circular && to < from => prop_assert!(!ahead(true), "{name} went from {from} to {to}"),
                    _ if circular => {}
                    Some(way) if from == to => up = Some(way).filter(|way| ahead(*way)),
                    None if from == to => {}
                    Some(way) if (to > from) != way => {
                        prop_assert!(!ahead(way), "{name} turned at {from} to {to}");
                        up = Some(!way);
                    }
                    Some(_) => {}
                    None => up = Some(to > from),
                }
            }
        }
    }

    #[test]
    fn streams_of_a_class_keep_their_order_where_it_is_promised(requests in arrivals(60)) {
        for name in ["fcfs", "round-robin", "sfq", "wf2q+"] {
            let choices = run(&mut *policy(name, &[1, 3, 2], &[]), &requests, 1, true);
            for class in 0..3 {
                let tags: Vec<u64> =
                    choices.iter().filter(|choice| choice.chosen.class == class).map(|choice| choice.chosen.tag).collect();
                prop_assert!(tags.is_sorted(), "{name}: {tags:?}");
            }
        }
        let choices = run(&mut *policy("linux-kyber", &[1], &[]), &requests, 1, true);
        for op in [Op::Read, Op::Write] {
            let tags: Vec<u64> =
                choices.iter().filter(|choice| choice.chosen.op == op).map(|choice| choice.chosen.tag).collect();
            prop_assert!(tags.is_sorted(), "{tags:?}");
        }
    }

    /// Overdue requests begin batches of mq-deadline: no request waits longer than its expiry and the kernel's guaranteed
    /// batches: the running one, those of the requests of its direction that expired before, and of the other direction.
    #[test]
    fn mq_deadline_serves_what_has_expired(requests in arrivals(60)) {
        let settings = [("read_expire", "20"), ("write_expire", "50"), ("fifo_batch", "2")];
        let choices = run(&mut *policy("linux-mq-deadline", &[1], &settings), &requests, 1, true);
        for (index, choice) in choices.iter().enumerate() {
            let expiry_ns = if choice.chosen.op == Op::Read { 20_000_000 } else { 50_000_000 };
            let expires_ns = choice.chosen.arrived_ns + expiry_ns;
            let since: Vec<&Choice> = choices[..index].iter().filter(|past| past.now_ns >= expires_ns).collect();
            let Some(first) = since.first() else { continue };
            let older = first.waiting.iter().filter(|other| {
                other.op == choice.chosen.op && other.tag < choice.chosen.tag
            });
            // Each older one begins a batch of two at most, and each of these can have two of the other direction's
            // before it, of two; besides the one that is running.
            let batches = 1 + (older.count() + 1) * 3;
            prop_assert!(since.len() <= batches * 2, "{} waited for {}", choice.chosen.tag, since.len());
        }
    }

    /// Each request that the Linus elevator places ahead of another one costs it `seek_cost` of its counter. One sector at
    /// most is never merged.
    #[test]
    fn the_linus_elevator_places_a_bounded_number_ahead(
        requests in arrivals(80), read in 0..100_u64, write in 0..100_u64, cost in 1..20_u64,
    ) {
        let [read_latency, write_latency, seek_cost] = [read, write, cost].map(|number| number.to_string());
        let settings = [
            ("read_latency", read_latency.as_str()),
            ("write_latency", &write_latency),
            ("seek_cost", &seek_cost),
            ("max_sectors", "1"),
        ];
        let choices = run(&mut *policy("linux-elevator-linus", &[1], &settings), &requests, 1, true);
        for (place, choice) in choices.iter().enumerate() {
            let latency = if choice.chosen.op == Op::Read { read } else { write };
            let ahead = choices[..place].iter().filter(|past| past.chosen.tag > choice.chosen.tag).count();
            prop_assert!(ahead as u64 <= latency.div_ceil(cost), "{ahead} ahead of {}", choice.chosen.tag);
        }
    }
}
