//! Tree of reservations, with a token bucket at each node (sections 3.2 to 3.5).

use super::bucket::{Bucket, Rate};

/// Identifier of a node. Identifiers of removed nodes are reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(usize);

/// Share of a node in its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reservation {
    /// Absolute bandwidth in tokens per second (section 5). Other reservations share the rest. The parent is the root or has
    /// a bandwidth too.
    Bandwidth(Rate),
    /// Absolute fraction, in 10^-9, of the rest after bandwidths (section 3.3).
    Fraction(u64),
    /// Relative share of the rest after fractions, by a weight in 10^-6 (section 3.3).
    Weight(u64),
}

impl Reservation {
    /// Fraction 1.
    pub const WHOLE: u64 = 1_000_000_000;
    /// Weight 1, the default of clients.
    pub const EQUAL: Reservation = Reservation::Weight(1_000_000);
}

/// Error in a reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    /// Unknown node.
    #[error("unknown node")]
    NoNode,
    /// The node is no leaf.
    #[error("the node has children. Remove them first")]
    HasChildren,
    /// The root has no reservation.
    #[error("the root has no reservation. Change its rate")]
    Root,
    /// The fractions add up to more than 1.
    #[error("the fractions add up to more than 1. Lower a fraction")]
    Fractions,
    /// The bandwidths add up to more than the parent's.
    #[error("the bandwidths add up to more than the parent's. Lower a bandwidth or raise the parent's")]
    Bandwidths,
    /// The parent's rate could fall below the bandwidth.
    #[error(
        "a bandwidth needs a parent with a bandwidth (found a fraction or a weight). Reserve a bandwidth for the parent"
    )]
    UnderShare,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Node {
    parent: Option<NodeId>,
    children: Vec<NodeId>,
    reservation: Reservation,
    bucket: Bucket,
}

/// A tree of token buckets.
///
/// A node can use its own tokens and those of the nodes above it. Used tokens are taken from the supplying node and all
/// above it: a parent keeps the tokens that its children do not use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    nodes: Vec<Option<Node>>,
    burst_ns: u64,
    now_ns: u64,
}

impl Tree {
    /// Root node: the disk.
    pub const ROOT: NodeId = NodeId(0);

    /// A tree with a root of this rate. A bucket holds the tokens of `burst_ns`, at least one; all begin empty.
    pub fn new(root: Rate, burst_ns: u64) -> Self {
        let mut tree = Tree { nodes: vec![None], burst_ns, now_ns: 0 };
        let mut bucket = Bucket::new(0);
        bucket.set(root, tree.depth_tokens(root));
        tree.nodes[0] = Some(Node {
            parent: None,
            children: Vec::new(),
            reservation: Reservation::Fraction(Reservation::WHOLE),
            bucket,
        });
        tree
    }

    /// Adds a node with an empty bucket. Rates of siblings with weights change.
    ///
    /// # Errors
    /// The parent is unknown, or the reservation exceeds its rate.
    pub fn add(&mut self, parent: NodeId, reservation: Reservation) -> Result<NodeId, TreeError> {
        self.check(parent, reservation, None)?;
        let node = Node {
            parent: Some(parent),
            children: Vec::new(),
            reservation,
            bucket: Bucket::new(self.now_ns),
        };
        let id = match self.nodes.iter().position(Option::is_none) {
            Some(free) => {
                self.nodes[free] = Some(node);
                NodeId(free)
            }
            None => {
                self.nodes.push(Some(node));
                NodeId(self.nodes.len() - 1)
            }
        };
        if let Some(parent) = self.node_mut(parent) {
            parent.children.push(id);
        }
        self.divide(parent);
        Ok(id)
    }

    /// Removes a leaf, with the tokens in its bucket.
    ///
    /// # Errors
    /// The node is unknown, has children, or is the root.
    pub fn remove(&mut self, id: NodeId) -> Result<(), TreeError> {
        let node = self.node(id).ok_or(TreeError::NoNode)?;
        let parent = node.parent.ok_or(TreeError::Root)?;
        if !node.children.is_empty() {
            return Err(TreeError::HasChildren);
        }
        self.nodes[id.0] = None;
        if let Some(parent) = self.node_mut(parent) {
            parent.children.retain(|child| *child != id);
        }
        self.divide(parent);
        Ok(())
    }

    /// Changes the reservation of a node.
    ///
    /// # Errors
    /// Same as [`Tree::add`].
    pub fn reserve(&mut self, id: NodeId, reservation: Reservation) -> Result<(), TreeError> {
        let node = self.node(id).ok_or(TreeError::NoNode)?;
        let parent = node.parent.ok_or(TreeError::Root)?;
        let is_bandwidth = |reservation: Reservation| matches!(reservation, Reservation::Bandwidth(_));
        if !is_bandwidth(reservation)
            && node
                .children
                .iter()
                .any(|child| self.node(*child).is_some_and(|n| is_bandwidth(n.reservation)))
        {
            return Err(TreeError::UnderShare);
        }
        if let Reservation::Bandwidth(rate) = reservation
            && rate < self.bandwidths(id, None)
        {
            return Err(TreeError::Bandwidths);
        }
        self.check(parent, reservation, Some(id))?;
        if let Some(node) = self.node_mut(id) {
            node.reservation = reservation;
        }
        self.divide(parent);
        Ok(())
    }

    /// Changes the root's rate, not below its reserved bandwidths; returns the new rate.
    pub fn set_root(&mut self, rate: Rate) -> Rate {
        let rate = rate.max(self.bandwidths(Self::ROOT, None));
        let depth_tokens = self.depth_tokens(rate);
        if let Some(root) = self.node_mut(Self::ROOT) {
            root.bucket.set(rate, depth_tokens);
        }
        self.divide(Self::ROOT);
        rate
    }

    /// Fills all buckets up to now. Later calls refer to this time.
    pub fn fill(&mut self, now_ns: u64) {
        // Several times in one instant, for each request: none is behind the others.
        if now_ns <= self.now_ns {
            return;
        }
        self.now_ns = now_ns;
        for node in self.nodes.iter_mut().flatten() {
            node.bucket.fill(now_ns);
        }
    }

    /// Empties all buckets; debts stay.
    pub fn forfeit(&mut self) {
        for node in self.nodes.iter_mut().flatten() {
            node.bucket.forfeit();
        }
    }

    /// Rate of a node; 0 if unknown.
    pub fn rate(&self, id: NodeId) -> Rate {
        self.node(id).map_or(Rate::default(), |node| node.bucket.rate())
    }

    /// Whole tokens in a node's bucket; negative in debt.
    pub fn tokens(&self, id: NodeId) -> i128 {
        self.node(id).map_or(0, |node| node.bucket.tokens())
    }

    /// Capacity of a node's bucket, in tokens.
    pub fn capacity_tokens(&self, id: NodeId) -> u64 {
        self.node(id).map_or(0, |node| node.bucket.depth_tokens())
    }

    /// Children of a node.
    pub fn children(&self, id: NodeId) -> &[NodeId] {
        self.node(id).map_or(&[], |node| &node.children)
    }

    /// Lowest node from a leaf to the root that can supply the tokens now.
    pub fn supplier(&self, leaf: NodeId, tokens: u64) -> Option<NodeId> {
        self.way_up(leaf).find(|id| self.node(*id).is_some_and(|node| node.bucket.can_supply(tokens)))
    }

    /// Earliest time at which a node from a leaf to the root can supply the tokens, without other use; `u64::MAX` if never.
    pub fn ready_ns(&self, leaf: NodeId, tokens: u64) -> u64 {
        let ready_ns = |id| self.node(id).map_or(u64::MAX, |node| node.bucket.ready_ns(tokens));
        self.way_up(leaf).map(ready_ns).min().unwrap_or(u64::MAX)
    }

    /// Time at which a node's bucket leaves debt.
    pub fn debt_end_ns(&self, id: NodeId) -> u64 {
        self.node(id).map_or(self.now_ns, |node| node.bucket.debt_end_ns())
    }

    /// Takes tokens from a node and all above it.
    pub fn take(&mut self, supplier: NodeId, tokens: u64) {
        let mut next = Some(supplier);
        while let Some(node) = next.and_then(|id| self.node_mut(id)) {
            node.bucket.take(tokens);
            next = node.parent;
        }
    }

    fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id.0)?.as_ref()
    }

    fn node_mut(&mut self, id: NodeId) -> Option<&mut Node> {
        self.nodes.get_mut(id.0)?.as_mut()
    }

    pub(super) fn way_up(&self, leaf: NodeId) -> impl Iterator<Item = NodeId> {
        std::iter::successors(Some(leaf), |id| self.node(*id)?.parent)
    }

    fn depth_tokens(&self, rate: Rate) -> u64 {
        let tokens = rate.parts_in(self.burst_ns) / 1_000_000_000_000_000;
        u64::try_from(tokens).unwrap_or(u64::MAX).max(1)
    }

    /// Bandwidths reserved from a node, without one child.
    fn bandwidths(&self, of: NodeId, but: Option<NodeId>) -> Rate {
        let of_child = |id: &NodeId| match self.node(*id).map(|node| node.reservation) {
            Some(Reservation::Bandwidth(rate)) if Some(*id) != but => rate,
            _ => Rate::default(),
        };
        self.children(of).iter().map(of_child).fold(Rate::default(), Rate::plus)
    }

    /// Checks a reservation of a new or existing child.
    fn check(
        &self,
        parent: NodeId,
        reservation: Reservation,
        child: Option<NodeId>,
    ) -> Result<(), TreeError> {
        let node = self.node(parent).ok_or(TreeError::NoNode)?;
        match reservation {
            Reservation::Weight(_) => Ok(()),
            Reservation::Fraction(fraction) => {
                let of = |id: &NodeId| match self.node(*id).map(|node| node.reservation) {
                    Some(Reservation::Fraction(fraction)) if Some(*id) != child => u128::from(fraction),
                    _ => 0,
                };
                let sum = node.children.iter().map(of).sum::<u128>() + u128::from(fraction);
                if sum > u128::from(Reservation::WHOLE) { Err(TreeError::Fractions) } else { Ok(()) }
            }
            Reservation::Bandwidth(rate) => {
                let is_firm = parent == Self::ROOT || matches!(node.reservation, Reservation::Bandwidth(_));
                if !is_firm {
                    return Err(TreeError::UnderShare);
                }
                let sum = self.bandwidths(parent, child).plus(rate);
                if sum > node.bucket.rate() { Err(TreeError::Bandwidths) } else { Ok(()) }
            }
        }
    }

    /// Divides a node's rate among its children, recursively.
    fn divide(&mut self, of: NodeId) {
        let Some(node) = self.node(of) else { return };
        let rest = node.bucket.rate().minus(self.bandwidths(of, None));
        let children = node.children.clone();
        let reservations: Vec<Reservation> =
            children.iter().filter_map(|id| Some(self.node(*id)?.reservation)).collect();
        let (mut fractions, mut weights) = (0u64, 0u64);
        for reservation in &reservations {
            match reservation {
                Reservation::Fraction(fraction) => fractions = fractions.saturating_add(*fraction),
                Reservation::Weight(weight) => weights = weights.saturating_add(*weight),
                Reservation::Bandwidth(_) => {}
            }
        }
        let relative = rest.part(Reservation::WHOLE.saturating_sub(fractions), Reservation::WHOLE);
        for (id, reservation) in children.into_iter().zip(reservations) {
            let rate = match reservation {
                Reservation::Bandwidth(rate) => rate,
                Reservation::Fraction(fraction) => rest.part(fraction, Reservation::WHOLE),
                Reservation::Weight(weight) => relative.part(weight, weights),
            };
            let depth_tokens = self.depth_tokens(rate);
            if let Some(node) = self.node_mut(id) {
                node.bucket.set(rate, depth_tokens);
            }
            self.divide(id);
        }
    }
}
