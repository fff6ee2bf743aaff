//! Tests that the content of each benchmark and the requests of its clients do not change between releases.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use serde_json::json;
use sha2::{Digest, Sha256};
use weir_web_site::Benchmark;
use weir_web_site::benchmark::Scale;
use weir_web_site::browse::Asked;

const SCALE: Scale = Scale { items: 40, browsers: 1, share: 0.001, seed: 7 };
/// Units of a table that are examined.
const UNITS: u64 = 60;

/// The first eight digits of a hash.
fn short(hash: Sha256) -> String {
    hash.finalize().iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

fn population(benchmark: Benchmark) -> String {
    let population = benchmark.population(SCALE).unwrap();
    let mut hash = Sha256::new();
    hash.update(format!("{:?}", population.facts()));
    for table in population.tables() {
        let mut rows = Vec::new();
        let units = population.units(table.name);
        (1..=units.min(UNITS)).for_each(|unit| population.rows(table.name, unit, &mut rows));
        hash.update(format!("{} {units} {rows:?}", table.name));
    }
    short(hash)
}

fn questions(benchmark: Benchmark) -> String {
    let facts: Vec<(String, String)> = benchmark
        .population(SCALE)
        .unwrap()
        .facts()
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    let mut visitor = benchmark.visitor(&facts, ChaCha8Rng::seed_from_u64(7), "mark".to_owned()).unwrap();
    let mut hash = Sha256::new();
    let answer = json!({
        "id": 3, "amount": 4, "o_id": 3, "total": 4, "seller": 5, "max_bid": 700, "story": 2, "c_id": 8, "sc_id": 9, "i_id": 10,
        "items": [{"id": 11, "i_id": 12}], "stories": [{"id": 13}], "comments": [{"id": 14, "story": 2}],
        "submissions": [{"id": 15}],
    });
    for session in 0..3 {
        visitor.begin();
        for page in benchmark.pages() {
            let mut asked = Asked::default();
            visitor.ask(page, &mut asked);
            hash.update(format!("{page} {asked:?}"));
            match session {
                0 => hash.update(format!("{:?}", visitor.take(page, &answer))),
                1 => hash.update(format!("{:?}", visitor.take(page, &json!({})))),
                _ => visitor.refused(page),
            }
        }
    }
    short(hash)
}

#[test]
fn populations_and_questions_are_those_of_before() {
    let found =
        Benchmark::ALL.map(|benchmark| (benchmark.name(), population(benchmark), questions(benchmark)));
    let expected = [
        ("tpcw", "90a1256d", "cde20d6e"),
        ("rubis", "8bb48823", "81877885"),
        ("rubbos", "ed728ae6", "992e0166"),
    ];
    assert_eq!(found, expected.map(|(name, rows, asked)| (name, rows.to_owned(), asked.to_owned())));
}
