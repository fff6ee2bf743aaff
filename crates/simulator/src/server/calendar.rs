//! Event calendar: one time for each of a fixed number of actors.

/// The next event of each actor, with fast access to the earliest.
///
/// A tournament: a complete binary tree over the actors in which each node names the earlier of its two children, the
/// left one where they are equal. Setting a time takes one comparison a level.
#[derive(Debug)]
pub(super) struct Calendar {
    /// Time of each actor; [`NEVER`] where nothing will happen. Padded to a power of two.
    times: Vec<u64>,
    /// Node 1 is the root, the children of node i are 2i and 2i + 1, leaves begin at `times.len()`.
    winners: Vec<u32>,
}

/// Later than every event.
pub(super) const NEVER: u64 = u64::MAX;

impl Calendar {
    /// An empty calendar of a number of actors.
    pub(super) fn new(actors: usize) -> Self {
        let leaves = actors.max(2).next_power_of_two();
        let mut winners = vec![0; 2 * leaves];
        for (leaf, winner) in winners[leaves..].iter_mut().enumerate() {
            *winner = leaf as u32;
        }
        for node in (1..leaves).rev() {
            winners[node] = winners[2 * node];
        }
        Calendar { times: vec![NEVER; leaves], winners }
    }

    /// Sets the time of an actor's next event.
    pub(super) fn set(&mut self, actor: usize, at_ns: u64) {
        if self.times[actor] == at_ns {
            return;
        }
        self.times[actor] = at_ns;
        let mut node = (self.times.len() + actor) / 2;
        while node > 0 {
            let (left, right) = (self.winners[2 * node], self.winners[2 * node + 1]);
            let earlier = if self.times[right as usize] < self.times[left as usize] { right } else { left };
            self.winners[node] = earlier;
            node /= 2;
        }
    }

    /// The actor with the earliest event, the first of those where several are as early, and when that is.
    pub(super) fn first(&self) -> (usize, u64) {
        let actor = self.winners[1] as usize;
        (actor, self.times[actor])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn of_equal_times_the_first_actor_is_named() {
        let mut calendar = Calendar::new(5);
        assert_eq!(calendar.first(), (0, NEVER));
        for actor in [4, 2, 3] {
            calendar.set(actor, 7);
        }
        assert_eq!(calendar.first(), (2, 7));
        calendar.set(2, NEVER);
        assert_eq!(calendar.first(), (3, 7));
    }

    proptest! {
        #[test]
        fn the_first_is_the_least(
            actors in 1usize..40,
            changes in prop::collection::vec((0usize..40, prop_oneof![0u64..20, Just(NEVER)]), 1..200),
        ) {
            let mut calendar = Calendar::new(actors);
            let mut plain = vec![NEVER; actors];
            for (actor, at_ns) in changes {
                let actor = actor % actors;
                calendar.set(actor, at_ns);
                plain[actor] = at_ns;
                let least = *plain.iter().min().unwrap();
                let first = plain.iter().position(|at| *at == least).unwrap();
                prop_assert_eq!(calendar.first(), (first, least));
            }
        }
    }
}
