//! Tests of the emulated browsers of every benchmark: pages as in the mix, and a consistent database afterwards.

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use common::{Server, fill, serve, server};
use weir_web_client::{Options, browse};
use weir_web_site::Benchmark;
use weir_web_site::benchmark::Scale;
use weir_web_site::browse::{Browsers, OrderLog, page_of, read_status};
use weir_web_site::check::read_orders;
use weir_web_site::database::Engine;
use weir_workload::sessions::{AnyWorkload, Browser, SessionModel};

fn model(mix: &str) -> Arc<SessionModel> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../workloads");
    let catalog = weir_workload::Catalog::open(&folder).unwrap();
    match catalog.load_any(mix).unwrap() {
        AnyWorkload::Sessions(workload) => SessionModel::open(&workload, catalog.folder_of(mix)).unwrap(),
        AnyWorkload::Requests(_) => panic!("{mix} has no sessions"),
    }
}

/// Shares of the pages in many sessions of the mix, without any site.
fn expected(model: &Arc<SessionModel>) -> BTreeMap<String, f64> {
    const STEPS: u64 = 400_000;
    let mut counts: BTreeMap<String, f64> = BTreeMap::new();
    for client in 0..20 {
        let mut browser = Browser::new(model, "expected", 99, client);
        let mut now_ns = 0;
        for _ in 0..STEPS / 20 {
            let step = browser.next(now_ns);
            // Without thinking, as the browsers of this test: sessions that last for a time last for as many pages.
            now_ns += 1_000_000_000;
            let page = page_of(&model.table().states()[usize::from(step.state)]);
            *counts.entry(page).or_default() += 1.0 / STEPS as f64;
        }
    }
    counts
}

fn visited(database: &Server, benchmark: Benchmark, mix: &str, seconds: f64) {
    let address = database.create_database(benchmark.name());
    let scale = Scale { items: 100, browsers: 1, share: 0.002, seed: 3 };
    fill(&address, &*benchmark.population(scale).unwrap(), 2);
    let served = serve(benchmark, &address, 4);
    let server = weir_web_client::Server::new(&format!("http://{}", served.address)).unwrap();
    let status = read_status(&server).unwrap();
    let model = model(mix);
    let log_file = database.folder.path().join(format!("{mix}.log"));
    let log = Arc::new(OrderLog::open(&log_file).unwrap());
    let browsers = Browsers {
        class: mix.into(),
        model: Arc::clone(&model),
        clients: 12,
        seed: 5,
        think_scale: 0.0,
        log: Some(Arc::clone(&log)),
        stop: Arc::default(),
        repeated: Arc::default(),
    };
    let class = browsers.class(server.clone(), &status).unwrap();
    let options = Options { duration: Duration::from_secs_f64(seconds), ..Options::default() };
    let mut asked: BTreeMap<String, u64> = BTreeMap::new();
    let mut refused = BTreeMap::new();
    let report = browse(vec![class], &options, |outcome| {
        let page = page_of(outcome.label.as_deref().unwrap());
        if outcome.error == 0 {
            *asked.entry(page).or_default() += 1;
        } else {
            *refused.entry((page, outcome.http_status)).or_insert(0u64) += 1;
        }
    })
    .unwrap();
    assert!(refused.is_empty(), "{mix}: {refused:?}");
    // The answers of the browsers equal the site's own counts.
    let seen: BTreeMap<String, u64> =
        read_status(&server).unwrap().answered.into_iter().filter(|(_, count)| *count > 0).collect();
    assert_eq!(seen, asked, "{mix}");
    let total: u64 = seen.values().sum();
    assert_eq!(report.classes[0].answered, total);
    // Chi-squared of the pages. Pages of one session depend on each other, which increases the variance: twice the
    // critical value is allowed. Pages with an expected count below five are pooled.
    let (mut squares, mut cells, mut rare) = (0.0, 0, (0.0, 0.0));
    for (page, share) in expected(&model) {
        let (found, wanted) = (seen.get(&page).copied().unwrap_or(0) as f64, share * total as f64);
        if wanted < 5.0 {
            rare = (rare.0 + found, rare.1 + wanted);
        } else {
            squares += (found - wanted).powi(2) / wanted;
            cells += 1;
        }
    }
    if rare.1 >= 5.0 {
        squares += (rare.0 - rare.1).powi(2) / rare.1;
        cells += 1;
    }
    let freedom = f64::from(cells - 1);
    let limit = 2.0 * (freedom + 4.0 * (2.0 * freedom).sqrt());
    eprintln!(
        "{mix} on {}: {total} pages, chi-squared {squares:.1} of {limit:.1}, {} acknowledged",
        address.engine.name(),
        log.written()
    );
    assert!(total > 200 && squares < limit, "{mix}: chi-squared {squares} of {limit} with {total} pages");
    let orders = read_orders(&log_file).unwrap();
    assert_eq!(orders.len() as u64, log.written());
    assert!(!orders.is_empty());
    let checked = benchmark.check(&mut *address.connect().unwrap(), &orders).unwrap();
    assert!(checked.holds(), "{mix}: {checked:#?}");
    for (rule, damage, repair) in damages(benchmark) {
        let mut connection = address.connect().unwrap();
        connection.batch(damage).unwrap();
        let checked = benchmark.check(&mut *connection, &orders).unwrap();
        let found: Vec<&str> =
            checked.rules.iter().filter(|rule| rule.violations > 0).map(|rule| rule.rule).collect();
        assert_eq!(found, [*rule], "{damage}: {checked:#?}");
        connection.batch(repair).unwrap();
    }
    assert!(benchmark.check(&mut *address.connect().unwrap(), &orders).unwrap().holds());
}

/// A violation of each rule, and its repair. The rules of the bookshop have a separate test.
fn damages(benchmark: Benchmark) -> &'static [(&'static str, &'static str, &'static str)] {
    match benchmark {
        Benchmark::TpcW => &[],
        Benchmark::Rubis => &[
            (
                "bids",
                "UPDATE items SET nb_of_bids = nb_of_bids + 1 WHERE id = 1001",
                "UPDATE items SET nb_of_bids = nb_of_bids - 1 WHERE id = 1001",
            ),
            (
                "bids",
                "UPDATE items SET max_bid = max_bid + 1 WHERE id = 1002",
                "UPDATE items SET max_bid = max_bid - 1 WHERE id = 1002",
            ),
            (
                "quantities",
                "UPDATE items SET quantity = quantity + 1 WHERE id = 1003",
                "UPDATE items SET quantity = quantity - 1 WHERE id = 1003",
            ),
            (
                "ratings",
                "UPDATE users SET rating = rating + 1 WHERE id = 7",
                "UPDATE users SET rating = rating - 1 WHERE id = 7",
            ),
            (
                "acknowledged-bids",
                "UPDATE bids SET token = CONCAT(token, 'x') WHERE token IS NOT NULL",
                "UPDATE bids SET token = LEFT(token, CHAR_LENGTH(token) - 1) WHERE token IS NOT NULL",
            ),
        ],
        Benchmark::Rubbos => &[
            (
                "old-childs",
                "UPDATE old_comments SET childs = childs + 1 WHERE id = 65",
                "UPDATE old_comments SET childs = childs - 1 WHERE id = 65",
            ),
            (
                "old-ratings",
                "UPDATE old_comments SET rating_initial = rating_initial + 1 WHERE id = 65",
                "UPDATE old_comments SET rating_initial = rating_initial - 1 WHERE id = 65",
            ),
            (
                "user-ratings",
                "UPDATE board_users SET rating = rating + 1 WHERE id = 7",
                "UPDATE board_users SET rating = rating - 1 WHERE id = 7",
            ),
            (
                "decisions",
                "INSERT INTO submissions (title, body, date_s, writer, category, state) VALUES ('t', 'b', 0, 1, 1, 1)",
                "DELETE FROM submissions WHERE title = 't'",
            ),
            (
                "acknowledged-comments",
                "UPDATE story_comments SET token = CONCAT(token, 'x') WHERE token IS NOT NULL",
                "UPDATE story_comments SET token = LEFT(token, CHAR_LENGTH(token) - 1) WHERE token IS NOT NULL",
            ),
        ],
    }
}

#[test]
fn shopping_and_a_bulletin_board() {
    let Some(database) = server(Engine::PostgreSql) else { return };
    std::thread::scope(|scope| {
        scope.spawn(|| visited(&database, Benchmark::TpcW, "tpcw-shopping", 2.0));
        scope.spawn(|| visited(&database, Benchmark::Rubbos, "rubbos-author", 2.0));
    });
}

#[test]
fn auctions() {
    let Some(database) = server(Engine::MariaDb) else { return };
    visited(&database, Benchmark::Rubis, "rubis-default", 2.0);
}
