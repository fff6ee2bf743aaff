//! Tests of values with units in studies.

use weir_specs::files_by_name;

use crate::support::{each_is_named, plan_file, plan_named, plan_text, root, trial};

const STUDY: &str = trial!(
    "classes:\n  text: {workload: random-4k, with: {files.size.fixed.bytes: 67108864}, clients: 1}\nfactors:\n  scheduler: [none]\n"
);

/// The text with a unit behind each number of a field that has one, and how many there are.
fn with_units(text: &str) -> (String, usize) {
    let units = [("_bytes", "B"), ("bytes", "B"), ("_kib", "KiB"), ("_mib", "MiB"), ("_us", "us")];
    let times = [("_ms", "ms"), ("ms", "ms"), ("_s", "s")];
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    let (mut written, mut rest, mut count) = (String::new(), text, 0);
    while let Some(at) = rest.find(": ") {
        let (before, after) = rest.split_at(at + 2);
        let name = &before[..at];
        let name = &name[name.rfind(|c| !is_of_name(c)).map_or(0, |at| at + 1)..];
        let last = name.rsplit('.').next().unwrap_or(name);
        let digits = after.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(after.len());
        let (number, tail) = after.split_at(digits);
        let is_number = !number.is_empty() && tail.starts_with([',', '}', '\n', ' ']);
        let is_rate = last.ends_with("per_s") || last.ends_with("mb_s");
        let unit = units.iter().chain(&times).find(|(ending, _)| match ending.strip_prefix('_') {
            Some(_) => last.ends_with(ending),
            None => last == *ending,
        });
        written += before;
        written += number;
        if let Some((_, unit)) = unit.filter(|_| is_number && !is_rate) {
            written += unit;
            count += 1;
        }
        rest = tail;
    }
    (written + rest, count)
}

#[test]
fn a_unit_changes_no_byte_of_the_plan_of_a_shipped_study() {
    let mut fields = 0;
    for (name, file) in files_by_name(&root().join("studies"), &[]).unwrap() {
        let text = std::fs::read_to_string(&file).unwrap();
        let (changed, count) = with_units(&text);
        fields += count;
        // Some studies need devices or benchmarks that these tests do not have.
        let Ok(plan) = plan_file(&file) else { continue };
        let again = plan_named(&name, &changed).unwrap_or_else(|problem| panic!("{name}: {problem}"));
        assert_eq!(serde_json::to_string(&plan).unwrap(), serde_json::to_string(&again).unwrap(), "{name}");
    }
    assert!(fields > 200, "{fields} fields have a unit");
}

#[test]
fn units_as_fio_writes_them_are_read_in_studies_and_overrides() {
    let plain = plan_text(STUDY).unwrap();
    let changed = STUDY
        .replace("warmup_s: 1", "warmup_s: 1000ms")
        .replace("size_mib: 1024", "size_mib: 1g")
        .replace("67108864", "64m");
    assert_ne!(changed, STUDY);
    let again = plan_text(&changed).unwrap();
    assert_eq!(serde_json::to_string(&plain).unwrap(), serde_json::to_string(&again).unwrap());
}

#[test]
fn a_wrong_unit_names_field_value_and_remedy() {
    each_is_named(
        STUDY,
        &[
            ("warmup_s: 1", "warmup_s: 1k", "warmup_s: found `1k`: `k` is no unit of time. Write ns, us, ms"),
            ("size_mib: 1024", "size_mib: 1024MB", "storage.size_mib: found `1024MB`: `MB` is ambiguous"),
            (
                "size_mib: 1024",
                "size_mib: 10s",
                "storage.size_mib: found `10s`: `s` is no unit of size. Write B, KiB",
            ),
            ("size_mib: 1024", "size_mib: 100k", "(written as `100k`)"),
            ("67108864", "64mb", "classes.text.with.files.size.fixed.bytes: found `64mb`: `mb` is ambiguous"),
        ],
    );
}
