//! Tests of limits: a study beyond a limit is refused with line, value and limit before anything is allocated.

use std::time::{Duration, Instant};

use weir_study::limits::{DEVICE_ROW_BYTES, MOST_DATA_BYTES, MOST_DEVICE_ROWS_BYTES};

use crate::support::{each_is_named, plan_text, shipped};

const STUDY: &str = "\
name: trial
question: Does it work?
testbed: device
seed: 7
repetitions: 2
warmup_s: 1
duration_s: 10
storage: {profile: hdd-7200, heads: 2, size_mib: 1024}
classes:
  text: {workload: poisson-text, clients: 10, with: {files.count: 64}}
factors:
  scheduler: [none, bfq]
";

const SIMULATED: &str = "\
name: trial
question: Does it work?
testbed: simulator
seed: 7
repetitions: 2
warmup_s: 1
duration_s: 10
storage: {profile: hdd-7200, heads: 2, size_mib: 1024}
classes:
  text: {workload: poisson-text, clients: 10, cache_mib: 1, from_mib: 0}
factors:
  scheduler: [scan]
";

#[test]
fn more_than_a_machine_has_is_refused_with_line_field_value_and_limit() {
    each_is_named(
        STUDY,
        &[
            (
                "clients: 10",
                "clients: 4000000000",
                "trial.yml:10: classes.text.clients: make about 4.400e10 requests in one run; at most 1e9 are",
            ),
            (
                "clients: 10",
                "clients: 50000000",
                "trial.yml:10: classes.text.clients: and their 5.500e8 requests need about ",
            ),
            (
                "files.count: 64",
                "files.count: 4294967295",
                "trial.yml:10: classes.text.with.files.count: is 4294967295; a class has at most 10000000 files",
            ),
            (
                "files.count: 64",
                "files.size.fixed.bytes: 9223372036854775807",
                "classes.text.with.files.size: allows 9223372036854775807 bytes; at most",
            ),
            (
                "clients: 10, with: {files.count: 64}",
                "clients: 1000, with: {arrivals.poisson.rate_per_s: 1000000}",
                "make about 1.100e10 requests in one run; at most",
            ),
            (
                "duration_s: 10",
                "duration_s: 1e18",
                "trial.yml:7: duration_s: is 1000000000000000000; it must be from 0.1 to 86400",
            ),
            (
                "repetitions: 2",
                "repetitions: 4000000000",
                "factors: make 8000000000 runs with 4000000000 repetitions; more than 100000 are refused",
            ),
            ("heads: 2", "heads: 4000000000", "storage.heads: is 4000000000; it must be from 1 to 64"),
            ("size_mib: 1024", "size_mib: 18446744073709551615", "storage.size_mib: is "),
            ("heads: 2", "heads: 2, stripe_unit_kib: 18446744073709551612", "storage.stripe_unit_kib: is "),
            (
                "clients: 10, with: {files.count: 64}}\nfactors:\n",
                "clients: 1000, with: {files.count: 64}}\nfactors:\n  load: [1, 1000000]\n",
                "factors.load: make about 1.100e10 requests",
            ),
            ("  scheduler: [none, bfq]", "  memory_mib: [18446744073709551615]", "factors.memory_mib.0: is "),
            ("  scheduler: [none, bfq]", "  clients: [{text: 4000000000}]", "factors.clients: make about"),
            (
                "  scheduler: [none, bfq]",
                "  client_counts: {text: [4000000000]}",
                "factors.client_counts.text: make about",
            ),
        ],
    );
}

#[test]
fn places_and_times_of_the_simulator_have_limits() {
    each_is_named(
        SIMULATED,
        &[
            ("heads: 2", "heads: 4097", "storage.heads: is 4097; it must be from 1 to 4096"),
            (
                "from_mib: 0",
                "from_mib: 18446744073709551615",
                "classes.text.from_mib: is 18446744073709551615; it must be at most",
            ),
            ("cache_mib: 1,", "cache_mib: 18446744073709551615,", "classes.text.cache_mib: is "),
            ("seed: 7", "seed: 7\nseries_s: 0.000001", "series_s: is 0.000001; it must be from 0.001"),
            (
                "duration_s: 10",
                "duration_s: 80000\nseries_s: 0.001",
                "series_s: is 0.001, which divides duration_s into more than 1e6 intervals",
            ),
            ("clients: 10", "clients: 1000000000", "classes.text.clients: make about 1.100e10 requests"),
        ],
    );
}

/// Eleven factors of ten levels are 10^11 cells: none of them is made.
#[test]
fn a_product_of_factors_is_refused_before_it_is_expanded() {
    let ten = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]";
    let clients: Vec<String> = ('a'..='k').map(|class| format!("{class}: {ten}")).collect();
    let classes: Vec<String> =
        ('a'..='k').map(|class| format!("  {class}: {{workload: poisson-text, clients: 1}}\n")).collect();
    let study = STUDY
        .replace(
            "  text: {workload: poisson-text, clients: 10, with: {files.count: 64}}\n",
            &classes.concat(),
        )
        .replace("  scheduler: [none, bfq]", &format!("  client_counts: {{{}}}", clients.join(", ")));
    let began = Instant::now();
    let found = plan_text(&study).unwrap_err();
    assert!(
        found.contains("factors: make 200000000000 runs with 2 repetitions; more than 100000"),
        "{found}"
    );
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

#[test]
fn a_factor_of_too_many_levels_is_not_compared_pair_by_pair() {
    let levels: Vec<String> = (1..=100_000).map(|level| level.to_string()).collect();
    let study = STUDY.replace("scheduler: [none, bfq]", &format!("queue_depth: [{}]", levels.join(",")));
    let began = Instant::now();
    let found = plan_text(&study).unwrap_err();
    assert!(found.contains("factors.queue_depth: has 100000 levels; a factor has at most 1000"), "{found}");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

#[test]
fn data_for_devices_have_a_limit_that_virtual_time_has_not() {
    let large = |study: &str| {
        study
            .replace("heads: 2, size_mib: 1024", "heads: 64, size_mib: 1048576")
            .replace("with: {files.count: 64}", "with: {files.count: 6000000}")
            .replace("from_mib: 0", "with: {files.count: 6000000}")
    };
    let found = plan_text(&large(STUDY)).unwrap_err();
    let said =
        "trial.yml:10: classes.text.with.files.count: makes files of about 5859.4 GiB that each run writes";
    assert!(found.contains(said), "{found}");
    assert!(6e6 * f64::from(1 << 20) > MOST_DATA_BYTES);
    plan_text(&large(SIMULATED)).unwrap();
}

#[test]
fn the_largest_run_of_a_plan_is_estimated() {
    let plan = plan_text(STUDY).unwrap();
    let found = plan.largest_run;
    assert_eq!(found.requests, 110);
    assert_eq!(found.device_bytes, 64 << 20);
    assert!((80_000..200_000).contains(&found.memory_bytes), "{found:?}");
    assert!(plan.runs.iter().all(|run| run.estimate() == found && run.check_limits().is_ok()));
    // Of virtual time rows are written as they come.
    let found = plan_text(&SIMULATED.replace("cache_mib: 1, ", "")).unwrap().largest_run;
    assert!(found.device_bytes == 0 && found.memory_bytes < 20_000, "{found:?}");
    // A buffer cache knows each stripe unit of the files, 64 MiB.
    let cached = plan_text(SIMULATED).unwrap();
    let unit_kib = cached.runs[0].classes[0].simulated.as_ref().unwrap().stripe_unit_kib;
    assert_eq!(cached.largest_run.memory_bytes - found.memory_bytes, 16 * (64 << 10) / unit_kib);
}

#[test]
fn a_run_of_a_day_needs_no_more_memory_for_its_rows_than_one_of_an_hour() {
    let lasting = |study: &str, duration_s: &str| plan_text(&study.replace("duration_s: 10", duration_s));
    let many = STUDY.replace("clients: 10", "clients: 10000");
    let [hour, day] = ["duration_s: 3600", "duration_s: 86400"]
        .map(|duration_s| lasting(&many, duration_s).unwrap().largest_run);
    assert!(day.requests > 800_000_000 && day.requests > 20 * hour.requests, "{day:?}");
    assert_eq!(day.memory_bytes, hour.memory_bytes);
    assert!(day.memory_bytes as f64 > MOST_DEVICE_ROWS_BYTES, "{day:?}");
    // fio keeps its log in memory.
    let closed = STUDY.replace(
        "{workload: poisson-text, clients: 10, with: {files.count: 64}}",
        "{workload: random-4k, clients: 1}",
    );
    let found = lasting(&closed, "duration_s: 86400").unwrap_err();
    assert!(found.contains("need about") && found.contains("of memory in one run"), "{found}");
    lasting(&closed, "duration_s: 36000").unwrap();
}

#[test]
fn a_run_that_comes_from_a_file_is_checked_as_well() {
    let run = shipped("quick").runs[0].clone();
    run.check_limits().unwrap();
    let mut changed = run.clone();
    changed.devices[0].size_mib = u64::MAX;
    assert_eq!(changed.check_limits().unwrap_err().field, "devices.size_mib");
    let mut changed = run.clone();
    changed.duration_s = f64::NAN;
    assert_eq!(changed.check_limits().unwrap_err().field, "duration_s");
    let mut changed = run;
    changed.classes[0].clients = u32::MAX;
    let excess = changed.check_limits().unwrap_err();
    assert_eq!((excess.class.as_str(), excess.field), ("text", "clients"));
}

#[test]
fn a_row_is_no_larger_than_it_is_taken_for() {
    let both = size_of::<weir_records::Request>() + size_of::<weir_records::BlockRequest>();
    assert!((2 * both) as f64 <= DEVICE_ROW_BYTES, "{both}");
}
