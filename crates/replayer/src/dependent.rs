//! Dependencies between requests, inferred from recorded times.
//!
//! A request depends on the requests that completed within a window before it was sent, except for those that another of them
//! already depends on. Its think time is the time from the last of these completions to the request. A replay that keeps
//! dependencies and think times sends earlier on a faster device and later on a slower one. Haghdoost, He, Fredin and Du, "On
//! the Accuracy and Scalability of Intensive I/O Workload Replay" (FAST 2017), infer dependencies of block traces for the same
//! purpose; the rule here is weir's own. A window that is too long finds false dependencies, a window that is too short misses
//! true ones.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::sync::Arc;

use smallvec::SmallVec;
use weir_records::Request;

use crate::step::{After, Step};

/// Most requests that one waits for: those that completed last.
const MOST: usize = 64;

/// Settings of the inference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Inference {
    /// Longest time from a completion to a request that depends on it.
    pub window_ns: i64,
    /// Whether only requests of the same class and client depend on one another.
    pub within_client: bool,
    /// Factor on think times.
    pub think_scale: f64,
}

/// A recorded stream, in order of intended time, with its dependencies.
///
/// A request was sent when it was submitted, or when it was intended if that is not known; one whose completion is not known
/// is waited for by none.
pub struct Dependent<I> {
    source: I,
    inference: Inference,
    number: u64,
    asking: HashMap<Option<(Arc<str>, u32)>, Asking>,
}

/// Requests of those who may wait for one another.
#[derive(Default)]
struct Asking {
    /// By time of completion.
    outstanding: BinaryHeap<Reverse<Served>>,
    /// Completed within the last window, by time of completion.
    recent: VecDeque<Served>,
}

/// A request that was served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Served {
    completed_ns: i64,
    sent_ns: i64,
    number: u64,
}

impl<I: Iterator<Item = Request>> Dependent<I> {
    /// Infers the dependencies of `source`.
    pub fn new(source: I, inference: Inference) -> Self {
        Dependent { source, inference, number: 0, asking: HashMap::new() }
    }
}

impl<I: Iterator<Item = Request>> Iterator for Dependent<I> {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        let request = self.source.next()?;
        let number = self.number;
        self.number += 1;
        let key = self.inference.within_client.then(|| (Arc::clone(&request.class), request.client));
        let asking = self.asking.entry(key).or_default();
        let sent_ns = request.submitted_ns.unwrap_or(request.intended_ns);
        let after = asking.after(sent_ns, number, self.inference);
        if let Some(completed_ns) = request.completed_ns {
            asking.outstanding.push(Reverse(Served { completed_ns, sent_ns, number }));
        }
        Some(Step { request, after })
    }
}

impl Asking {
    fn after(&mut self, sent_ns: i64, number: u64, inference: Inference) -> After {
        while let Some(Reverse(first)) = self.outstanding.peek()
            && first.completed_ns <= sent_ns
        {
            self.recent.push_back(*first);
            self.outstanding.pop();
        }
        while self.recent.front().is_some_and(|first| {
            first.completed_ns < sent_ns.saturating_sub(inference.window_ns)
                || number - first.number > u64::from(After::FURTHEST)
        }) {
            self.recent.pop_front();
        }
        // Whoever sent the last of them had seen all that completed before it.
        let seen_ns = self.recent.iter().map(|served| served.sent_ns).max().unwrap_or(i64::MIN);
        let waited: SmallVec<[Served; 8]> = self
            .recent
            .iter()
            .rev()
            .take_while(|served| served.completed_ns > seen_ns)
            .filter(|served| number - served.number <= u64::from(After::FURTHEST))
            .take(MOST)
            .copied()
            .collect();
        let Some(last) = waited.first().or(self.recent.back()).copied() else { return After::default() };
        let waited = if waited.is_empty() { SmallVec::from_slice(&[last]) } else { waited };
        let think_ns = (sent_ns - last.completed_ns) as f64 * inference.think_scale;
        After {
            back: waited.iter().map(|served| (number - served.number) as u32).collect(),
            think_ns: think_ns as i64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn request(number: u64, client: u32, sent_ns: i64, completed_ns: Option<i64>) -> Request {
        Request { client, completed_ns, ..testing::request(number, sent_ns) }
    }

    /// For each request, which it waits for, and its think time.
    fn inferred(times: &[(u32, i64, i64)], inference: Inference) -> Vec<(Vec<u32>, i64)> {
        let stream = times.iter().enumerate().map(|(number, (client, sent, completed))| {
            request(number as u64, *client, *sent, (*completed >= 0).then_some(*completed))
        });
        Dependent::new(stream, inference)
            .map(|step| (step.after.back.to_vec(), step.after.think_ns))
            .collect()
    }

    const ALL: Inference = Inference { window_ns: 100, within_client: false, think_scale: 1.0 };

    #[test]
    fn a_closed_loop_is_a_chain_with_think_times() {
        let found = inferred(&[(0, 0, 50), (0, 60, 90), (0, 95, 120), (0, 300, 310)], ALL);
        // The last came after a pause that is longer than the window.
        assert_eq!(found, [(vec![], 0), (vec![1], 10), (vec![1], 5), (vec![], 0)]);
        let slow = Inference { think_scale: 2.0, ..ALL };
        assert_eq!(inferred(&[(0, 0, 50), (0, 60, 90)], slow)[1], (vec![1], 20));
    }

    #[test]
    fn who_waited_for_several_waits_for_all_and_for_none_twice() {
        // Two at once, then one that follows both, then one that follows that one.
        let found = inferred(&[(0, 0, 40), (0, 1, 50), (0, 60, 70), (0, 75, 80)], ALL);
        assert_eq!(found[2], (vec![1, 2], 10));
        assert_eq!(found[3], (vec![1], 5));
        // Outstanding requests are waited for by none.
        let found = inferred(&[(0, 0, 400), (0, 10, 20), (0, 30, 35), (0, 40, -1), (0, 50, 60)], ALL);
        assert_eq!(found[2..], [(vec![1], 10), (vec![1], 5), (vec![2], 15)]);
    }

    #[test]
    fn clients_can_be_kept_apart() {
        let times = [(0, 0, 40), (1, 50, 60), (0, 55, 70)];
        let apart = Inference { within_client: true, ..ALL };
        assert_eq!(inferred(&times, apart)[1..], [(vec![], 0), (vec![2], 15)]);
        assert_eq!(inferred(&times, ALL)[1..], [(vec![1], 10), (vec![2], 15)]);
    }
}
