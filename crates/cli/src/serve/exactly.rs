//! `weir serve --exactly`: the devices of some specs are served, and no others of the state folder.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use serde_json::json;
use weir_blockserver::{ServeSpec, Status};

use super::{LiveArgs, classify, in_background};
use crate::exit::bad_input;
use crate::output::{self, Output};
use crate::state::StateArgs;

/// Keeps the devices that are served as the specs say, stops the others, starts the missing ones.
///
/// # Errors
/// A spec is wrong or cannot be served here (nothing was touched); or a device cannot be stopped or started.
pub fn serve(files: &[PathBuf], state: &StateArgs, output: Output) -> anyhow::Result<ExitCode> {
    let mut specs: Vec<ServeSpec> = Vec::new();
    for file in files {
        let spec = ServeSpec::load(file).map_err(classify)?;
        if let Some(reason) = weir_blockserver::unable(&spec) {
            return Err(bad_input(reason));
        }
        if specs.iter().any(|known| known.name == spec.name) {
            return Err(bad_input(format!(
                "{}: name: another spec also has the name {}. Give each device its own name",
                file.display(),
                spec.name
            )));
        }
        specs.push(spec);
    }
    let folder = state.own()?;
    let served = weir_blockserver::status(folder).map_err(classify)?;
    let (kept, other): (Vec<&Status>, Vec<&Status>) =
        served.iter().partition(|entry| specs.iter().any(|spec| is_served(entry, spec)));
    for entry in &other {
        let left = weir_blockserver::down(&entry.state_file).map_err(classify)?.left;
        if !left.is_empty() {
            bail!("{}: the device is not stopped: {}", entry.state_file.display(), left.join("; "));
        }
    }
    let mut started = Vec::new();
    for (spec, file) in specs.iter().zip(files) {
        if !kept.iter().any(|entry| entry.state.spec.name == spec.name) {
            state.adopt()?;
            in_background(spec, file, folder, &LiveArgs::default())?;
            started.push(spec.name.as_str());
        }
    }
    let names =
        |entries: &[&Status]| entries.iter().map(|entry| entry.state.spec.name.clone()).collect::<Vec<_>>();
    let (kept, stopped) = (names(&kept), names(&other));
    if output.is_json() {
        let changed = !started.is_empty() || !stopped.is_empty();
        output::line(&json!({"changed": changed, "kept": kept, "stopped": stopped, "started": started}))?;
    } else {
        println!("kept: {}; stopped: {}; started: {}", list(&kept), list(&stopped), list(&started));
    }
    Ok(ExitCode::SUCCESS)
}

fn list(names: &[impl AsRef<str>]) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// Whether a device is served as a spec says.
fn is_served(entry: &Status, spec: &ServeSpec) -> bool {
    entry.running && is_same_device(&entry.state.spec, spec)
}

/// Whether two specs differ at most in their scheduler: each run sets its own.
fn is_same_device(one: &ServeSpec, other: &ServeSpec) -> bool {
    let device = |spec: &ServeSpec| ServeSpec { live: None, ..spec.clone() };
    one.live.is_some() == other.live.is_some() && device(one) == device(other)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn spec(more: &str) -> ServeSpec {
        let text = format!("{{name: shared, profile: hdd-7200, heads: 2{more}}}");
        ServeSpec::parse(&text, "shared.yml", Path::new("/")).unwrap()
    }

    #[test]
    fn a_device_is_the_same_whatever_its_scheduler() {
        let plain = spec(", size_mib: 128");
        assert!(is_same_device(&plain, &spec(", size_mib: 128, backing: memory, stripe_unit_kib: 64")));
        assert!(!is_same_device(&plain, &spec(", size_mib: 256")));
        let fcfs = spec(", size_mib: 128, live: {policy: fcfs}");
        assert!(is_same_device(&fcfs, &spec(", size_mib: 128, live: {policy: sfq depth=4, queue_depth: 2}")));
        assert!(!is_same_device(&fcfs, &plain) && !is_same_device(&plain, &fcfs));
    }
}
