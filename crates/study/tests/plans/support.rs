//! Planning of studies for the tests.

use std::path::{Path, PathBuf};

use weir_specs::Document;
use weir_study::{Context, Plan, ServiceSettings};
use weir_workload::Catalog;

/// Devices that the studies of these tests are on.
const PROFILES: [&str; 7] = [
    "flash-slow",
    "hdd-7200",
    "null",
    "quantum-atlas-ii",
    "seagate-barracuda",
    "seagate-elite3",
    "seagate-st340810a",
];

/// A study called `trial` on two modelled disks, with one repetition of 3 s: this head and the text that follows it.
macro_rules! trial {
    ($rest:literal) => {
        concat!(
            "name: trial\nquestion: Does it work?\ntestbed: device\nseed: 7\nrepetitions: 1\nwarmup_s: 1\nduration_s: 2\n",
            "storage: {profile: hdd-7200, heads: 2, size_mib: 1024}\n",
            $rest
        )
    };
}
pub(crate) use trial;

/// The repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The services of the repository, with their settings.
fn services() -> Vec<ServiceSettings> {
    let of = |name: &str| {
        let file = root().join(format!("testbeds/daemons/{name}.yml"));
        let document = Document::read(&file).unwrap();
        let settings = document.value().get("settings").cloned().unwrap_or_else(|| serde_json::json!({}));
        ServiceSettings { name: name.to_owned(), settings: serde_json::from_value(settings).unwrap() }
    };
    ["nginx", "nginx-proxy", "apache", "postgresql", "mariadb", "guest"].map(of).into()
}

/// The plan of a file, or what is wrong with it.
pub fn plan_file(file: &Path) -> Result<Plan, String> {
    plan_file_labelled(file, None)
}

fn plan_file_labelled(file: &Path, label: Option<&str>) -> Result<Plan, String> {
    let workloads = Catalog::open(&root().join("workloads")).unwrap();
    let services = services();
    let context =
        Context { workloads: &workloads, profiles: &PROFILES, benchmarks: &[], services: &services, label };
    Plan::from_file(file, &context).map_err(|problems| problems.to_string())
}

/// The plan of a text called `trial`, or what is wrong with it.
pub fn plan_text(text: &str) -> Result<Plan, String> {
    plan_named("trial", text)
}

/// The plan of a text in a file of a name.
pub fn plan_named(name: &str, text: &str) -> Result<Plan, String> {
    plan_labelled(name, text, None)
}

/// The plan of a text in a file of a name, with a label.
pub fn plan_labelled(name: &str, text: &str, label: Option<&str>) -> Result<Plan, String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(format!("{name}.yml"));
    std::fs::write(&file, text).unwrap();
    plan_file_labelled(&file, label)
}

/// The file of a study of the repository.
pub fn study_file(name: &str) -> PathBuf {
    weir_specs::files_by_name(&root().join("studies"), &[]).unwrap().remove(name).unwrap()
}

/// The plan of a study of the repository.
pub fn shipped(name: &str) -> Plan {
    plan_file(&study_file(name)).unwrap()
}

/// Changes a study in one place at a time: `(what is there, what comes in its place, what is said of it)`.
pub fn each_is_named(study: &str, mistakes: &[(&str, &str, &str)]) {
    for (from, to, said) in mistakes {
        assert!(study.contains(from), "{from}");
        let found = plan_text(&study.replacen(from, to, 1)).unwrap_err();
        assert!(found.contains(said), "{to}: {found}");
    }
}
