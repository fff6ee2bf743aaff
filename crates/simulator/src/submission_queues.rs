//! Submission queues of a controller, which fetches their commands in turn.

use std::collections::VecDeque;

use crate::device::IoRequest;

/// How many commands the controller works on, and how it fetches them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueOptions {
    /// Commands that the controller works on at the same time (at least 1).
    pub slots: u32,
    /// Commands of one queue in its turn, for each unit of its weight (at least 1): NVMe's arbitration burst.
    pub burst: u32,
    /// Weights of the queues; 1 for those behind the last. All equal: round robin.
    pub weights: Vec<u32>,
}

/// Queues of commands that the controller has not fetched, in round robin with weights (NVMe base specification 2.0, 3.4.4,
/// without its urgent class).
#[derive(Clone, Debug)]
pub(crate) struct SubmissionQueues {
    options: QueueOptions,
    queues: Vec<VecDeque<IoRequest>>,
    /// The queue whose turn it is, none before the first command, and how many of its commands are left in the turn.
    turn: Option<usize>,
    left: u32,
    waiting: usize,
    /// Commands that the controller works on.
    pub inside: u32,
}

impl SubmissionQueues {
    pub fn new(options: QueueOptions) -> Self {
        Self { options, queues: Vec::new(), turn: None, left: 0, waiting: 0, inside: 0 }
    }

    /// Commands that wait.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Adds a command to a queue.
    pub fn push(&mut self, queue: usize, request: IoRequest) {
        if queue >= self.queues.len() {
            self.queues.resize_with(queue + 1, VecDeque::new);
        }
        self.queues[queue].push_back(request);
        self.waiting += 1;
    }

    /// The next command and its queue, if the controller has a slot for it.
    pub fn fetch(&mut self) -> Option<(usize, IoRequest)> {
        if self.waiting == 0 || self.inside >= self.options.slots.max(1) {
            return None;
        }
        loop {
            if self.left > 0
                && let Some(turn) = self.turn
                && let Some(request) = self.queues[turn].pop_front()
            {
                self.left -= 1;
                self.waiting -= 1;
                self.inside += 1;
                return Some((turn, request));
            }
            let next = self.turn.map_or(0, |turn| turn + 1) % self.queues.len();
            self.left = self.turn_commands(next);
            self.turn = Some(next);
        }
    }

    fn turn_commands(&self, queue: usize) -> u32 {
        self.options.burst.max(1) * self.options.weights.get(queue).copied().unwrap_or(1).max(1)
    }
}

#[cfg(test)]
mod tests {
    use weir_vocabulary::Op;

    use super::*;

    /// Queues of the commands that are fetched one after another, from queues with so many commands each.
    fn order(burst: u32, weights: &[u32], commands: &[u64]) -> Vec<usize> {
        let mut queues = SubmissionQueues::new(QueueOptions { slots: 1, burst, weights: weights.to_vec() });
        for (queue, count) in commands.iter().enumerate() {
            for tag in 0..*count {
                let request = IoRequest { tag, op: Op::Read, offset_bytes: 0, size_bytes: 1 };
                queues.push(queue, request);
            }
        }
        let mut order = Vec::new();
        while let Some((queue, _)) = queues.fetch() {
            assert!(queues.fetch().is_none(), "the one slot is taken");
            queues.inside -= 1;
            order.push(queue);
        }
        assert_eq!(queues.waiting(), 0);
        order
    }

    #[test]
    fn turns_are_by_hand() {
        assert_eq!(order(1, &[], &[3, 1, 2]), [0, 1, 2, 0, 2, 0]);
        assert_eq!(order(2, &[], &[3, 1, 2]), [0, 0, 1, 2, 2, 0]);
        assert_eq!(order(1, &[3, 1], &[5, 3]), [0, 0, 0, 1, 0, 0, 1, 1]);
        assert_eq!(order(1, &[1, 2], &[0, 3]), [1, 1, 1]);
    }

    #[test]
    fn a_weight_is_a_share_while_all_queues_have_commands() {
        let order = order(2, &[4, 1], &[1000, 1000]);
        let first = order[..500].iter().filter(|queue| **queue == 0).count();
        assert_eq!(first, 400);
    }
}
