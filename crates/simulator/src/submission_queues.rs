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
    /// Queues of the urgent class, without weights: while they have commands, no other command is fetched.
    pub urgent: Vec<u32>,
}

/// Queues of commands that the controller has not fetched, in round robin with weights and an urgent class (NVMe base specification
/// 2.0, 3.4.4).
#[derive(Clone, Debug)]
pub(crate) struct SubmissionQueues {
    options: QueueOptions,
    queues: Vec<VecDeque<IoRequest>>,
    /// Of the urgent queues and of the others.
    urgent: Rotation,
    others: Rotation,
    /// Commands that the controller works on.
    pub inside: u32,
}

/// Round robin over some of the queues.
#[derive(Clone, Copy, Debug, Default)]
struct Rotation {
    /// The queue whose turn it is, none before the first command, and how many of its commands are left in the turn.
    turn: Option<usize>,
    left: u32,
    waiting: usize,
}

impl SubmissionQueues {
    pub fn new(options: QueueOptions) -> Self {
        let (urgent, others) = (Rotation::default(), Rotation::default());
        Self { options, queues: Vec::new(), urgent, others, inside: 0 }
    }

    /// Commands that wait.
    pub fn waiting(&self) -> usize {
        self.urgent.waiting + self.others.waiting
    }

    fn is_urgent(&self, queue: usize) -> bool {
        self.options.urgent.iter().any(|urgent| *urgent as usize == queue)
    }

    fn rotation(&mut self, is_urgent: bool) -> &mut Rotation {
        if is_urgent { &mut self.urgent } else { &mut self.others }
    }

    /// Adds a command to a queue.
    pub fn push(&mut self, queue: usize, request: IoRequest) {
        if queue >= self.queues.len() {
            self.queues.resize_with(queue + 1, VecDeque::new);
        }
        self.queues[queue].push_back(request);
        let is_urgent = self.is_urgent(queue);
        self.rotation(is_urgent).waiting += 1;
    }

    /// The next command and its queue, if the controller has a slot for it.
    pub fn fetch(&mut self) -> Option<(usize, IoRequest)> {
        if self.waiting() == 0 || self.inside >= self.options.slots.max(1) {
            return None;
        }
        let is_urgent = self.urgent.waiting > 0;
        loop {
            let Rotation { turn, left, .. } = *self.rotation(is_urgent);
            if left > 0
                && let Some(turn) = turn
                && let Some(request) = self.queues[turn].pop_front()
            {
                let rotation = self.rotation(is_urgent);
                rotation.left -= 1;
                rotation.waiting -= 1;
                self.inside += 1;
                return Some((turn, request));
            }
            let next = turn.map_or(0, |turn| turn + 1) % self.queues.len();
            let left = if self.is_urgent(next) == is_urgent { self.turn_commands(next) } else { 0 };
            let rotation = self.rotation(is_urgent);
            (rotation.turn, rotation.left) = (Some(next), left);
        }
    }

    fn turn_commands(&self, queue: usize) -> u32 {
        let weight = if self.is_urgent(queue) { None } else { self.options.weights.get(queue) };
        self.options.burst.max(1) * weight.copied().unwrap_or(1).max(1)
    }
}

#[cfg(test)]
mod tests {
    use weir_vocabulary::Op;

    use super::*;

    /// Queues of the commands that are fetched one after another, from queues with so many commands each.
    fn order(burst: u32, weights: &[u32], commands: &[u64]) -> Vec<usize> {
        order_of(burst, weights, &[], commands)
    }

    /// The same with urgent queues.
    fn order_of(burst: u32, weights: &[u32], urgent: &[u32], commands: &[u64]) -> Vec<usize> {
        let (weights, urgent) = (weights.to_vec(), urgent.to_vec());
        let mut queues = SubmissionQueues::new(QueueOptions { slots: 1, burst, weights, urgent });
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
    fn urgent_queues_are_empty_before_others_have_their_turn() {
        assert_eq!(order_of(1, &[], &[1], &[2, 3, 1]), [1, 1, 1, 0, 2, 0]);
        // Several in turn, by the burst and not by their weights.
        assert_eq!(order_of(1, &[1, 9, 9], &[1, 2], &[1, 2, 2]), [1, 2, 1, 2, 0]);
        assert_eq!(order_of(2, &[3], &[0, 2], &[3, 1, 1]), [0, 0, 2, 0, 1]);
        // The turn of the others goes on where it was.
        let mut queues =
            SubmissionQueues::new(QueueOptions { slots: 9, burst: 1, weights: vec![2, 1], urgent: vec![2] });
        let request = |tag| IoRequest { tag, op: Op::Read, offset_bytes: 0, size_bytes: 1 };
        for (queue, tag) in [(0, 0), (0, 1), (1, 2)] {
            queues.push(queue, request(tag));
        }
        let first = queues.fetch().unwrap().1.tag;
        queues.push(2, request(3));
        let rest: Vec<u64> = std::iter::from_fn(|| queues.fetch()).map(|(_, request)| request.tag).collect();
        assert_eq!((first, rest), (0, vec![3, 1, 2]));
    }

    #[test]
    fn a_weight_is_a_share_while_all_queues_have_commands() {
        let order = order(2, &[4, 1], &[1000, 1000]);
        let first = order[..500].iter().filter(|queue| **queue == 0).count();
        assert_eq!(first, 400);
    }
}
