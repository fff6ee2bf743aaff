//! Profile files: accepted values, and messages of errors.

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
    let text = include_str!("../../../testbeds/disks/hdd-7200.yml");
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
    assert_eq!(message(include_str!("../../../testbeds/disks/hdd-7200.yml")), "no error");
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
        ("capacity_gb: 1000", "capacity_gb: 1000000000", &["`capacity_gb` is 1000000000", "to 1000000"]),
        ("capacity_gb: 1000", "capacity_gb: 0.001", &["0.3 cylinders", "`heads`"]),
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

fn elite_with(from: &str, to: &str) -> String {
    let text = include_str!("../../../testbeds/disks/seagate-elite3.yml");
    assert!(text.contains(from));
    message(&text.replacen(from, to, 1))
}

#[test]
fn impossible_geometry_and_seek_curves_name_field_and_remedy() {
    let (zone, cylinders) = ("sectors_per_track: 99 }", "cylinders: 2627");
    let seek = "seek_min_ms: 1.7\nseek_avg_ms: 11.0\nseek_max_ms: 22.5";
    for (from, to, expected) in [
        (zone, "sectors_per_track: 0 }", &["zones[0]", "`zones.sectors_per_track` is 0"][..]),
        (zone, "sectors_per_track: 99, spare_sectors_per_track: 99 }", &["zones[0]", "from 0 to 98"]),
        (zone, "sectors_per_track: 99, share: 0.5 }", &["mixes `share` and `cylinders`"]),
        (
            zone,
            "sectors_per_track: 99, slipped_tracks: [3] }",
            &["zones[0]", "number of zones.slipped_tracks"],
        ),
        (zone, "sectors_per_track: 99, spare_tracks: 55100 }", &["spare sectors leave", "lower"]),
        (cylinders, "cylinders: 15", &["15.0 cylinders", "from 16 to 10000000"]),
        (cylinders, "cylinders: 100000000", &["100000000.0 cylinders", "from 16 to 10000000"]),
        ("seek_avg_ms: 11.0", "seek_avg_ms: 30", &["`seek_max_ms` is 22.5", "from 30"]),
        ("seek_avg_ms: 11.0\n", "", &["seek times are missing", "seek_points"]),
        (
            seek,
            "seek_points: [{distance_cylinders: 1, ms: 1.5}, {distance_cylinders: 9, ms: 1}]",
            &["seek_points[1]"],
        ),
        (
            seek,
            "seek_points: [{distance_cylinders: 1, ms: 1}, {distance_cylinders: 9, ms: 9e9}]",
            &["4000 ms"],
        ),
        (
            seek,
            "seek_points: [{distance_cylinders: 1, ms: -1}, {distance_cylinders: 9, ms: 1}]",
            &["seek_points[0]"],
        ),
        ("cylinder_skew_ms: 1.7", "cylinder_skew_ms: 1.2", &["`cylinder_skew_ms` is 1.2", "from 1.7"]),
    ] {
        let message = elite_with(from, to);
        assert!(expected.iter().all(|part| message.contains(part)), "{to}: {message}");
    }
}

#[test]
fn impossible_flash_names_field_and_remedy() {
    let nvme = |from: &str, to: &str| {
        let text = include_str!("../../../testbeds/disks/ssd-nvme.yml");
        assert!(text.contains(from));
        message(&text.replacen(from, to, 1))
    };
    assert!(nvme("page_kib: 16", "page_kib: 6").contains("`page_kib` is not a multiple of 4"));
    assert!(nvme("channels: 8", "channels: 4096\n").contains("no error"));
    assert!(
        nvme("dies_per_channel: 4", "dies_per_channel: 4000").contains("channels x flash.dies_per_channel")
    );
    assert!(nvme("erase_ms: 3.5", "erase_ms: -1").contains("`flash.erase_ms` is -1"));
}

#[test]
fn a_size_is_checked_as_it_is_built() {
    for name in profile::names() {
        let profile = profile::load(name).unwrap();
        for capacity_bytes in [0, 511, 512, MIB, 300 * MIB + 512, 3000 * MIB] {
            let (checked, built) = (profile.check_capacity(capacity_bytes), profile.build(capacity_bytes));
            assert_eq!(checked.is_ok(), built.is_ok(), "{name} {capacity_bytes}");
        }
        assert!(profile.check_capacity(u64::MAX).is_err());
    }
}
