//! Sessions: against published mixes, and against an independent walk.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use weir_records::Interaction;
use weir_workload::sessions::{
    AnyWorkload, Browser, Moved, Next, SessionModel, SessionStream, SessionWorkload, Step, Transitions, Walk,
};
use weir_workload::{Catalog, StreamOptions};

const S: i64 = 1_000_000_000;

/// Vaidyanathan et al., Table 1 (TPC-W 1.8, clause 5.2.2): per cent of browsing, shopping, ordering.
const MIXES: [(&str, [f64; 3]); 14] = [
    ("HOME", [29.00, 16.00, 9.12]),
    ("NEWP", [11.00, 5.00, 0.46]),
    ("BESS", [11.00, 5.00, 0.46]),
    ("PROD", [21.00, 17.00, 12.35]),
    ("SREQ", [12.00, 20.00, 14.53]),
    ("SRES", [11.00, 17.00, 13.08]),
    ("SHOP", [2.00, 11.60, 13.53]),
    ("CREG", [0.82, 3.00, 12.86]),
    ("BUYR", [0.75, 2.60, 12.73]),
    ("BUYC", [0.69, 1.20, 10.18]),
    ("ORDI", [0.30, 0.75, 0.25]),
    ("ORDD", [0.25, 0.66, 0.22]),
    ("ADMR", [0.10, 0.10, 0.12]),
    ("ADMC", [0.09, 0.09, 0.11]),
];
const TPCW: [&str; 3] = ["tpcw-browsing", "tpcw-shopping", "tpcw-ordering"];

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads")
}

fn catalog() -> Catalog {
    Catalog::open(&here().join("sessions")).unwrap()
}

fn workload(name: &str) -> SessionWorkload {
    match catalog().load_any(name).unwrap_or_else(|problems| panic!("{problems}")) {
        AnyWorkload::Sessions(workload) => workload,
        AnyWorkload::Requests(_) => panic!("{name} is a workload of requests"),
    }
}

fn model(name: &str) -> Arc<SessionModel> {
    SessionModel::open(&workload(name), &here().join("sessions")).unwrap()
}

fn table(name: &str) -> Transitions {
    Transitions::read(&here().join("tables").join(format!("{name}.yml")))
        .unwrap_or_else(|problems| panic!("{problems}"))
}

fn options(clients: u32, seed: u64, seconds: i64) -> StreamOptions {
    StreamOptions {
        class: "site".into(),
        clients,
        seed,
        duration_ns: seconds * S,
        warmup_ns: 0,
        folder: PathBuf::new(),
    }
}

fn interactions(name: &str, options: StreamOptions) -> Vec<Interaction> {
    SessionStream::new(&model(name), options, 0).collect()
}

fn steps(name: &str, number: u32, count: usize) -> Vec<Step> {
    let model = model(name);
    let mut browser = Browser::new(&model, "site", 11, number);
    let mut now_ns = 0;
    (0..count)
        .map(|_| {
            let step = browser.next(now_ns);
            now_ns = step.intended_ns;
            step
        })
        .collect()
}

/// The stationary shares of a table of thresholds, by power iteration of the lazy chain (P + I) / 2, which has the same
/// ones and no period.
fn stationary(table: &Transitions) -> Vec<f64> {
    let count = table.states().len();
    let mut shares = vec![1.0 / count as f64; count];
    for _ in 0..20_000 {
        let mut next: Vec<f64> = shares.iter().map(|share| share / 2.0).collect();
        for (from, share) in (0..).zip(&shares) {
            for (to, next) in (0..).zip(&mut next) {
                *next += share * table.probability(from, Next::State(to)) / 2.0;
            }
        }
        shares = next;
    }
    shares
}

#[test]
fn the_stationary_mix_is_the_published_one() {
    for (mix, name) in TPCW.iter().enumerate() {
        let table = table(name);
        let shares = stationary(&table);
        for (page, published) in MIXES {
            let state = table.states().iter().position(|state| **state == *page).unwrap();
            // Thresholds are whole ten-thousandths, and the table is printed to 0.01.
            let off = (shares[state] * 100.0 - published[mix]).abs();
            assert!(
                off < 0.0075,
                "{name}, {page}: {:.4} instead of {}",
                shares[state] * 100.0,
                published[mix]
            );
        }
    }
}

/// Neighbouring interactions depend on each other, which Pearson's statistic must not: every 100th of a client's is taken,
/// by when a walk has forgotten where it was. 13 degrees of freedom: the statistic exceeds 34.53 with p = 0.001.
#[test]
fn the_mix_as_executed_is_the_published_one_within_sampling_error() {
    const APART: usize = 100;
    const CLIENTS: u32 = 100;
    const EACH: usize = 1000;
    for (mix, name) in TPCW.iter().enumerate() {
        let model = model(name);
        let mut counts: BTreeMap<&str, f64> = BTreeMap::new();
        for client in 0..CLIENTS {
            for step in steps(name, client, APART * EACH).iter().skip(APART - 1).step_by(APART) {
                *counts.entry(&model.table().states()[usize::from(step.state)]).or_default() += 1.0;
            }
        }
        let total: f64 = counts.values().sum();
        assert_eq!(total, f64::from(CLIENTS) * EACH as f64);
        let published: f64 = MIXES.iter().map(|(_, shares)| shares[mix]).sum();
        let chi_squared: f64 = MIXES
            .iter()
            .map(|(page, shares)| {
                let expected = total * shares[mix] / published;
                (counts.get(page).copied().unwrap_or(0.0) - expected).powi(2) / expected
            })
            .sum();
        println!("{name}: chi-squared {chi_squared:.2} with 13 degrees of freedom, {total} interactions");
        assert!(chi_squared < 34.53, "{name}: chi-squared {chi_squared:.2}: {counts:?}");
    }
}

#[test]
fn sessions_begin_at_home_and_end_where_they_would_come_home() {
    let model = model("tpcw-shopping");
    let home = model.table().initial();
    let (mut durations_s, mut first_pauses) = (Vec::new(), Vec::new());
    for client in 0..200 {
        let steps = steps("tpcw-shopping", client, 5000);
        first_pauses.push(steps[0].think_ns);
        for (before, after) in steps.iter().zip(&steps[1..]) {
            if before.session == after.session {
                assert_eq!(after.step, before.step + 1);
            } else {
                assert_eq!((after.session, after.step, after.state), (before.session + 1, 0, home));
            }
        }
        let begins: Vec<i64> =
            steps.iter().filter(|step| step.step == 0).map(|step| step.intended_ns).collect();
        durations_s.extend(begins.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / S as f64));
    }
    let ms = 1_000_000;
    assert!(first_pauses.iter().all(|ns| (100 * ms..20_100 * ms).contains(ns)));
    assert!(first_pauses.iter().any(|ns| *ns < 5000 * ms) && first_pauses.iter().any(|ns| *ns > 15_000 * ms));
    // From home to home: at least what was drawn, mean 900(1 - e^-4) = 883.5 s, then on to the next time that the client
    // would go home. That takes 7 s for each step, 1 / 0.16 of them on average, or longer where home is far.
    let mean_s = durations_s.iter().sum::<f64>() / durations_s.len() as f64;
    assert!((883.5..883.5 + 200.0).contains(&mean_s), "{mean_s} s over {} sessions", durations_s.len());
}

#[test]
fn clients_of_rubis_leave_when_the_table_says_so_and_at_last_after_a_thousand() {
    for name in ["rubis-default", "rubis-browse-only", "rubbos-user", "rubbos-author"] {
        let table = model(name).table().clone();
        let steps = steps(name, 3, 200_000);
        assert!(steps.iter().all(|step| step.step < 1000), "{name}");
        assert!(steps.iter().any(|step| step.back), "{name}");
        let begun = steps.iter().filter(|step| step.step == 0).count();
        assert!(begun > 100, "{name}: {begun} sessions");
        assert!(
            steps.iter().filter(|step| step.step == 0).all(|step| step.state == table.initial()),
            "{name}"
        );
    }
}

/// As the clients do it: a matrix `[column][row]`, rows tried from the top, going back from a stack.
struct Straightforward {
    matrix: Vec<Vec<f32>>,
    state: usize,
    stack: Vec<usize>,
}

impl Straightforward {
    fn new(table: &Transitions) -> Self {
        let count = table.states().len() as u16;
        let rows = || (0..count).map(Next::State).chain([Next::Back, Next::End]);
        let matrix =
            (0..count).map(|from| rows().map(|to| table.probability(from, to) as f32).collect()).collect();
        Straightforward { matrix, state: usize::from(table.initial()), stack: Vec::new() }
    }

    /// False at the end of the session.
    fn step(&mut self, drawn: f32) -> bool {
        let (back, end) = (self.matrix.len(), self.matrix.len() + 1);
        let before = self.state;
        let mut sum = 0.0f32;
        for row in 0..=end {
            sum += self.matrix[before][row];
            if drawn < sum {
                self.state = row;
                break;
            }
        }
        if self.state == end {
            return false;
        }
        if self.state == back {
            self.state = self.stack.pop().expect("a way back");
        } else if self.matrix[self.state][back] == 0.0 {
            self.stack.clear();
        } else {
            self.stack.push(before);
        }
        true
    }
}

#[test]
fn a_walk_is_step_by_step_that_of_an_independent_one() {
    for name in ["rubis-default", "rubis-browse-only", "rubbos-user", "rubbos-author", "rubbos-browse-only"] {
        let table = table(name);
        let (mut ours, mut theirs) = (ChaCha8Rng::seed_from_u64(9), ChaCha8Rng::seed_from_u64(9));
        let mut seen = BTreeMap::new();
        for _ in 0..3000 {
            let (mut walk, mut other) = (Walk::begin(&table), Straightforward::new(&table));
            loop {
                let moved = walk.step(&table, &mut ours);
                let goes_on = other.step(theirs.random());
                assert_eq!(moved != Moved::End, goes_on, "{name}");
                if !goes_on {
                    break;
                }
                assert_eq!(usize::from(walk.state()), other.state, "{name}");
                *seen.entry(format!("{moved:?}")).or_insert(0) += 1;
            }
        }
        assert!(seen.contains_key("Back") && seen["To"] > 10_000, "{name}: {seen:?}");
    }
}

#[test]
fn the_same_seed_gives_the_same_interactions_and_clients_do_not_disturb_each_other() {
    let stream = |clients, seed| interactions("rubis-default", options(clients, seed, 600));
    assert_eq!(stream(5, 1), stream(5, 1));
    assert_ne!(stream(5, 1), stream(5, 2));
    let of_first = |rows: Vec<Interaction>| -> Vec<_> {
        rows.into_iter().filter(|row| row.client == 0).map(|row| (row.intended_ns, row.page)).collect()
    };
    assert_eq!(of_first(stream(1, 1)), of_first(stream(9, 1)));
    let rows = stream(5, 1);
    assert!(rows.windows(2).all(|pair| pair[0].intended_ns <= pair[1].intended_ns));
    assert!(rows.iter().zip(0..).all(|(row, number)| row.interaction == number));
}

#[test]
fn an_answer_that_takes_longer_puts_off_what_follows() {
    // A session of RUBiS does not end by the clock, so that the walk is the same.
    let model = model("rubis-default");
    let (mut quick, mut slow) = (Browser::new(&model, "site", 1, 0), Browser::new(&model, "site", 1, 0));
    let (mut quick_ns, mut slow_ns) = (0, 0);
    for number in 0..50 {
        let (a, b) = (quick.next(quick_ns), slow.next(slow_ns));
        assert_eq!((a.state, a.think_ns), (b.state, b.think_ns));
        assert_eq!(b.intended_ns - a.intended_ns, number * S);
        (quick_ns, slow_ns) = (a.intended_ns, b.intended_ns + S);
    }
}

#[test]
fn a_workload_of_sessions_is_no_workload_of_requests() {
    let catalog = catalog();
    assert!(catalog.names().all(|name| !name.starts_with("tpcw")));
    let error = catalog.load("tpcw-shopping").unwrap_err().to_string();
    assert!(
        error.contains("cannot be replayed to a device") && error.contains("weir generate tpcw-shopping")
    );
    for name in catalog.session_names() {
        assert_eq!(workload(name).name, name);
    }
    assert!(catalog.session_names().count() >= 9);
}

#[test]
fn what_is_wrong_with_a_workload_of_sessions_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let check = |from: &str, to: &str| {
        let good = std::fs::read_to_string(here().join("sessions/tpcw-shopping.yml")).unwrap();
        assert!(good.contains(from), "{from}");
        std::fs::create_dir_all(folder.path().join("sessions")).unwrap();
        std::fs::create_dir_all(folder.path().join("tables")).unwrap();
        std::fs::copy(
            here().join("tables/tpcw-shopping.yml"),
            folder.path().join("tables/tpcw-shopping.yml"),
        )
        .unwrap();
        std::fs::write(folder.path().join("sessions/tpcw-shopping.yml"), good.replace(from, to)).unwrap();
        Catalog::open(folder.path()).unwrap().load_any("tpcw-shopping").unwrap_err().to_string()
    };
    assert!(
        check("mean_ms: 7000", "mean_ms: -1").contains("think.exponential.mean_ms: is -1; it must be from")
    );
    assert!(check("  lasts:", "  laasts:").contains("did you mean `lasts`?"));
    assert!(check("from_ms: 100", "from_ms: 90000").contains("it must be a range"));
    assert!(check("tables/tpcw-shopping", "tables/tpcw-shoping").contains("cannot be read"));
    assert!(check("  lasts: {mean_s: 900, longest_s: 3600}\n", "").contains("a session would never be over"));
    assert!(
        check("exponential: {mean_ms: 7000, longest_ms: 70000}", "waiting_times: {scale: 1}")
            .contains("gives no waiting time for HOME")
    );
}
