//! Shares, against a fluid model without tokens.

use proptest::prelude::*;

use crate::clients::{Greedy, S, kb, policy, serve};

const ROOT_KB_S: u64 = 2000;
/// By how much a leaf's rate may be below its share: each of the at most four levels rounds down to a millionth.
const ROUNDED_KB_S: f64 = 4e-6;

/// A generated tree: leaves and groups with their shares of the parent.
#[derive(Debug, Clone)]
enum Drawn {
    Leaf(Share),
    Group(Share, Vec<Drawn>),
}

/// Hundredths (made to fit), or a weight.
#[derive(Debug, Clone, Copy)]
enum Share {
    Percent(u32),
    Weight(u32),
}

fn trees() -> impl Strategy<Value = Vec<Drawn>> {
    let share = || prop_oneof![(5..40u32).prop_map(Share::Percent), (1..6u32).prop_map(Share::Weight)];
    let leaf = share().prop_map(Drawn::Leaf);
    let node = leaf.prop_recursive(3, 10, 3, move |inner| {
        (share(), prop::collection::vec(inner, 1..4))
            .prop_map(|(share, children)| Drawn::Group(share, children))
    });
    prop::collection::vec(node, 1..4)
}

/// The share of each leaf of the whole disk, and of each group with the leaves below it; and the text of the tree.
#[derive(Debug, Default)]
struct Fluid {
    text: String,
    leaves: Vec<f64>,
    groups: Vec<(f64, std::ops::Range<usize>)>,
    names: Vec<String>,
}

impl Fluid {
    fn of(children: &[Drawn]) -> Fluid {
        let mut fluid = Fluid::default();
        fluid.divide(children, 1.0);
        fluid
    }

    /// Section 3.3, in numbers between 0 and 1: fractions first, and the rest by weight.
    fn divide(&mut self, children: &[Drawn], whole: f64) {
        let share = |child: &Drawn| match child {
            Drawn::Leaf(share) | Drawn::Group(share, _) => *share,
        };
        // Three of at most 40 % can exceed 100 %: scaled down.
        let percents: u32 =
            children.iter().map(|c| if let Share::Percent(p) = share(c) { p } else { 0 }).sum();
        let scale = |percent: u32| if percents > 90 { percent * 90 / percents } else { percent };
        let taken: u32 =
            children.iter().map(|c| if let Share::Percent(p) = share(c) { scale(p) } else { 0 }).sum();
        let weights: u32 = children.iter().map(|c| if let Share::Weight(w) = share(c) { w } else { 0 }).sum();
        let rest = whole * (1.0 - f64::from(taken) / 100.0);
        for (at, child) in children.iter().enumerate() {
            if at > 0 {
                self.text.push(',');
            }
            let (own, written) = match share(child) {
                Share::Percent(percent) => {
                    (whole * f64::from(scale(percent)) / 100.0, format!("{}%", scale(percent)))
                }
                Share::Weight(weight) => {
                    (rest * f64::from(weight) / f64::from(weights), format!("w{weight}"))
                }
            };
            match child {
                Drawn::Leaf(_) => {
                    let name = format!("leaf{}", self.leaves.len());
                    self.text += &format!("{name}:{written}");
                    self.names.push(name);
                    self.leaves.push(own);
                }
                Drawn::Group(_, below) => {
                    self.text += &format!("group{}:{written}(", self.groups.len());
                    let (place, from) = (self.groups.len(), self.leaves.len());
                    self.groups.push((own, from..from));
                    self.divide(below, own);
                    self.groups[place].1 = from..self.leaves.len();
                    self.text.push(')');
                }
            }
        }
    }
}

fn hds(fluid: &Fluid) -> Box<dyn weir_scheduler::Policy> {
    hds_passing(fluid, "any")
}

fn hds_passing(fluid: &Fluid, pass: &str) -> Box<dyn weir_scheduler::Policy> {
    let root = ROOT_KB_S.to_string();
    policy(
        &fluid.names,
        &[
            ("root_kb_s", &root),
            ("tree", &fluid.text),
            ("below", "fcfs"),
            ("leave_ms", "1e6"),
            ("pass", pass),
        ],
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// If all have requests, each leaf gets its share of the fluid model, within its last request.
    #[test]
    fn greedy_leaves_get_what_the_fluid_model_gives_them(tree in trees(), sizes in prop::collection::vec(1..64u32, 30)) {
        let fluid = Fluid::of(&tree);
        let clients: Vec<Greedy> =
            fluid.leaves.iter().zip(sizes.iter().cycle()).map(|(_, kb)| Greedy::always(*kb)).collect();
        let length_s = 20;
        let served = serve(&mut *hds(&fluid), &clients, 0, length_s * S, None);
        let got = kb(&served, clients.len(), 0, u64::MAX);
        let sum_kb = |leaves: std::ops::Range<usize>| clients[leaves].iter().map(|one| f64::from(one.kb)).sum::<f64>();
        for (leaf, share) in fluid.leaves.iter().enumerate() {
            let due = share * (ROOT_KB_S * length_s) as f64;
            let most = if fluid.leaves.iter().sum::<f64>() > 0.999_999 {
                // At each node above it, it borrows at most once the tokens that leaves had left before they had enough
                // for a request.
                let above = fluid.groups.iter().filter(|(_, leaves)| leaves.contains(&leaf));
                let borrowed: f64 = above.map(|(_, leaves)| sum_kb(leaves.clone())).sum();
                due + f64::from(clients[leaf].kb) + borrowed + sum_kb(0..clients.len())
            } else {
                f64::INFINITY
            };
            let least = due - f64::from(clients[leaf].kb) - 1.0;
            prop_assert!((least..=most).contains(&(got[leaf] as f64)), "{}: leaf {leaf} {got:?} {due}", fluid.text);
        }
    }

    /// If only some have requests, each of these gets its share, each group of them at least the group's, and together
    /// they get all.
    #[test]
    fn what_some_do_not_use_goes_to_the_others(tree in trees(), asks in prop::collection::vec(any::<bool>(), 30)) {
        let fluid = Fluid::of(&tree);
        let of = |leaf: usize| if asks[leaf] { Greedy::always(8) } else { Greedy { kb: 8, from_ns: u64::MAX, to_ns: 0 } };
        let clients: Vec<Greedy> = (0..fluid.leaves.len()).map(of).collect();
        let length_s = 20;
        let served = serve(&mut *hds(&fluid), &clients, 0, length_s * S, None);
        let got = kb(&served, clients.len(), 0, u64::MAX);
        let whole = (ROOT_KB_S * length_s) as f64;
        if clients.iter().any(|client| client.from_ns == 0) {
            prop_assert!(got.iter().sum::<u64>() as f64 >= whole - 9.0, "{}: {got:?}", fluid.text);
        }
        for (share, leaves) in fluid.groups.iter().filter(|(_, leaves)| leaves.clone().any(|leaf| asks[leaf])) {
            let sum: u64 = got[leaves.clone()].iter().sum();
            let held = 8.0 * leaves.len() as f64 + 1.0;
            prop_assert!(sum as f64 >= share * whole - held, "{}: {leaves:?} {got:?}", fluid.text);
        }
        for (leaf, share) in fluid.leaves.iter().enumerate().filter(|(leaf, _)| asks[*leaf]) {
            prop_assert!(got[leaf] as f64 >= share * whole - 9.0, "{}: leaf {leaf} {got:?}", fluid.text);
        }
    }

    /// No starvation: the n-th request of a leaf passes at the latest when its own tokens suffice, whatever others do.
    #[test]
    fn a_leaf_waits_no_longer_than_its_own_tokens_take(
        tree in trees(),
        sizes in prop::collection::vec(1..3000u32, 30),
        starts in prop::collection::vec(0..5 * S, 30),
        pass in prop::sample::select(vec!["any", "own"]),
    ) {
        let fluid = Fluid::of(&tree);
        let clients: Vec<Greedy> = (0..fluid.leaves.len())
            .map(|leaf| Greedy { kb: sizes[leaf], from_ns: starts[leaf], to_ns: u64::MAX })
            .collect();
        let served = serve(&mut *hds_passing(&fluid, pass), &clients, 0, 20 * S, None);
        for (leaf, share) in fluid.leaves.iter().enumerate() {
            // Weights count among active classes, so a share is at least that of the whole tree.
            let kb_s = share * ROOT_KB_S as f64 - ROUNDED_KB_S;
            let mut due_ns = starts[leaf] as f64;
            for one in served.iter().filter(|one| one.client == leaf) {
                due_ns += one.kb as f64 / kb_s * 1e9;
                prop_assert!(one.begun_ns as f64 <= due_ns + 2.0, "{}: {one:?} {due_ns}", fluid.text);
            }
        }
    }

    /// Every event has its own time, whenever the policy is polled.
    #[test]
    fn asking_more_often_changes_nothing(tree in trees(), pass in prop::sample::select(vec!["any", "own"]), poll_ns in 100_000..50_000_000u64, sizes in prop::collection::vec(1..200u32, 30)) {
        let fluid = Fluid::of(&tree);
        let clients: Vec<Greedy> = (0..fluid.leaves.len()).map(|leaf| Greedy::always(sizes[leaf])).collect();
        let run = |poll_ns| serve(&mut *hds_passing(&fluid, pass), &clients, 3000, 5 * S, poll_ns);
        prop_assert_eq!(run(None), run(Some(poll_ns)));
    }
}
