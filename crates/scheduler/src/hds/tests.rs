//! The paper's numbers, and what happens request by request.

use super::*;
use crate::fixture::{device, of_class, policy_for, weighted};

const KB: u32 = 1024;
const S: u64 = 1_000_000_000;

fn fraction(percent: u64) -> Reservation {
    Reservation::Fraction(percent * Reservation::WHOLE / 100)
}

fn tokens_per_s(tree: &Tree, id: NodeId) -> f64 {
    tree.rate(id).millionths_per_s() as f64 / 1e6
}

/// Section 3.3: a parent with 0.5, children with f_a = 0.4, w_b = 4 and w_c = 6.
#[test]
fn the_reservations_of_the_paper() {
    let mut tree = Tree::new(Rate::per_s(1000), S);
    let p = tree.add(Tree::ROOT, fraction(50)).unwrap();
    let a = tree.add(p, fraction(40)).unwrap();
    let b = tree.add(p, Reservation::Weight(4_000_000)).unwrap();
    let c = tree.add(p, Reservation::Weight(6_000_000)).unwrap();
    assert_eq!([p, a, b, c].map(|id| tree.rate(id)), [500, 200, 120, 180].map(Rate::per_s));
    // A weight gets more when another class leaves; a fraction is fixed.
    tree.remove(c).unwrap();
    assert_eq!([p, a, b].map(|id| tree.rate(id)), [500, 200, 300].map(Rate::per_s));
    let d = tree.add(p, fraction(60)).unwrap();
    assert_eq!([a, b, d].map(|id| tree.rate(id)), [200, 0, 300].map(Rate::per_s));
    tree.reserve(d, fraction(10)).unwrap();
    assert_eq!([a, b, d].map(|id| tree.rate(id)), [200, 250, 50].map(Rate::per_s));
    tree.set_root(Rate::per_s(2000));
    assert_eq!([p, a, b, d].map(|id| tree.rate(id)), [1000, 400, 500, 100].map(Rate::per_s));
}

/// Section 5: a bandwidth stays, whatever the root's rate is; the rest is what fractions are of.
#[test]
fn a_bandwidth_is_set_aside() {
    let mut tree = Tree::new(Rate::per_s(1000), S);
    let a = tree.add(Tree::ROOT, Reservation::Bandwidth(Rate::per_s(400))).unwrap();
    let b = tree.add(Tree::ROOT, fraction(50)).unwrap();
    let c = tree.add(Tree::ROOT, Reservation::EQUAL).unwrap();
    assert_eq!([a, b, c].map(|id| tree.rate(id)), [400, 300, 300].map(Rate::per_s));
    assert_eq!(tree.set_root(Rate::per_s(600)), Rate::per_s(600));
    assert_eq!([a, b, c].map(|id| tree.rate(id)), [400, 100, 100].map(Rate::per_s));
    assert_eq!(tree.set_root(Rate::per_s(100)), Rate::per_s(400));
    assert_eq!([a, b, c].map(|id| tree.rate(id)), [400, 0, 0].map(Rate::per_s));
}

#[test]
fn what_cannot_be_reserved_is_refused() {
    let mut tree = Tree::new(Rate::per_s(1000), S);
    let a = tree.add(Tree::ROOT, fraction(70)).unwrap();
    let firm = tree.add(Tree::ROOT, Reservation::Bandwidth(Rate::per_s(500))).unwrap();
    let within = tree.add(firm, Reservation::Bandwidth(Rate::per_s(300))).unwrap();
    assert_eq!(tree.add(Tree::ROOT, fraction(40)), Err(TreeError::Fractions));
    assert_eq!(tree.add(a, Reservation::Bandwidth(Rate::per_s(1))), Err(TreeError::UnderShare));
    assert_eq!(tree.reserve(firm, fraction(10)), Err(TreeError::UnderShare));
    assert_eq!(tree.reserve(firm, Reservation::Bandwidth(Rate::per_s(299))), Err(TreeError::Bandwidths));
    assert_eq!(tree.add(firm, Reservation::Bandwidth(Rate::per_s(201))), Err(TreeError::Bandwidths));
    assert_eq!(tree.remove(firm), Err(TreeError::HasChildren));
    assert_eq!(tree.remove(Tree::ROOT), Err(TreeError::Root));
    tree.remove(within).unwrap();
    assert_eq!(tree.remove(within), Err(TreeError::NoNode));
    assert_eq!(tree.reserve(Tree::ROOT, fraction(10)), Err(TreeError::Root));
    assert_eq!(tokens_per_s(&tree, a), 350.0);
}

/// Sections 3.4 and 3.5: tokens are taken from the lowest node that has them, and from all above it.
#[test]
fn tokens_are_taken_from_the_supplier_upwards() {
    let mut tree = Tree::new(Rate::per_s(100), S);
    let group = tree.add(Tree::ROOT, fraction(60)).unwrap();
    let leaf = tree.add(group, fraction(50)).unwrap();
    tree.fill(S);
    let tokens = |tree: &Tree| [leaf, group, Tree::ROOT].map(|id| tree.tokens(id));
    assert_eq!(tokens(&tree), [30, 60, 100]);
    assert_eq!(tree.supplier(leaf, 20), Some(leaf));
    tree.take(leaf, 20);
    assert_eq!(tokens(&tree), [10, 40, 80]);
    assert_eq!(tree.supplier(leaf, 25), Some(group));
    tree.take(group, 25);
    assert_eq!(tokens(&tree), [10, 15, 55]);
    assert_eq!(tree.supplier(leaf, 25), Some(Tree::ROOT));
    tree.take(Tree::ROOT, 25);
    assert_eq!(tokens(&tree), [10, 15, 30]);
    assert_eq!(tree.supplier(leaf, 31), None);
    // 30 are all that the leaf can hold, the group would hold 60: the first of three that has enough.
    assert_eq!(tree.ready_ns(leaf, 31), S + 10_000_000);
    tree.fill(10 * S);
    assert_eq!(tokens(&tree), [30, 60, 100]);
}

/// Times at which requests pass: one at a time, each completed immediately.
fn passes(policy: &mut dyn Policy, class: u16, kb: u32, from_ns: u64, count: u64) -> Vec<u64> {
    let device = device(0);
    let mut now_ns = from_ns;
    let mut times = Vec::new();
    for tag in 0..count {
        policy.arrive(now_ns, of_class(class, tag, kb * KB), &device);
        loop {
            match policy.next(now_ns, &device) {
                Decision::Serve(request) => {
                    assert_eq!(request.tag, tag);
                    times.push(now_ns);
                    policy.complete(now_ns, &request, now_ns);
                    break;
                }
                Decision::WaitUntil(until_ns) => now_ns = until_ns,
                Decision::Idle => panic!("idle though a request waits"),
            }
        }
    }
    times
}

#[test]
fn who_is_alone_has_the_whole_disk() {
    // 100 tokens a second: 10 in 100 ms, from the root, though the class reserves a tenth of it.
    let settings = [("root_kb_s", "100"), ("tree", "X:0.5(a:0.2)")];
    let times = passes(&mut *policy_for("hds", &weighted(&[1.0]), &settings), 0, 10, 0, 6);
    let ms = |ns: &u64| ns / 1_000_000;
    // The leaf and the group have tokens of their own besides, which they began with none of.
    assert_eq!(times.iter().map(ms).collect::<Vec<_>>(), [100, 200, 300, 400, 500, 600]);
}

#[test]
fn a_leaf_that_comes_changes_what_weights_have_and_one_that_goes_gives_it_back() {
    let settings = [("root_kb_s", "100"), ("leave_ms", "300"), ("burst_ms", "100")];
    let mut policy = policy_for("hds", &weighted(&[1.0, 1.0]), &settings);
    let device = device(0);
    let both: Vec<_> = (0..40).map(|tag| of_class((tag % 2) as u16, tag, 5 * KB)).collect();
    for request in &both {
        policy.arrive(0, *request, &device);
    }
    let mut served = [Vec::new(), Vec::new()];
    let mut now_ns = 0;
    loop {
        match policy.next(now_ns, &device) {
            Decision::Serve(request) => {
                served[usize::from(request.class)].push(now_ns);
                policy.complete(now_ns, &request, now_ns);
            }
            Decision::WaitUntil(until_ns) => now_ns = until_ns,
            Decision::Idle => break,
        }
    }
    // 200 tokens in two seconds, half of them each. The first 5 of the root were there before any leaf had as many, and
    // went to class a, the first to request.
    assert_eq!(now_ns, 2 * S);
    assert_eq!(served.map(|times| times.iter().filter(|at| **at <= S).count()), [11, 10]);
    // Class b is idle: class a has 10 tokens at the same time, held by its bucket only.
    let times = passes(&mut *policy, 0, 10, 4 * S, 3);
    assert_eq!(times, [4 * S, 4 * S + S / 10, 4 * S + S / 5]);
}

#[test]
fn clients_apart_share_what_their_class_has() {
    let settings = [("root_kb_s", "100"), ("tree", "a:0.5,b:0.5"), ("clients", "apart")];
    let mut policy = policy_for("hds", &weighted(&[1.0, 1.0]), &settings);
    let device = device(0);
    let mut tag = 0;
    for _ in 0..100 {
        for (class, stream) in [(0, 0), (1, 0), (1, 1), (1, 2)] {
            policy.arrive(0, Request { stream, ..of_class(class, tag, 5 * KB) }, &device);
            tag += 1;
        }
    }
    let mut tokens = [[0u32; 3]; 2];
    let mut now_ns = 0;
    while now_ns <= 12 * S {
        match policy.next(now_ns, &device) {
            Decision::Serve(request) => {
                tokens[usize::from(request.class)][request.stream as usize] += 5;
                policy.complete(now_ns, &request, now_ns);
            }
            Decision::WaitUntil(until_ns) => now_ns = until_ns,
            Decision::Idle => break,
        }
    }
    // Of 1,200 tokens class a had its 500, and its share of the later rest; class b's clients are equal.
    assert_eq!(tokens[0][0], 500);
    let least = tokens[1].iter().min().unwrap();
    assert!(tokens[1].iter().all(|of| of - least <= 5), "{tokens:?}");
    assert!((695..=705).contains(&tokens[1].iter().sum::<u32>()), "{tokens:?}");
}

#[test]
fn the_root_rises_by_steps() {
    let settings =
        [("root_kb_s", "100"), ("root", "rise"), ("step_kb_s", "50"), ("every_ms", "2000"), ("from_s", "1")];
    let mut policy = policy_for("hds", &weighted(&[1.0]), &settings);
    let times = passes(&mut *policy, 0, 10, 0, 120);
    let until = |s: u64| times.iter().filter(|at| **at <= s * S).count();
    // 100 tokens a second for three seconds, 150 for two, 200 for two.
    assert_eq!([until(3), until(5) - until(3), until(7) - until(5)], [30, 30, 40]);
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let refused = |key: &str, value: &str| {
        let settings = Settings([(key.to_owned(), value.to_owned())].into());
        crate::registry::build("hds", &weighted(&[1.0]), &settings)
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    };
    assert!(refused("root_kb_s", "0").contains("root_kb_s=0, expected a whole number from 1"));
    assert!(refused("below", "linux-bfq").contains("expected c-look or look"));
    assert!(refused("root", "up").contains("expected fixed or rise or adapt"));
    assert!(refused("burst_ms", "-1").contains("expected a number from 1"));
    assert!(refused("tree", "a:2").contains("invalid share `2`"));
}

/// Fig. 2: `make_request` takes the tokens of a request that finds none from its leaf, and sleeps for them.
#[test]
fn a_request_without_tokens_waits_for_any_or_for_its_own() {
    let begun = |pass: &str| {
        let settings = [("root_kb_s", "100"), ("tree", "a:0.3,b:0.7"), ("burst_ms", "1000"), ("pass", pass)];
        let mut policy = policy_for("hds", &weighted(&[1.0, 1.0]), &settings);
        let device = device(0);
        for tag in 0..4 {
            policy.arrive(0, of_class(0, tag, 10 * KB), &device);
        }
        let (mut now_ns, mut begun) = (0, Vec::new());
        loop {
            match policy.next(now_ns, &device) {
                Decision::Serve(request) => {
                    policy.complete(now_ns, &request, now_ns);
                    begun.push(now_ns);
                }
                Decision::WaitUntil(until_ns) => now_ns = until_ns,
                Decision::Idle => return begun,
            }
        }
    };
    // The root makes 100 tokens a second, and a request takes ten. The leaf makes 30, and has ten when a third of a second is
    // over.
    assert_eq!(begun("any"), [S / 10, S / 5, 3 * S / 10, 333_333_334]);
    // The first takes ten at 0, from the leaf and the root, and waits for the leaf. The root has 23 then: enough for two more.
    assert_eq!(begun("own"), [333_333_334, 333_333_334, 333_333_334, 666_666_667]);
}
