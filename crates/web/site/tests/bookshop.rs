//! Tests of TPC-W on real database servers: content, pages, consistency.

mod common;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Barrier;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use common::{Server, Visit, content, fill, serve, server};
use serde_json::Value;
use weir_web_site::check::Acknowledged;
use weir_web_site::database::{Address, Connection, Engine, MOST_ATTEMPTS, transaction};
use weir_web_site::load::{LoadOptions, load};
use weir_web_site::tpcw::Books;
use weir_web_site::{Benchmark, Error};

const BOOKS: Books = Books { items: 200, browsers: 1, seed: 7 };

fn texts<'a>(pairs: &'a [(&'a str, String)]) -> Vec<(&'a str, &'a str)> {
    pairs.iter().map(|(name, value)| (*name, value.as_str())).collect()
}

fn int(value: &Value, name: &str) -> i64 {
    value[name].as_i64().unwrap_or_else(|| panic!("{name} of {value}"))
}

/// A cart, a customer, an order.
fn buy(visit: &mut Visit, token: &str) -> Value {
    let cart = visit.do_it("SHOP", &[("i_id", "17")]);
    let sc_id = int(&cart, "sc_id").to_string();
    let customer = visit.do_it("BUYR", &[("sc_id", &sc_id), ("uname", "OGBA"), ("passwd", "ogba")]);
    visit.do_it("BUYC", &texts(&order(&sc_id, &int(&customer, "c_id").to_string(), token)))
}

fn order<'a>(sc_id: &str, c_id: &str, token: &str) -> Vec<(&'a str, String)> {
    [
        ("sc_id", sc_id),
        ("c_id", c_id),
        ("token", token),
        ("cc_type", "VISA"),
        ("cc_num", "4111111111111111"),
        ("cc_name", "A Reader"),
        ("cc_expire", "1800000000"),
        ("shipping", "MAIL"),
    ]
    .map(|(name, value)| (name, value.to_owned()))
    .to_vec()
}

#[test]
fn both_engines_hold_the_same_whatever_the_threads() {
    let mut found = Vec::new();
    for (engine, jobs) in [(Engine::PostgreSql, 1), (Engine::MariaDb, 3)] {
        let Some(server) = server(engine) else { continue };
        let address = server.create_database("shop");
        let loaded = fill(&address, &BOOKS, jobs);
        let rows = |table: &str| loaded.rows.iter().find(|(name, _)| name == table).unwrap().1;
        assert_eq!((rows("customer"), rows("address"), rows("orders")), (2880, 5760, 2592));
        assert_eq!((rows("author"), rows("item"), rows("country"), rows("cc_xacts")), (50, 200, 92, 2592));
        found.push(content(&mut *address.connect().unwrap(), &BOOKS));
        again(&address);
        passwords(&address, server.port, server.folder.path());
        deadlocks(&address);
        shop(&server, &address);
    }
    if let [postgresql, mariadb] = &found[..] {
        assert_eq!(postgresql, mariadb);
    }
}

/// An existing site is kept unless `replace` is set.
fn again(address: &Address) {
    assert!(fill(address, &BOOKS, 1).already);
    let other = Books { items: 100, ..BOOKS };
    let options = LoadOptions { jobs: 1, replace: false, hot: None };
    let error = load(address, &other, options, &|_| {}).unwrap_err().to_string();
    assert!(error.contains("items 200") && error.contains("--replace"), "{error}");
    let mut connection = address.connect().unwrap();
    connection.batch("UPDATE weir_site SET value = 'loading' WHERE name = 'state'").unwrap();
    let error = load(address, &BOOKS, options, &|_| {}).unwrap_err().to_string();
    assert!(error.contains("incomplete load"), "{error}");
    assert!(Benchmark::TpcW.application(&mut *connection).is_err());
    connection.batch("UPDATE weir_site SET value = 'loaded' WHERE name = 'state'").unwrap();
}

/// Over TCP a user is known by a password, which is in a file.
fn passwords(address: &Address, port: u16, folder: &Path) {
    let mut connection = address.connect().unwrap();
    let statements = match address.engine {
        Engine::PostgreSql => {
            "CREATE ROLE visitor LOGIN PASSWORD 'a secret'; GRANT SELECT ON item TO visitor"
        }
        Engine::MariaDb => {
            "CREATE USER visitor@'127.0.0.1' IDENTIFIED BY 'a secret'; GRANT SELECT ON shop.item TO visitor@'127.0.0.1'"
        }
    };
    connection.batch(statements).unwrap();
    let file = folder.join("password");
    let text =
        format!("{}://visitor@127.0.0.1:{port}/shop?password_file={}", address.engine.name(), file.display());
    let over_tcp: Address = text.parse().unwrap();
    std::fs::write(&file, "a secret\n").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let mut visitor = over_tcp.connect().unwrap();
    assert_eq!(visitor.run("SELECT COUNT(*) FROM item", &[]).unwrap().int().unwrap(), 200);
    let error = visitor.run("DELETE FROM item", &[]).unwrap_err();
    assert!(!error.is_gone() && !error.is_retryable(), "{error}");
    // After an error the connection is as good as before.
    assert_eq!(visitor.run("SELECT COUNT(*) FROM item", &[]).unwrap().int().unwrap(), 200);
    std::fs::write(&file, "another\n").unwrap();
    let error = over_tcp.connect().err().unwrap().to_string();
    assert!(!error.contains("another") && !error.contains("a secret"), "{error}");
    let none: Address = format!("{}://visitor@127.0.0.1:{port}/shop", address.engine.name()).parse().unwrap();
    assert!(none.connect().is_err());
    std::fs::remove_file(&file).unwrap();
}

/// Two transactions that wait for each other: one is rolled back, carried out again, and counted.
fn deadlocks(address: &Address) {
    let (retries, barrier) = (AtomicU64::new(0), Barrier::new(2));
    let exchange = |countries: [i64; 2]| {
        let mut connection = address.connect().unwrap();
        let mut first = true;
        transaction::<_, Error>(
            &mut *connection,
            &retries,
            |connection| {
                let sql = "UPDATE country SET co_exchange = co_exchange + 1 WHERE co_id = ?";
                connection.run(sql, &[countries[0].into()])?;
                if std::mem::take(&mut first) {
                    barrier.wait();
                }
                connection.run(sql, &[countries[1].into()])?;
                Ok(())
            },
            Error::database,
        )
        .unwrap();
    };
    let sum = |connection: &mut dyn Connection| {
        connection
            .run("SELECT SUM(co_exchange) FROM country WHERE co_id IN (5, 6)", &[])
            .unwrap()
            .int()
            .unwrap()
    };
    let mut connection = address.connect().unwrap();
    let before = sum(&mut *connection);
    std::thread::scope(|scope| {
        scope.spawn(|| exchange([5, 6]));
        scope.spawn(|| exchange([6, 5]));
    });
    assert_eq!(sum(&mut *connection), before + 4);
    // The second attempt may meet the other transaction again.
    let retries = retries.into_inner();
    assert!((1..u64::from(MOST_ATTEMPTS)).contains(&retries), "{retries}");
}

fn shop(server: &Server, address: &Address) {
    let served = serve(Benchmark::TpcW, address, 4);
    let mut visit = Visit::new(&served, "tpcw");
    pages(&mut visit);
    refusals(&mut visit);
    let orders = orders(&mut visit);
    holds(address, &orders);
    // Two browsers and one token: one order.
    let tokens: Vec<i64> = std::thread::scope(|scope| {
        let buyers: Vec<_> = (0..8)
            .map(|number| {
                let served = &served;
                scope.spawn(move || {
                    let token = if number < 2 { "same".to_owned() } else { format!("other-{number}") };
                    int(&buy(&mut Visit::new(served, "tpcw"), &token), "o_id")
                })
            })
            .collect();
        buyers.into_iter().map(|buyer| buyer.join().unwrap()).collect()
    });
    assert_eq!(tokens[0], tokens[1]);
    holds(address, &orders);
    outage(server, &mut visit);
    holds(address, &orders);
    damages(&mut *address.connect().unwrap(), &orders);
}

fn pages(visit: &mut Visit) {
    let home = visit.see("HOME", &[("c_id", "3")]);
    assert_eq!(home["items"].as_array().unwrap().len(), 5);
    assert!(home["name"].as_str().unwrap().contains(' '));
    let product = visit.see("PROD", &[("i_id", "42")]);
    assert_eq!(int(&product, "i_id"), 42);
    let listed = |value: &Value| value["items"].as_array().unwrap().len();
    let new = visit.see("NEWP", &[("subject", "COOKING")]);
    assert!((1..=50).contains(&listed(&new)), "{new}");
    assert!((1..=50).contains(&listed(&visit.see("BESS", &[("subject", "COOKING")]))));
    assert_eq!(listed(&visit.see("SREQ", &[])), 5);
    // Every search for a syllable name that is in use finds something; a title's is shared by five books.
    for number in 1..=40 {
        let name = weir_web_site::text::digsyl(number, 7);
        assert_eq!(listed(&visit.see("SRES", &[("type", "title"), ("search", &name)])), 5);
    }
    for number in 1..=20 {
        let name = weir_web_site::text::digsyl(number, 7);
        assert!(listed(&visit.see("SRES", &[("type", "author"), ("search", &name)])) >= 1, "{name}");
    }
    assert!(listed(&visit.see("SRES", &[("type", "subject"), ("subject", "ARTS")])) >= 1);
    assert_eq!(visit.see("CREG", &[("c_id", "10")])["uname"], "OGBA");
    assert_eq!(visit.see("ORDI", &[("c_id", "10")])["uname"], "OGBA");
    let admin =
        visit.do_it("ADMC", &[("i_id", "42"), ("cost", "777"), ("image", "a.gif"), ("thumbnail", "b.gif")]);
    let related = admin["related"].as_array().unwrap();
    assert!(related.len() == 5 && !related.contains(&42.into()), "{admin}");
    let product = visit.see("ADMR", &[("i_id", "42")]);
    assert_eq!((int(&product, "cost"), product["image"].as_str()), (777, Some("a.gif")));
}

fn refusals(visit: &mut Visit) {
    let mut status = |page: &str, pairs: &[(&str, &str)]| visit.get(page, pairs).0;
    assert_eq!(status("PROD", &[]), 400);
    assert_eq!(status("PROD", &[("i_id", "x")]), 400);
    assert_eq!(status("PROD", &[("i_id", "201")]), 404);
    assert_eq!(status("NEWP", &[("subject", "' OR 1=1")]), 400);
    assert_eq!(status("SRES", &[("type", "title"), ("search", "%")]), 400);
    assert_eq!(status("BUYC", &[]), 405);
    assert_eq!(status("NONE", &[]), 404);
    assert_eq!(status("ORDD", &[("uname", "OGBA"), ("passwd", "wrong")]), 403);
    assert_eq!(status("ORDD", &[("uname", "O'G\"BA\\"), ("passwd", "x")]), 404);
    assert_eq!(visit.post("BUYC", &texts(&order("999999", "1", "t"))).0, 404);
}

/// Orders of a known and a new customer; returns the acknowledged receipts.
fn orders(visit: &mut Visit) -> Vec<Acknowledged> {
    let cart = visit.do_it("SHOP", &[("i_id", "17")]);
    let sc_id = int(&cart, "sc_id").to_string();
    visit.do_it("SHOP", &[("sc_id", &sc_id), ("i_id", "17")]);
    let cart = visit.do_it("SHOP", &[("sc_id", &sc_id), ("i_id", "4")]);
    assert_eq!(cart["lines"].as_array().unwrap().len(), 2);
    let cart = visit.do_it("SHOP", &[("sc_id", &sc_id), ("qty", "17:9,4:0")]);
    assert_eq!((int(&cart["lines"][0], "qty"), cart["lines"].as_array().unwrap().len()), (9, 1));
    assert_eq!(int(&cart, "sub_total"), 9 * int(&cart["lines"][0], "cost"));
    let new = [
        ("sc_id", sc_id.as_str()),
        ("fname", "New"),
        ("lname", "Customer"),
        ("street1", "1 A Street"),
        ("street2", "at 'B'"),
        ("city", "C"),
        ("state", "D"),
        ("zip", "00001"),
        ("country", "France"),
        ("phone", "1"),
        ("email", "a@b.c"),
        ("birthdate", "0"),
        ("data", "none"),
    ];
    let customer = visit.do_it("BUYR", &new);
    let c_id = int(&customer, "c_id");
    assert!(c_id > 2880, "{customer}");
    let name = customer["uname"].as_str().unwrap().to_owned();
    assert_eq!(name, weir_web_site::text::digsyl(c_id as u64, 0));
    let pairs = order(&sc_id, &c_id.to_string(), "first");
    let stock = |visit: &mut Visit| int(&visit.see("PROD", &[("i_id", "17")]), "stock");
    let before = stock(visit);
    let bought = visit.do_it("BUYC", &texts(&pairs));
    assert_eq!(bought["repeated"], false);
    assert_eq!(int(&bought, "total"), int(&customer["cart"], "total"));
    let expected = if before - 9 < 10 { before - 9 + 21 } else { before - 9 };
    assert_eq!(stock(visit), expected);
    let again = visit.do_it("BUYC", &texts(&pairs));
    assert_eq!((int(&again, "o_id"), &again["repeated"]), (int(&bought, "o_id"), &true.into()));
    assert_eq!(stock(visit), expected);
    // The cart is empty now, and an empty cart cannot be bought with another token.
    assert_eq!(visit.post("BUYC", &texts(&order(&sc_id, &c_id.to_string(), "second"))).0, 409);
    let shown = visit.see("ORDD", &[("uname", &name), ("passwd", &name.to_lowercase())]);
    assert_eq!((int(&shown, "o_id"), int(&shown, "total")), (int(&bought, "o_id"), int(&bought, "total")));
    let note = |token: &str, bought: &Value| Acknowledged {
        kind: "order".into(),
        token: token.into(),
        id: int(bought, "o_id"),
        amount: int(bought, "total"),
    };
    let third = buy(visit, "third");
    vec![note("first", &bought), note("third", &third)]
}

fn holds(address: &Address, orders: &[Acknowledged]) {
    let checked = Benchmark::TpcW.check(&mut *address.connect().unwrap(), orders).unwrap();
    assert!(checked.holds(), "{checked:#?}");
    assert!(checked.rules.iter().all(|rule| rule.looked_at > 0), "{checked:#?}");
}

/// A database that is gone is 503, and one that has returned is used again.
fn outage(server: &Server, visit: &mut Visit) {
    server.kill();
    let (status, body) = visit.get("HOME", &[]);
    assert_eq!(status, 503, "{body}");
    server.start();
    let until = Instant::now() + Duration::from_secs(10);
    while visit.get("HOME", &[]).0 != 200 {
        assert!(Instant::now() < until, "the site does not come back");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Each invariant is violated in turn, and only its rule reports it.
fn damages(connection: &mut dyn Connection, orders: &[Acknowledged]) {
    let engine = connection.engine();
    let (tokens, foreign) = match engine {
        Engine::PostgreSql => {
            ("DROP INDEX ix_orders_o_token", "ALTER TABLE order_line DROP CONSTRAINT fk_order_line_ol_i_id")
        }
        Engine::MariaDb => (
            "ALTER TABLE orders DROP INDEX ix_orders_o_token",
            "ALTER TABLE order_line DROP FOREIGN KEY fk_order_line_ol_i_id",
        ),
    };
    connection.batch(tokens).unwrap();
    connection.batch(foreign).unwrap();
    let id = orders[0].id;
    for (rule, damage, repair) in [
        (
            "acknowledged",
            format!("UPDATE orders SET o_token = 'lost' WHERE o_id = {id}"),
            format!("UPDATE orders SET o_token = 'first' WHERE o_id = {id}"),
        ),
        (
            "tokens",
            "UPDATE orders SET o_token = 'twice' WHERE o_id IN (1, 2)".to_owned(),
            "UPDATE orders SET o_token = NULL WHERE o_id IN (1, 2)".to_owned(),
        ),
        (
            "subtotals",
            format!("UPDATE order_line SET ol_cost = ol_cost + 1 WHERE ol_o_id = {id} AND ol_id = 1"),
            format!("UPDATE order_line SET ol_cost = ol_cost - 1 WHERE ol_o_id = {id} AND ol_id = 1"),
        ),
        (
            "totals",
            "UPDATE orders SET o_tax = o_tax + 1 WHERE o_id = 5".to_owned(),
            "UPDATE orders SET o_tax = o_tax - 1 WHERE o_id = 5".to_owned(),
        ),
        (
            "cards",
            "UPDATE cc_xacts SET cx_xact_amt = cx_xact_amt + 1 WHERE cx_o_id = 5".to_owned(),
            "UPDATE cc_xacts SET cx_xact_amt = cx_xact_amt - 1 WHERE cx_o_id = 5".to_owned(),
        ),
        (
            "stock",
            "UPDATE item SET i_stock = i_stock - 1 WHERE i_id = 17".to_owned(),
            "UPDATE item SET i_stock = i_stock + 1 WHERE i_id = 17".to_owned(),
        ),
        (
            "carts",
            "UPDATE shopping_cart SET sc_sub_total = sc_sub_total + 1 WHERE sc_id = 1".to_owned(),
            "UPDATE shopping_cart SET sc_sub_total = sc_sub_total - 1 WHERE sc_id = 1".to_owned(),
        ),
        (
            "orphans",
            "UPDATE order_line SET ol_i_id = 4711 WHERE ol_o_id = 1 AND ol_id = 1".to_owned(),
            "UPDATE order_line SET ol_i_id = 1 WHERE ol_o_id = 1 AND ol_id = 1".to_owned(),
        ),
    ] {
        connection.batch(&damage).unwrap();
        let checked = Benchmark::TpcW.check(connection, orders).unwrap();
        let found: Vec<&str> =
            checked.rules.iter().filter(|found| found.violations > 0).map(|found| found.rule).collect();
        assert_eq!(found, [rule], "{engine:?}: {damage}: {checked:#?}");
        assert!(checked.rules.iter().all(|found| found.rule != rule || !found.examples.is_empty()));
        connection.batch(&repair).unwrap();
    }
    assert!(Benchmark::TpcW.check(connection, orders).unwrap().holds());
    let mut doubled = orders.to_vec();
    doubled.push(Acknowledged { kind: "order".into(), token: "never".into(), id: 1, amount: 1 });
    assert!(!Benchmark::TpcW.check(connection, &doubled).unwrap().holds());
}
