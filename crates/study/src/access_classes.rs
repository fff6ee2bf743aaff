//! Classes of a run that measures the cost of opening and reading files, and checks of the field `access`.

use std::sync::Arc;

use weir_workload::sessions::AnyWorkload;
use weir_workload::{Access, Arrivals, Distribution, Files, Popularity, Sizes, Workload};

use crate::access::RunAccess;
use crate::cells::settings_of_cells;
use crate::filesystem::FileSystem;
use crate::level::Architecture;
use crate::run::{Engine, RunClass, SHARED_DEVICE};
use crate::spec::{Settings, Study};
use crate::testbed::Testbed;

/// Name of its workload in runs.
const WORKLOAD: &str = "access";
/// Largest file, in bytes.
const LARGEST_BYTES: u64 = 1 << 30;

/// The measurement of each run of a valid study.
pub(crate) fn resolved(study: &Study) -> Option<RunAccess> {
    let access = study.access.as_ref()?;
    Some(RunAccess {
        sizes_bytes: access.sizes.iter().filter_map(|size| size.bytes().ok()).collect(),
        repetitions: access.repeat,
        files: access.files,
    })
}

/// Classes of the measurement. A file system in memory has no uncached reads.
pub(crate) fn classes(study: &Study, settings: &Settings) -> Vec<RunClass> {
    let Some(access) = resolved(study) else { return Vec::new() };
    let in_memory =
        FileSystem::load(&settings.filesystem).is_some_and(|found| !found.on_device && !found.is_remote());
    let class = |name: String, bytes: u64, what: &str| RunClass {
        name,
        workload: WORKLOAD.to_owned(),
        recipe: Arc::new(AnyWorkload::Requests(Box::new(recipe(&access, bytes, what)))),
        clients: 1,
        engine: Engine::Access,
        priority: None,
        cgroup: None,
        cgroup_per_client: false,
        objective: None,
        device: SHARED_DEVICE.to_owned(),
        through: None,
        think_ms: None,
        simulated: None,
    };
    let smallest = access.sizes_bytes.iter().copied().min().unwrap_or(1);
    let mut all = vec![class(RunAccess::OPEN_CLOSE.to_owned(), smallest, "opening and closing a file")];
    for bytes in &access.sizes_bytes {
        all.push(class(RunAccess::cached(*bytes), *bytes, "reading a file that the page cache holds"));
        if !in_memory {
            let what = "reading a file of which the page cache holds nothing";
            all.push(class(RunAccess::uncached(*bytes), *bytes, what));
        }
    }
    all
}

/// The workload of one reader that reads file after file.
fn recipe(access: &RunAccess, bytes: u64, what: &str) -> Workload {
    Workload {
        name: WORKLOAD.to_owned(),
        description: what.to_owned(),
        source: "Vaidyanathan, Balaji, Jin, Panda, Table 2".to_owned(),
        arrivals: Arrivals::Closed { depth: 1, think_us: 0, start_s: 0.0, rate_per_s: None },
        time_scale: 1.0,
        files: Files {
            count: access.files,
            size: Distribution::Fixed { bytes },
            stratified: false,
            popularity: Popularity::Uniform,
        },
        sizes: Sizes::WholeFile,
        access: Access::Sequential,
        read_share: 1.0,
        deadline: None,
        block_bytes: None,
        alignment_bytes: weir_workload::ALIGNMENT_BYTES,
        targets: None,
    }
}

/// Problems, by field.
pub(crate) fn check(study: &Study, testbed: Testbed) -> Vec<(String, String)> {
    let Some(access) = &study.access else { return Vec::new() };
    let mut found = Vec::new();
    let mut problem = |at: &str, message: String| found.push((at.to_owned(), message));
    if testbed.is_virtual() {
        problem("access", "applies to `testbed: device` only: leave it out".to_owned());
    }
    if !study.classes.is_empty() || !study.services.is_empty() {
        let message = "measures a file system without other load: leave `classes` and `services` out, or write a separate study";
        problem("access", message.to_owned());
    }
    if access.sizes.is_empty() {
        problem("access.sizes", "is empty: give some, such as [4KiB, 1MiB]".to_owned());
    }
    let mut known = Vec::new();
    for (index, size) in access.sizes.iter().enumerate() {
        let at = format!("access.sizes.{index}");
        match size.bytes() {
            Err(message) => problem(&at, message),
            Ok(bytes) if !(1..=LARGEST_BYTES).contains(&bytes) => {
                problem(&at, format!("is {bytes} bytes; it must be from 1 byte to 1 GiB"));
            }
            Ok(bytes) if known.contains(&bytes) => problem(&at, "is given twice".to_owned()),
            Ok(bytes) => known.push(bytes),
        }
    }
    for (at, value, most) in [("repeat", access.repeat, 10_000), ("files", access.files, 100_000)] {
        if !(1..=most).contains(&value) {
            problem(&format!("access.{at}"), format!("is {value}; it must be from 1 to {most}"));
        }
    }
    let needed = known.iter().sum::<u64>().saturating_mul(u64::from(access.files));
    let whole_mib = study.storage.size_mib.saturating_mul(u64::from(study.storage.heads));
    let room = whole_mib.saturating_mul(1 << 20) / 10 * 7;
    if needed > room {
        problem(
            "storage.size_mib",
            format!(
                "gives all heads {} MiB, but the files of `access` need {} MiB and may fill 70 %: enlarge it, or use fewer files",
                whole_mib,
                needed.div_ceil(1 << 20)
            ),
        );
    }
    for settings in settings_of_cells(study) {
        let at = |name: &str, varied: bool| format!("{}.{name}", if varied { "factors" } else { "hold" });
        if FileSystem::load(&settings.filesystem).is_some_and(|found| found.mount_type.is_none()) {
            let at = at("filesystem", study.factors.filesystem.is_some());
            problem(
                &at,
                format!("has {}, which has no files for `access`: use a file system", settings.filesystem),
            );
            break;
        }
        if settings.architecture == Architecture::Partitioned {
            let at = at("architecture", study.factors.architecture.is_some());
            problem(
                &at,
                "is `partitioned`, which needs classes; a study with `access` has none: use `integrated`"
                    .to_owned(),
            );
            break;
        }
    }
    found
}
