//! Event calendar: one time for each of a fixed number of actors.

/// The next event of each actor, with fast access to the earliest.
///
/// A tournament: a complete binary tree over the actors in which each node has the earlier event of its two children, the
/// left one where they are equal. Setting a time takes one comparison a level, with a sibling that is known before.
#[derive(Debug)]
pub(super) struct Calendar {
    /// Time and actor; [`NEVER`] where nothing will happen. Node 1 is the root, the children of node i are 2i and 2i + 1,
    /// the actors' own are the last half, padded to a power of two.
    nodes: Vec<(u64, u32)>,
}

/// Later than every event.
pub(super) const NEVER: u64 = u64::MAX;

impl Calendar {
    /// An empty calendar of a number of actors.
    pub(super) fn new(actors: usize) -> Self {
        let leaves = actors.max(2).next_power_of_two();
        let mut nodes: Vec<(u64, u32)> =
            [0..leaves as u32, 0..leaves as u32].into_iter().flatten().map(|actor| (NEVER, actor)).collect();
        for node in (1..leaves).rev() {
            nodes[node] = nodes[2 * node];
        }
        Calendar { nodes }
    }

    /// Sets the time of an actor's next event.
    pub(super) fn set(&mut self, actor: usize, at_ns: u64) {
        let mut node = self.nodes.len() / 2 + actor;
        if self.nodes[node].0 == at_ns {
            return;
        }
        let mut earliest = (at_ns, actor as u32);
        self.nodes[node] = earliest;
        while node > 1 {
            let sibling = self.nodes[node ^ 1];
            // Of equal times the lower actor's, which is the left one's. No branch: half of them would be mispredicted.
            earliest = std::hint::select_unpredictable(sibling < earliest, sibling, earliest);
            node /= 2;
            self.nodes[node] = earliest;
        }
    }

    /// The actor with the earliest event, the first of those where several are as early, and when that is.
    pub(super) fn first(&self) -> (usize, u64) {
        let (at_ns, actor) = self.nodes[1];
        (actor as usize, at_ns)
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
