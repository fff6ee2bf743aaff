//! Tokens: made at the root's rate, held up to the depth, taken once.

use proptest::prelude::*;
use weir_scheduler::hds::{NodeId, Rate, Reservation, Tree};

#[derive(Debug, Clone)]
enum Step {
    Wait(u64),
    Ask(usize, u64),
    Add(usize, u64),
    Fraction(usize, u64),
    Remove(usize),
    Root(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..2_000_000_000u64).prop_map(Step::Wait),
        6 => (0..50usize, 1..400u64).prop_map(|(node, tokens)| Step::Ask(node, tokens)),
        2 => (0..50usize, 1..9u64).prop_map(|(node, weight)| Step::Add(node, weight)),
        1 => (0..50usize, 1..60u64).prop_map(|(node, percent)| Step::Fraction(node, percent)),
        1 => (0..50usize).prop_map(Step::Remove),
        1 => (1..2000u64).prop_map(Step::Root),
    ];
    prop::collection::vec(step, 1..150)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn tokens_are_conserved_and_no_bucket_holds_more_than_its_depth(steps in steps()) {
        let mut tree = Tree::new(Rate::per_s(500), 400_000_000);
        let mut nodes: Vec<NodeId> = vec![Tree::ROOT];
        let (mut now_ns, mut root, mut made) = (0u64, 500u64, 0f64);
        let (mut taken, mut left) = (0i128, 0i128);
        for step in steps {
            match step {
                Step::Wait(ns) => {
                    now_ns += ns;
                    made += root as f64 * ns as f64 / 1e9;
                    tree.fill(now_ns);
                }
                Step::Ask(node, tokens) => {
                    let leaf = nodes[node % nodes.len()];
                    let before: Vec<i128> = nodes.iter().map(|id| tree.tokens(*id)).collect();
                    if let Some(supplier) = tree.supplier(leaf, tokens) {
                        let enough = tokens.min(tree.capacity_tokens(supplier));
                        prop_assert!(tree.tokens(supplier) >= i128::from(enough));
                        tree.take(supplier, tokens);
                        taken += i128::from(tokens);
                        let changed = |(id, before): (&NodeId, &i128)| before - tree.tokens(*id);
                        let differences: Vec<i128> = nodes.iter().zip(&before).map(changed).collect();
                        // The root is always charged; no node is charged twice or in part.
                        prop_assert_eq!(differences[0], i128::from(tokens));
                        prop_assert!(differences.iter().all(|d| [0, i128::from(tokens)].contains(d)));
                    } else {
                        prop_assert!(tree.ready_ns(leaf, tokens) > now_ns);
                    }
                }
                Step::Add(parent, weight) => {
                    let parent = nodes[parent % nodes.len()];
                    if let Ok(id) = tree.add(parent, Reservation::Weight(weight * 1_000_000)) {
                        nodes.push(id);
                    }
                }
                Step::Fraction(node, percent) => {
                    let fraction = Reservation::Fraction(percent * Reservation::WHOLE / 100);
                    let _ = tree.reserve(nodes[node % nodes.len()], fraction);
                }
                Step::Remove(node) => {
                    let place = node % nodes.len();
                    let held = tree.tokens(nodes[place]);
                    if tree.remove(nodes[place]).is_ok() {
                        left += held.max(0);
                        nodes.remove(place);
                    }
                }
                Step::Root(rate) => {
                    root = rate;
                    tree.set_root(Rate::per_s(rate));
                }
            }
            for id in &nodes {
                prop_assert!(tree.tokens(*id) <= i128::from(tree.capacity_tokens(*id)));
                let below: u64 = tree.children(*id).iter().map(|c| tree.rate(*c).millionths_per_s()).sum();
                prop_assert!(below <= tree.rate(*id).millionths_per_s());
            }
        }
        // Used tokens were produced: at the root, or below it from the same tokens a second time while both buckets held
        // them. That is at most the buckets' capacity for each filling, so the root's count is decisive.
        let debt = -tree.tokens(Tree::ROOT).min(0);
        prop_assert!(taken as f64 <= made + debt as f64 + 1.0, "{taken} {made} {debt} {left}");
    }
}
