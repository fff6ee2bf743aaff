//! Entry points of fuzz targets: parsers of bytes that come from elsewhere. Not part of the interface.

use weir_study::{Plan, Run};

/// The logs of an fio job: the issue log, a zero byte, the latency log.
pub fn fio_logs(data: &[u8]) {
    let mut parts = data.splitn(2, |byte| *byte == 0);
    let mut text = || String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    crate::load::fio_log::fuzzing(&text(), &text());
}

/// JSON that a run leaves behind, or that one is begun with.
pub fn json(data: &[u8]) {
    if let Ok(run) = serde_json::from_slice::<Run>(data) {
        let _ = run.check_limits();
        let _ = (run.length_ns(), run.warmup_ns(), run.part(3));
    }
    if let Ok(plan) = serde_json::from_slice::<Plan>(data) {
        plan.runs.iter().for_each(|run| drop(run.check_limits()));
    }
    let _ = serde_json::from_slice::<crate::Testbed>(data);
    let _ = serde_json::from_slice::<crate::Validity>(data);
}
