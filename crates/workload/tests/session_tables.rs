//! The tables of transitions: against the files that they were taken from, and what is wrong with a bad one.

use std::path::{Path, PathBuf};

use weir_workload::sessions::{Next, Transitions};

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads")
}

fn table(name: &str) -> Transitions {
    let path = here().join("tables").join(format!("{name}.yml"));
    Transitions::read(&path).unwrap_or_else(|problems| panic!("{problems}"))
}

#[test]
fn what_is_wrong_with_a_table_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let check = |from: &str, to: &str| {
        let good = std::fs::read_to_string(here().join("tables/tpcw-shopping.yml")).unwrap();
        assert!(good.contains(from), "{from}");
        let path = folder.path().join("table.yml");
        std::fs::write(&path, good.replace(from, to)).unwrap();
        Transitions::read(&path).unwrap_err().to_string()
    };
    assert!(check("initial: HOME", "initial: HOUSE").contains("unknown state `HOUSE`; did you mean `HOME`?"));
    assert!(check("CREG: 2585", "CREG: 9700").contains("must rise in the order of the states"));
    assert!(check("CREG: 2585", "CRAG: 2585").contains("did you mean `CREG`?"));
    assert!(
        check("\nthresholds:", "\nprobabilities: {}\nthresholds:")
            .contains("either thresholds or probabilities")
    );
    assert!(check("  ADMR: ", "  ADMC: ").contains("ADMC"));
}

/// Our tables against the files that they were taken from, number by number.
#[test]
fn our_tables_are_those_of_the_clients() {
    let Some(traces) = std::env::var_os("WEIR_TRACES").map(PathBuf::from) else {
        eprintln!("skipped: WEIR_TRACES does not say where the samples are");
        return;
    };
    let pairs = [
        ("rubis-default", "rubis/default_transitions.txt"),
        ("rubis-browse-only", "rubis/browse_only_transitions.txt"),
        ("rubbos-user", "rubbos/user_default_transitions.txt"),
        ("rubbos-user-no-search", "rubbos/user_default_no_search_transitions.txt"),
        ("rubbos-author", "rubbos/author_default_transitions.txt"),
        ("rubbos-browse-only", "rubbos/browse_only_transitions.txt"),
        ("rubbos-browse-only-no-search", "rubbos/browse_only_no_search_transitions.txt"),
    ];
    for (name, original) in pairs {
        let path = traces.join(original);
        if !path.is_file() {
            eprintln!("skipped: there is no {}", path.display());
            continue;
        }
        let (ours, theirs) =
            (table(name), Transitions::read(&path).unwrap_or_else(|problems| panic!("{problems}")));
        assert_eq!(ours.states(), theirs.states(), "{name}");
        let count = ours.states().len() as u16;
        for to in (0..count).map(Next::State).chain([Next::Back, Next::End]) {
            assert_eq!(ours.waiting_ms(to), theirs.waiting_ms(to), "{name}: {to:?}");
            for from in 0..count {
                assert_eq!(ours.probability(from, to), theirs.probability(from, to), "{name}: {from} {to:?}");
            }
        }
    }
}

/// The same for TPC-W: rows and columns are states, INIT first.
#[test]
fn our_thresholds_are_those_of_tpc_w() {
    let path = match std::env::var_os("WEIR_TRACES") {
        Some(traces) => Path::new(&traces).join("tpcw/tpcw_thresholds_corrected.json"),
        None => {
            eprintln!("skipped: WEIR_TRACES does not say where the samples are");
            return;
        }
    };
    let Ok(text) = std::fs::read_to_string(&path) else {
        eprintln!("skipped: there is no {}", path.display());
        return;
    };
    let file: serde_json::Value = serde_json::from_str(&text).unwrap();
    let states: Vec<&str> =
        file["states"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert_eq!(file["mixes"]["shopping"][0][7], 9999, "INIT leads to HOME");
    for name in ["tpcw-browsing", "tpcw-shopping", "tpcw-ordering"] {
        let ours = table(name);
        assert!(states[1..].iter().copied().eq(ours.states().iter().map(|state| &**state)), "{name}");
        for from in 0..ours.states().len() {
            let mut below = 0;
            for to in 0..ours.states().len() {
                let row = &file["mixes"][name.trim_start_matches("tpcw-")][from + 1];
                let threshold = row[to + 1].as_u64().unwrap();
                let expected = if threshold == 0 { 0.0 } else { (threshold - below) as f64 / 9999.0 };
                below = below.max(threshold);
                assert_eq!(
                    ours.probability(from as u16, Next::State(to as u16)),
                    expected,
                    "{name}: {from} {to}"
                );
            }
        }
    }
}
