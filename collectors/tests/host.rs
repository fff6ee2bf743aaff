//! The host record on the host that runs the tests.

mod common;

use std::path::Path;

use common::{Loop, must_skip};
use weir_collectors::host;

/// Every null stands beside a reason.
fn check_nulls(value: &serde_json::Value, path: &str) {
    match value {
        serde_json::Value::Object(fields) if fields.contains_key("reason") => {
            assert!(fields["value"].is_null() && !fields["reason"].as_str().unwrap().is_empty(), "{path}");
        }
        serde_json::Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| check_nulls(value, &format!("{path}.{name}")));
        }
        serde_json::Value::Array(values) => values.iter().for_each(|value| check_nulls(value, path)),
        // Two things that are simply not there: a device that is no loop, a kernel without `full` for the CPU.
        serde_json::Value::Null => {
            assert!(
                path.ends_with("loop_backing") || path.ends_with("full_avg10"),
                "{path} is null without a reason"
            );
        }
        _ => {}
    }
}

#[test]
fn facts_are_those_of_this_host() {
    let record = host::record(&[], &[Path::new("/")]);
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert_eq!(record.system.kernel_release.known().map(String::as_str), Some(release.trim()));
    assert!(record.system.memory_bytes.known().is_some_and(|bytes| *bytes > 1 << 20));
    assert!(record.file_systems.contains_key("/"));
    check_nulls(&serde_json::to_value(&record).unwrap(), "");
}

#[test]
fn a_loop_device_is_described_as_it_was_set() {
    if must_skip(&[]) {
        return;
    }
    let device = Loop::in_memory(16);
    device.set("scheduler", "mq-deadline");
    device.set("read_ahead_kb", "64");
    let record = host::record(&[device.disk()], &[]);
    let found = &record.devices[&*device.disk().name];
    assert_eq!(found.size_bytes.known(), Some(&(16 << 20)));
    assert_eq!(found.scheduler.known().map(String::as_str), Some("mq-deadline"));
    assert!(found.scheduler_tunables.contains_key("read_expire"));
    assert_eq!(found.read_ahead_kib.known(), Some(&64));
    let backing = found.loop_backing.as_ref().unwrap();
    assert!(backing.file.known().unwrap().starts_with("/dev/shm/"));
    assert_eq!(backing.file_system.known().map(String::as_str), Some("tmpfs"));
    check_nulls(&serde_json::to_value(&record).unwrap(), "");
}
