//! Requests that wait for others, and those that can be sent, by time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use smallvec::SmallVec;

use crate::feed::Planned;
use crate::step::After;

/// Most requests that are held: reading further ahead finds few that can be sent.
const MOST_HELD: usize = 65_536;

/// Requests of a stream with dependencies, by their numbers in it.
pub(crate) struct Graph {
    /// Time and number of requests that wait for no other.
    due: BinaryHeap<Reverse<(i64, u64)>>,
    held: HashMap<u64, Held>,
    /// The last requests of the stream, from `first` on.
    nodes: VecDeque<Node>,
    first: u64,
    /// Whether the stream has ended.
    pub ended: bool,
}

struct Held {
    planned: Planned,
    /// Requests that it still waits for.
    missing: usize,
    /// When the last of the others completed.
    latest_ns: i64,
}

#[derive(Default)]
struct Node {
    done_ns: Option<i64>,
    waiting: SmallVec<[u64; 2]>,
}

impl Graph {
    pub fn new() -> Self {
        Graph { due: BinaryHeap::new(), held: HashMap::new(), nodes: VecDeque::new(), first: 0, ended: false }
    }

    /// Whether more of the stream should be read.
    pub fn wants_more(&self) -> bool {
        !self.ended && self.held.len() < MOST_HELD
    }

    /// Whether no request is held.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Adds the next request of the stream.
    pub fn push(&mut self, mut planned: Planned) {
        let number = self.add_node();
        planned.number = number;
        let mut held = Held { missing: 0, latest_ns: i64::MIN, planned };
        for back in &held.planned.after.back {
            let Some(earlier) = number.checked_sub(u64::from(*back)) else { continue };
            // Of those that were forgotten, all are done.
            let Some(node) = earlier.checked_sub(self.first).and_then(|at| self.nodes.get_mut(at as usize))
            else {
                continue;
            };
            match node.done_ns {
                Some(done_ns) => held.latest_ns = held.latest_ns.max(done_ns),
                None => {
                    node.waiting.push(number);
                    held.missing += 1;
                }
            }
        }
        if held.missing == 0 {
            self.due.push(Reverse((held.release(), number)));
        }
        self.held.insert(number, held);
    }

    /// Counts a request of the stream that cannot be sent: nobody waits for it.
    pub fn skip(&mut self, intended_ns: i64) {
        let number = self.add_node();
        self.done(number, intended_ns);
    }

    fn add_node(&mut self) -> u64 {
        while self.nodes.len() > After::FURTHEST as usize
            && self.nodes.front().is_some_and(|node| node.done_ns.is_some())
        {
            self.nodes.pop_front();
            self.first += 1;
        }
        self.nodes.push_back(Node::default());
        self.first + self.nodes.len() as u64 - 1
    }

    /// A request has completed, or never will: who waited for it may follow.
    pub fn done(&mut self, number: u64, at_ns: i64) {
        let Some(node) = number.checked_sub(self.first).and_then(|at| self.nodes.get_mut(at as usize)) else {
            return;
        };
        node.done_ns = Some(at_ns);
        for waiting in std::mem::take(&mut node.waiting) {
            let Some(held) = self.held.get_mut(&waiting) else { continue };
            held.latest_ns = held.latest_ns.max(at_ns);
            held.missing -= 1;
            if held.missing == 0 {
                self.due.push(Reverse((held.release(), waiting)));
            }
        }
    }

    /// Time of the next request that waits for no other.
    pub fn next_ns(&self) -> Option<i64> {
        self.due.peek().map(|Reverse((at_ns, _))| *at_ns)
    }

    /// Takes the next request that waits for no other; its intended time is when it is to be sent.
    pub fn pop(&mut self) -> Option<Planned> {
        let Reverse((_, number)) = self.due.pop()?;
        self.held.remove(&number).map(|held| held.planned)
    }

    /// Puts back a request that was taken.
    pub fn put_back(&mut self, planned: Planned) {
        let number = planned.number;
        self.due.push(Reverse((planned.request.intended_ns, number)));
        self.held.insert(number, Held { planned, missing: 0, latest_ns: i64::MIN });
    }

    /// Takes all that is held.
    pub fn drain(&mut self) -> impl Iterator<Item = Planned> {
        self.due.clear();
        self.held.drain().map(|(_, held)| held.planned)
    }
}

impl Held {
    /// Sets the time at which the request is to be sent, now that it is known.
    fn release(&mut self) -> i64 {
        let Planned { request, after, .. } = &mut self.planned;
        if self.latest_ns > i64::MIN {
            let at_ns = self.latest_ns.saturating_add(after.think_ns);
            request.deadline_ns = request.deadline_ns.map(|deadline| deadline - request.intended_ns + at_ns);
            request.intended_ns = at_ns;
        }
        request.intended_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_content::pattern::Key;
    use weir_records::Request;

    use crate::testing;

    fn planned(intended_ns: i64, back: &[u32], think_ns: i64) -> Planned {
        let request = Request { deadline_ns: Some(intended_ns + 1000), ..testing::request(0, intended_ns) };
        let after = After { back: SmallVec::from_slice(back), think_ns };
        Planned { request, transfer: None, key: Key::new("a", None, 0), after, number: 0 }
    }

    #[test]
    fn who_waits_is_sent_a_think_time_after_the_last() {
        let mut graph = Graph::new();
        graph.push(planned(0, &[], 0));
        graph.push(planned(10, &[], 0));
        graph.push(planned(500, &[1, 2], 7));
        graph.push(planned(900, &[], 0));
        let first = graph.pop().unwrap();
        let second = graph.pop().unwrap();
        assert_eq!((first.number, second.number, graph.next_ns()), (0, 1, Some(900)));
        graph.done(second.number, 30);
        assert_eq!(graph.next_ns(), Some(900), "the other is outstanding");
        graph.done(first.number, 40);
        let third = graph.pop().unwrap();
        assert_eq!((third.number, third.request.intended_ns, third.request.deadline_ns), (2, 47, Some(1047)));
        graph.put_back(third);
        assert_eq!(graph.next_ns(), Some(47));
        graph.skip(1);
        // A request that is read after those that it waits for have completed.
        graph.push(planned(990, &[1, 5], 3));
        assert_eq!(graph.drain().count(), 3);
        assert!(graph.is_empty());
    }

    #[test]
    fn long_streams_are_forgotten() {
        let mut graph = Graph::new();
        for number in 0..3 * u64::from(After::FURTHEST) {
            graph.push(planned(0, if number == 0 { &[] } else { &[1] }, 1));
            let next = graph.pop().unwrap();
            assert_eq!((next.number, next.request.intended_ns), (number, number as i64));
            graph.done(number, number as i64);
        }
        assert!(graph.nodes.len() <= After::FURTHEST as usize + 1);
    }
}
