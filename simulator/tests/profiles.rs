//! Profile files: what is accepted, and what an error says.

use std::io::Write;

use weir_simulator::profile::{self, Profile, ProfileError};

const MIB: u64 = 1 << 20;

/// The message for a profile file with that text, built at 256 MiB.
fn message(text: &str) -> String {
    let mut file = tempfile::Builder::new().suffix(".yml").tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let loaded = profile::load(file.path().to_str().unwrap());
    match loaded.and_then(|profile| profile.build(256 * MIB).map(|_| ())) {
        Ok(()) => "no error".to_owned(),
        Err(error) => error.to_string(),
    }
}

fn hdd_with(from: &str, to: &str) -> String {
    let text = include_str!("../profiles/hdd-7200.yml");
    assert!(text.contains(from));
    text.replacen(from, to, 1)
}

#[test]
fn every_profile_builds() {
    for name in profile::names() {
        let profile = profile::load(name).unwrap();
        assert_eq!(profile.build(256 * MIB).unwrap().capacity_bytes(), 256 * MIB, "{name}");
        assert!(!profile.description().is_empty());
        assert_eq!(profile.is_instant(), name == "null");
    }
}

#[test]
fn a_profile_is_loaded_from_a_path() {
    assert_eq!(message(include_str!("../profiles/hdd-7200.yml")), "no error");
    let text = hdd_with("queue_order: fifo", "queue_order: sptf");
    assert_eq!(message(&text), "no error");
    let gone = profile::load("/nowhere/x.yml").unwrap_err().to_string();
    assert!(gone.contains("/nowhere/x.yml") && gone.contains("No such file"), "{gone}");
}

#[test]
fn an_unknown_name_suggests_the_nearest() {
    let Err(ProfileError::Unknown { nearest, known, .. }) = profile::load("hdd7200") else { panic!() };
    assert_eq!(nearest, "hdd-7200");
    assert!(known.contains("ssd-sata"));
}

#[test]
fn errors_name_field_and_remedy() {
    for (from, to, expected) in [
        ("rpm: 7200", "rpm: 0", &["`rpm` is 0", "from 60"][..]),
        ("share: 0.125", "share: 0.5", &["sum of zones.share", "1.375"]),
        ("seek_avg_ms: 8.5", "seek_avg_ms: 15.9", &["seek_avg_ms 15.9", "between"]),
        ("head_skew_ms: 0.8", "head_skew_ms: 0.1", &["`head_skew_ms` is 0.1", "from 0.7"]),
        ("heads: 3", "head: 3", &["head"]),
        ("rpm: 7200", "rpm: fast", &["fast"]),
        ("kind: disk", "kind: tape", &["tape", "disk"]),
    ] {
        let message = message(&hdd_with(from, to));
        assert!(expected.iter().all(|part| message.contains(part)), "{to}: {message}");
    }
}

#[test]
fn sizes_out_of_range_say_what_is_possible() {
    let hdd = profile::load("hdd-7200").unwrap();
    let Err(error) = hdd.build(8 * MIB).map(|_| ()) else { panic!() };
    assert!(error.to_string().contains("(55 to 953674 MiB)"), "{error}");
    assert!(hdd.build(2_000_000 * MIB).is_err());
    assert!(hdd.build(256 * MIB + 1).is_err());
    let Ok(Profile::Null(_)) = profile::load("null") else { panic!() };
}
