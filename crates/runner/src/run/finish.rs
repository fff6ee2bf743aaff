//! End of a run: state checks, validity, tables and reports in the run's folder.

use std::collections::BTreeMap;

use serde_json::json;
use weir_study::Capture;

use crate::Error;
use crate::cgroup::limits::Limits;
use crate::context::run_context::RunContext;
use crate::context::write_json;
use crate::daemon::site::{self, After, Visited};
use crate::daemon::start;
use crate::device::block_device::BlockDevice;
use crate::device::capture::Recording;
use crate::device::{kernel_queue, medium};
use crate::filesystem::{mount, options};
use crate::run::folder::PART;
use crate::run::measure::Measured;
use crate::run::outcome::Timing;
use crate::run::prepare::Prepared;
use crate::run::tables::{self, Tally};
use crate::run::usage::{Use, residency};
use crate::validity::facts::Facts;
use crate::validity::judge::judge;
use crate::validity::rule::Validity;
use crate::validity::{testbed_rules, transit};

/// A run whose data are in its partial folder.
pub(crate) struct Finished {
    pub(crate) observed: serde_json::Value,
    pub(crate) validity: Validity,
    pub(crate) timing: Timing,
    pub(crate) requests: u64,
    /// Time of the end, in seconds from the beginning of the run.
    pub(crate) ended_s: f64,
}

/// Checks the state of the host, judges the run and writes all files but `observed.json`, which gets its timing once all is
/// undone.
///
/// # Errors
/// Something cannot be read or written.
pub(crate) fn finish(
    context: &RunContext<'_>,
    mut prepared: Prepared,
    mut measured: Measured,
    limits: &Limits,
    used: &Use,
) -> Result<Finished, Error> {
    let RunContext { run, testbed, began, attempt, .. } = *context;
    let problems = state_problems(context, &prepared, limits);
    if run.settings.buffered || !prepared.sites.is_empty() {
        // Later requests are not part of the run. Other rules judge a dead server.
        prepared.devices.iter_mut().for_each(|device| drop(device.set_timing(false)));
    }
    if !prepared.sites.is_empty() {
        limits.lift()?;
    }
    let sites = site::check(run, context.state(), &context.logs(), &prepared.sites)?;
    // Before the tables are written: they are in the page cache, too.
    let residency = residency(run, &prepared.places)?;
    let tally = tables::write(context, &prepared, &mut measured)?;
    let visited = std::mem::take(&mut measured.sent.visited);
    let evidence = Evidence {
        context,
        prepared: &prepared,
        measured: &measured,
        tally: &tally,
        limits,
        sites: &sites,
        used,
    };
    let facts = evidence.facts(problems)?;
    let validity = Validity { attempt, ..judge(&facts) };
    let (requests, all_answered) = (tally.requests, tally.failed == 0);
    let mut observed = evidence.record(visited, &validity)?;
    observed["residency"] = json!(residency);
    observed["devices"] = json!(medium::of_devices(run, testbed));
    observed["media"] = json!(medium::of_classes(run, testbed));
    if all_answered {
        prepared.kept_files.leave();
    }
    let ended_s = began.elapsed().as_secs_f64();
    let (setup_s, measured_s) = (measured.setup_s, measured.measured_s);
    let timing = Timing { setup_s, measured_s, teardown_s: ended_s - setup_s - measured_s };
    Ok(Finished { observed, validity, timing, requests, ended_s })
}

/// Differences between the state of the host and the study: mounts, devices, queues, limits, options, daemons.
fn state_problems(context: &RunContext<'_>, prepared: &Prepared, limits: &Limits) -> Vec<String> {
    let RunContext { run, filesystem, .. } = *context;
    let Prepared { devices, points, daemons, .. } = prepared;
    let mounts = points.iter().filter_map(|point| mount::check(filesystem, &point.source, &point.path).err());
    let changed = devices.iter().flat_map(BlockDevice::problems);
    let queues = devices.iter().flat_map(|device| kernel_queue::problems(run, device));
    mounts
        .chain(changed)
        .chain(queues)
        .chain(limits.problems())
        .chain(options::problem(context, points))
        .chain(start::problems(daemons))
        .collect()
}

/// Everything known of a measured run.
struct Evidence<'a> {
    context: &'a RunContext<'a>,
    prepared: &'a Prepared,
    measured: &'a Measured,
    tally: &'a Tally<'a>,
    limits: &'a Limits,
    sites: &'a [After],
    used: &'a Use,
}

impl<'a> Evidence<'a> {
    /// Facts for the validity rules.
    fn facts(&self, state: Vec<String>) -> Result<Facts<'a>, Error> {
        let RunContext { run, filesystem, .. } = *self.context;
        let Evidence { prepared, measured, tally, sites, used, .. } = *self;
        let sent = &measured.sent;
        let error = |status| std::io::Error::from_raw_os_error(status).to_string();
        Ok(Facts {
            fidelity: sent.fidelity.as_ref(),
            fio: &sent.fio,
            late_start_limit_ns: (run.warmup_s.max(run.duration_s / 10.0) * 1e9) as i64,
            web: sent.web.as_ref(),
            access: sent.access.as_ref(),
            failed: tally.failed,
            first_failure: tally.first_failure.map(error),
            rows: tally.requests,
            loss: measured.capture.as_ref().map(Recording::loss),
            allowed_loss: run.allowed_loss,
            capture_required: run.capture == Capture::Required,
            read_bytes: (!prepared.devices.is_empty())
                .then_some((tally.read_bytes, measured.device_read_bytes)),
            cached_by_right: testbed_rules::cached_by_right(run, filesystem),
            written: match &run.access {
                Some(access) => {
                    prepared.filling.as_ref().map(|it| it.end(access.total_bytes())).transpose()?
                }
                None => prepared.moved,
            },
            transits: transit::of_classes(run, &tally.waits, &measured.schedulers),
            is_raw: filesystem.mount_type.is_none(),
            clock_step_ns: measured.clock_step_ns,
            sites: sites.iter().map(After::findings).collect(),
            state,
            controls: prepared.groups.judge(&tally.asked),
            models: measured.models.clone(),
            schedulers: measured
                .schedulers
                .iter()
                .map(|(device, found)| (device.clone(), found.verify()))
                .collect(),
            cpu_steal: used.steal.map_or(0.0, |steal| steal.of_wanted),
        })
    }

    /// Writes all files but the tables and `observed.json`, and returns that.
    fn record(&self, visited: Visited, validity: &Validity) -> Result<serde_json::Value, Error> {
        let Evidence { context, prepared, measured, tally, limits, sites, used } = *self;
        let (sent, partial) = (&measured.sent, context.partial);
        write_json(&partial.join("verdict.json"), validity)?;
        if let Some(record) = &measured.coordination {
            write_json(&partial.join(PART), record)?;
        }
        let models: BTreeMap<&String, _> =
            measured.models.iter().map(|(name, stats)| (name, stats)).collect();
        let hot: BTreeMap<&str, _> = tally.hot.iter().map(|hot| (hot.service, hot.used())).collect();
        Ok(json!({
            "replay": sent.fidelity,
            "fio": sent.fio,
            "web": sent.web,
            "access": sent.access,
            "capture": measured.capture.as_ref().map(Recording::report),
            "models": models,
            "live": measured.schedulers,
            "device_read_bytes": measured.device_read_bytes,
            "clock_step_ns": measured.clock_step_ns,
            "controllers": prepared.groups.report(context.state()),
            "services": prepared.daemons,
            "filesystem_options": prepared.options,
            "sites": site::observed(sites, visited, sent.web.as_ref()),
            "network": used.network,
            "cpu": used.cpu,
            "stolen": used.steal,
            "memory": used.memory,
            "memory_of": used.memory_of,
            "reads": limits.reads(),
            "hot": hot,
        }))
    }
}
