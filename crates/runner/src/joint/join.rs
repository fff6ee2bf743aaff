//! Join of the parts of all hosts into one run.

use std::fs;
use std::path::Path;

use serde_json::{Map, Value, json};
use weir_coordination::{Record, Role};
use weir_specs::host_problem;
use weir_study::Run;

use super::{hosts_rule, join_tables};
use crate::Error;
use crate::context::write_json;
use crate::run::folder::{PART, RunFolder, check_part, parts_folder};
use crate::run::outcome::Timing;
use crate::run::series;
use crate::run::sweep::remove_parts;
use crate::validity::rule::Validity;

/// Outcome of a join.
#[derive(Debug, Clone)]
pub enum Joined {
    /// The run's folder is complete.
    Whole {
        /// Whether its data may be used.
        validity: Validity,
        /// The longest time that each stage took on any host.
        timing: Timing,
        /// Rows of `requests.parquet`.
        requests: u64,
        /// Hosts that were lost.
        lost: Vec<String>,
    },
    /// The run did not begin, or a host failed: there is no folder.
    Nothing {
        /// Why.
        why: String,
        /// Hosts that were lost.
        lost: Vec<String>,
    },
}

/// Makes one run of the parts in `.ID.parts/HOST/` of the study's results, and removes them.
///
/// # Errors
/// A part is damaged, is of another run, or the folder cannot be written.
pub fn join(run: &Run, hosts: &[String], results: &Path) -> Result<Joined, Error> {
    if let Some(host) = hosts.iter().find(|host| !is_host(host)) {
        return Err(Error::Refused(format!(
            "host {host:?}: the name is also that of a folder. Use only letters, digits, -, _ and ., and no . at the beginning"
        )));
    }
    let folder = RunFolder::take(results, &run.id)?;
    let parts = parts_folder(results, &run.id);
    let mut records = Vec::new();
    let mut silent = Vec::new();
    for host in hosts {
        match read::<Record>(&parts.join(host).join(PART))? {
            Some(record) if record.run == run.id && record.host == *host => {
                check_part(&parts.join(host), &run.id)?;
                records.push(record);
            }
            Some(record) => {
                return Err(Error::Failed(format!(
                    "{}: wrong part (found host {} in run {}, expected host {host} in run {}). Remove the folder, and carry out the run again",
                    parts.join(host).display(),
                    record.host,
                    record.run,
                    run.id
                )));
            }
            None => silent.push(host.clone()),
        }
    }
    let joined = judge(run, &parts, &folder, &records, silent)?;
    remove_parts(&parts, &run.id)?.iter().for_each(|left| eprintln!("{left}"));
    Ok(joined)
}

fn is_host(name: &str) -> bool {
    host_problem(name).is_none()
}

fn judge(
    run: &Run,
    parts: &Path,
    folder: &RunFolder,
    records: &[Record],
    silent: Vec<String>,
) -> Result<Joined, Error> {
    let ended = || records.iter().filter_map(|record| record.ended.as_ref());
    let failed: Vec<String> = ended().filter(|ended| !ended.is_lost()).map(ToString::to_string).collect();
    if let Some(why) = failed.first() {
        return Ok(Joined::Nothing { why: why.clone(), lost: Vec::new() });
    }
    if records.is_empty() {
        let why =
            format!("no host left a part of the run ({}): each host's error is above", silent.join(", "));
        return Ok(Joined::Nothing { why, lost: Vec::new() });
    }
    // The host that detected it first has the best time.
    let first = ended().min_by_key(|ended| ended.after_ns.unwrap_or(i64::MIN));
    let mut lost: Vec<String> =
        ended().map(|ended| ended.host.clone()).chain(silent.iter().cloned()).collect();
    lost.sort();
    lost.dedup();
    if records.iter().all(|record| record.epoch_ns.is_none()) {
        let why = first.map_or_else(|| "the run did not begin".to_owned(), ToString::to_string);
        return Ok(Joined::Nothing { why, lost });
    }
    folder.make()?;
    folder.write_run(run)?;
    let partial = folder.partial();
    let rules = match (first, silent.first()) {
        (Some(ended), _) => Err(ended.to_string()),
        (None, Some(host)) => Err(format!("host {host} left no part of the run")),
        (None, None) => Ok(()),
    };
    let (validity, timing, requests) = match rules {
        Err(reason) => {
            keep_records(parts, records, partial)?;
            write_json(&partial.join("observed.json"), &json!({ "hosts": clocks(records) }))?;
            (Validity::of(vec![hosts_rule::not_together(reason)]), Timing::default(), 0)
        }
        Ok(()) => whole(run, parts, records, partial)?,
    };
    write_json(&partial.join("verdict.json"), &validity)?;
    folder.publish()?;
    Ok(Joined::Whole { validity, timing, requests, lost })
}

/// Data of a run that all hosts completed.
fn whole(
    run: &Run,
    parts: &Path,
    records: &[Record],
    partial: &Path,
) -> Result<(Validity, Timing, u64), Error> {
    let epoch_ns = one_epoch(records)?;
    let clients_of =
        |class: &str| run.classes.iter().find(|known| known.name == class).map_or(0, |known| known.clients);
    let series = series::create(run, partial, epoch_ns)?;
    let out = partial.join("requests.parquet");
    let requests = join_tables::requests(parts, records, clients_of, epoch_ns, &out, series)?;
    join_tables::blocks(parts, records, epoch_ns, &partial.join("block.parquet"))?;
    keep_records(parts, records, partial)?;
    let mut validities = Vec::new();
    let mut timings = Vec::new();
    let mut replay = Value::Null;
    let mut media = Value::Null;
    for record in records {
        let folder = parts.join(&record.host);
        let needed = |name: &str| {
            Error::Failed(format!("{}: missing: the part is not complete", folder.join(name).display()))
        };
        let found: Validity = read(&folder.join("verdict.json"))?.ok_or_else(|| needed("verdict.json"))?;
        validities.push((record.host.clone(), found));
        let observed: Value = read(&folder.join("observed.json"))?.ok_or_else(|| needed("observed.json"))?;
        timings.push(observed["timing"].clone());
        if record.role == Role::Client && media.is_null() {
            // All clients have the same file system mounted.
            media = observed["media"].clone();
        }
        // The worst replayer's fidelity is the run's.
        let late = |of: &Value| of["lateness_p99_ns"].as_i64().unwrap_or(i64::MIN);
        if record.role == Role::Client && late(&observed["replay"]) > late(&replay) {
            replay = observed["replay"].clone();
            replay["host"] = json!(record.host);
        }
    }
    let longest =
        |stage: &str| timings.iter().filter_map(|timing| timing[stage].as_f64()).fold(0.0, f64::max);
    let timing = Timing {
        setup_s: longest("setup_s"),
        measured_s: longest("measured_s"),
        teardown_s: longest("teardown_s"),
    };
    let observed = json!({ "replay": replay, "media": media, "hosts": clocks(records), "timing": timing });
    write_json(&partial.join("observed.json"), &observed)?;
    let mut rules = hosts_rule::worst(&validities);
    rules.push(hosts_rule::together(records));
    Ok((Validity::of(rules), timing, requests))
}

/// The run's epoch, the same in all parts of one attempt.
fn one_epoch(records: &[Record]) -> Result<i64, Error> {
    let mut epochs: Vec<Option<i64>> = records.iter().map(|record| record.epoch_ns).collect();
    epochs.dedup();
    match epochs[..] {
        [Some(epoch_ns)] => Ok(epoch_ns),
        _ => Err(Error::Failed(
            "the parts are of different attempts. Remove them, and carry out the run again".to_owned(),
        )),
    }
}

/// Clock offsets, by host.
fn clocks(records: &[Record]) -> Value {
    let of = |record: &Record| {
        let drift = record.clocks.and_then(|clocks| clocks.drift_ppm());
        let value = json!({
            "role": record.role,
            "local_epoch_ns": record.local_epoch_ns,
            "clock": record.clocks,
            "drift_ppm": drift.map(|(drift, _)| drift),
            "ended": record.ended,
        });
        (record.host.clone(), value)
    };
    Value::Object(records.iter().map(of).collect::<Map<_, _>>())
}

/// Records of each host: `hosts/NAME/`.
fn keep_records(parts: &Path, records: &[Record], partial: &Path) -> Result<(), Error> {
    for record in records {
        let to = partial.join("hosts").join(&record.host);
        fs::create_dir_all(&to).map_err(Error::io("cannot make", &to))?;
        for name in [PART, "host.json", "observed.json", "verdict.json"] {
            let from = parts.join(&record.host).join(name);
            if from.exists() {
                fs::copy(&from, to.join(name)).map_err(Error::io("cannot copy", &from))?;
            }
        }
        let logs = parts.join(&record.host).join("logs");
        if logs.exists() {
            // The part stays complete until the run is.
            copy_tree(&logs, &to.join("logs"))?;
        }
    }
    Ok(())
}

/// Copies a folder's files and folders.
fn copy_tree(from: &Path, to: &Path) -> Result<(), Error> {
    fs::create_dir_all(to).map_err(Error::io("cannot make", to))?;
    for entry in fs::read_dir(from).map_err(Error::io("cannot read", from))? {
        let entry = entry.map_err(Error::io("cannot read", from))?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type().map_err(Error::io("cannot look at", &path))?.is_dir() {
            copy_tree(&path, &target)?;
        } else {
            fs::copy(&path, &target).map_err(Error::io("cannot copy", &path))?;
        }
    }
    Ok(())
}

/// A JSON file; `None` if there is none.
fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Result<Option<T>, Error> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io("cannot read", path)(error)),
    };
    serde_json::from_slice(&text)
        .map(Some)
        .map_err(|error| Error::Failed(format!("{}: {error}", path.display())))
}
