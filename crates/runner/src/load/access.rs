//! File access benchmark of a run (`access`): each open and read is a row of `requests.parquet`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;
use weir_fsbench::{Cold, Operation, Options, Report, Sample, Witness, bench_before};
use weir_host::clock;
use weir_records::{Op, Request, RequestSpool};
use weir_study::RunAccess;

use crate::Error;
use crate::cgroup::limits::Limits;
use crate::context::run_context::RunContext;
use crate::filesystem::mount_point::MountPoint;
use crate::filesystem::network;

/// Largest share of a class's samples that may be left out because they were not cached or uncached as intended.
const LEFT_OUT_SHARE: f64 = 0.05;

/// Context of the access benchmark of a run.
pub(crate) struct AccessContext<'a> {
    pub(crate) context: &'a RunContext<'a>,
    pub(crate) limits: &'a Limits,
    pub(crate) points: &'a [MountPoint],
}

/// Result of the access benchmark.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Accessed {
    /// Report of the benchmark: how caching was verified, and what was left out.
    pub(crate) report: Report,
    /// Number of samples, by class.
    pub(crate) taken: BTreeMap<String, u64>,
    /// Number of samples that became rows, by class.
    pub(crate) kept: BTreeMap<String, u64>,
}

impl Accessed {
    /// Text for a class of which too many samples were left out, if any.
    pub(crate) fn unfit(&self) -> Option<String> {
        self.taken.iter().find_map(|(class, taken)| {
            let kept = self.kept.get(class).copied().unwrap_or(0);
            let lost = (*taken).saturating_sub(kept) as f64;
            (*taken == 0 || lost > *taken as f64 * LEFT_OUT_SHARE).then(|| {
                format!("only {kept} of {taken} samples of {class} were cached or uncached as intended")
            })
        })
    }
}

/// Rows from samples.
struct Rows<'a> {
    access: &'a AccessContext<'a>,
    point: &'a MountPoint,
    device: Arc<str>,
    names: BTreeMap<(u8, u64), Arc<str>>,
    /// One instant on the benchmark's clock and on the rows' clock.
    origin: (Instant, i64),
    requests: &'a mut RequestSpool,
    /// Number of rows, by class.
    kept: BTreeMap<Arc<str>, u64>,
}

fn class_of(operation: Operation, size_bytes: u64) -> ((u8, u64), String) {
    match operation {
        Operation::OpenClose => ((0, 0), RunAccess::OPEN_CLOSE.to_owned()),
        Operation::ReadCached => ((1, size_bytes), RunAccess::cached(size_bytes)),
        Operation::ReadUncached => ((2, size_bytes), RunAccess::uncached(size_bytes)),
    }
}

impl Witness for Rows<'_> {
    fn sample(&mut self, sample: Sample) {
        let (key, name) = class_of(sample.operation, sample.size_bytes);
        let class = Arc::clone(self.names.entry(key).or_insert_with(|| name.into()));
        let since = |instant: Instant| {
            i64::try_from(instant.saturating_duration_since(self.origin.0).as_nanos()).unwrap_or(i64::MAX)
        };
        let began_ns = self.origin.1 + since(sample.began);
        let took_ns = i64::try_from(sample.took.as_nanos()).unwrap_or(i64::MAX);
        *self.kept.entry(Arc::clone(&class)).or_default() += 1;
        self.requests.push(Request {
            request: 0,
            class,
            client: 0,
            device: Some(Arc::clone(&self.device)),
            file: Some(sample.file),
            op: Op::Read,
            offset: 0,
            size_bytes: if sample.operation == Operation::OpenClose { 0 } else { sample.size_bytes },
            // In a closed loop the intended time is the time of sending.
            intended_ns: began_ns,
            submitted_ns: Some(began_ns),
            completed_ns: Some(began_ns.saturating_add(took_ns)),
            deadline_ns: None,
            served_ns: None,
            status: 0,
            warmup: false,
        });
    }

    fn cold(&mut self) -> Result<(), weir_fsbench::Error> {
        let RunContext { filesystem, .. } = *self.access.context;
        if filesystem.network.is_none() {
            return Ok(());
        }
        // A client's cache ends with its process.
        let group = self.access.limits.group("client");
        network::remount(self.access.context.state(), filesystem, group, self.point)
            .map_err(|error| weir_fsbench::Error::Failed(error.to_string()))
    }
}

/// Measures on the file system of a run. The rows go to `requests`, with times relative to `epoch_ns`.
pub(crate) fn measure(
    access: &AccessContext<'_>,
    wanted: &RunAccess,
    epoch_ns: i64,
    requests: &mut RequestSpool,
) -> Result<Accessed, Error> {
    let RunContext { run, options, .. } = *access.context;
    let point = access.points.first().ok_or_else(|| {
        Error::Refused(format!(
            "file system {} has no files to open and read. Choose another one",
            run.settings.filesystem
        ))
    })?;
    let device = run.classes.first().map_or("", |class| class.device.as_str());
    let mut rows = Rows {
        access,
        point,
        device: device.into(),
        names: BTreeMap::new(),
        origin: (Instant::now(), clock::monotonic_ns() - epoch_ns),
        requests,
        kept: BTreeMap::new(),
    };
    let settings = Options {
        sizes_bytes: wanted.sizes_bytes.clone(),
        repetitions: wanted.repetitions,
        files: wanted.files,
        cold: Cold::Fadvise,
        ..Options::default()
    };
    let report = bench_before(&point.files, &settings, &options.stop, &mut rows).map_err(Error::failed)?;
    let kept: BTreeMap<String, u64> =
        rows.kept.iter().map(|(class, rows)| (class.to_string(), *rows)).collect();
    let mut taken = kept.clone();
    for size in &report.sizes {
        for (operation, latency) in
            [(Operation::ReadCached, &size.read_cached), (Operation::ReadUncached, &size.read_uncached)]
        {
            if latency.left_out > 0 {
                *taken.entry(class_of(operation, size.size_bytes).1).or_default() += latency.left_out as u64;
            }
        }
    }
    // A class without samples is judged too.
    for class in &run.classes {
        taken.entry(class.name.clone()).or_default();
    }
    Ok(Accessed { report, taken, kept })
}

/// Classes whose bytes the devices must have delivered.
pub(crate) fn uncached_classes(access: &RunAccess) -> Vec<String> {
    access.sizes_bytes.iter().map(|size| RunAccess::uncached(*size)).collect()
}
