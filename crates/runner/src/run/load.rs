//! Load of a run: the engines of its classes, prepared, then started at one instant.

use std::sync::Arc;
use std::time::Duration;

use weir_records::RequestSpool;
use weir_replayer::{Fidelity, Submission, Targets};
use weir_study::Engine;
use weir_web_client::Class;

use crate::Error;
use crate::cgroup::class_groups::ClassGroups;
use crate::context::run_context::RunContext;
use crate::daemon::site::{self, Visited, Visits};
use crate::files::placement::Placement;
use crate::filesystem::network;
use crate::load::access::{self, AccessContext, Accessed};
use crate::load::browsers::{self, Asking};
use crate::load::fio;
use crate::load::open_loop::{Merged, layout};
use crate::load::replay_process::{self, ReplayProcess};

/// The engines of a run, ready to send.
pub(crate) struct Load<'a> {
    context: &'a RunContext<'a>,
    places: &'a [Placement],
    /// Open-loop classes without control groups: one replayer sends all of them.
    stream: Merged,
    targets: Targets,
    /// How that replayer sends.
    replay: weir_replayer::Options,
    /// Open-loop classes with control groups, each in a process of its own.
    replays: Vec<ReplayProcess>,
    /// Closed-loop classes: their clients wait for the epoch.
    jobs: Vec<fio::Job>,
    browsers: Vec<(Class, Arc<str>)>,
    visits: Vec<Visits>,
    requests: RequestSpool,
}

/// Requests that the engines sent, and the engines' reports.
pub(crate) struct Sent {
    /// In the order of the run's table.
    pub(crate) requests: RequestSpool,
    pub(crate) fidelity: Option<Fidelity>,
    pub(crate) fio: Vec<fio::Report>,
    pub(crate) web: Option<weir_web_client::Report>,
    pub(crate) visited: Visited,
    pub(crate) access: Option<Accessed>,
}

impl<'a> Load<'a> {
    /// Opens the targets of requests, and starts processes that wait for the epoch.
    ///
    /// # Errors
    /// Something cannot be opened or started.
    pub(crate) fn prepare(
        context: &'a RunContext<'a>,
        places: &'a [Placement],
        groups: &'a ClassGroups,
    ) -> Result<Self, Error> {
        let RunContext { run, options, filesystem, .. } = *context;
        // The I/O controller distinguishes processes, not threads: a class with a group has a process.
        let (grouped, together): (Vec<&Placement>, Vec<&Placement>) =
            places.iter().partition(|place| groups.group(&place.class.name).is_some());
        let mut stream = Merged::new(run, together.iter().copied())?;
        let targets =
            Targets::open(&layout(together.iter().copied(), run.settings.buffered)).map_err(Error::failed)?;
        let mut replay = weir_replayer::Options {
            stop: Arc::clone(&options.stop),
            seed: run.seed,
            ..weir_replayer::Options::default()
        };
        if !stream.is_empty() {
            let outlook = stream.look_ahead();
            replay.peak_per_s = Some(outlook.peak_per_s);
            replay.only_transfers = outlook.only_transfers;
            replay.submission = Some(Submission::choose(&replay, &targets).map_err(Error::failed)?);
        }
        let mut replays = Vec::new();
        for place in grouped.into_iter().filter(|place| place.class.engine == Engine::Replay) {
            let Some(group) = groups.group(&place.class.name) else { continue };
            let folder = context.logs().join(format!("replay-{}", place.class.name));
            replays.extend(replay_process::start(run, place, group, &folder)?);
        }
        if !run.settings.warm_start {
            network::forget(&options.state, filesystem)?;
        }
        let browsers = browsers::classes(run, places)?;
        let visits = site::visits(run, &context.logs(), &options.stop)?;
        let mut jobs = start_fio(context, places, groups)?;
        jobs.iter_mut().try_for_each(|job| job.await_clients(&options.stop))?;
        let classes = places.iter().map(|place| place.class.name.as_str().into());
        let requests = RequestSpool::new(context.partial, classes);
        Ok(Load { context, places, stream, targets, replay, replays, jobs, browsers, visits, requests })
    }

    /// Time between readiness and the epoch by which the first request is on time.
    pub(crate) fn lead(&self) -> Duration {
        let together = self.replay.preparation();
        self.replays.iter().map(ReplayProcess::preparation).fold(together, Duration::max)
    }

    /// Sends all requests from an instant of CLOCK_MONOTONIC on, and waits for the last completion.
    ///
    /// # Errors
    /// An engine cannot be started, or failed.
    pub(crate) fn send(mut self, epoch_ns: i64, access: &AccessContext<'_>) -> Result<Sent, Error> {
        let RunContext { run, options, .. } = *self.context;
        self.jobs.iter().try_for_each(|job| job.begin(epoch_ns))?;
        self.replays.iter_mut().try_for_each(|replay| replay.begin(epoch_ns))?;
        let another = self.requests.another();
        let asking = Asking::begin(self.browsers, self.visits, run, epoch_ns, another, &options.stop)?;
        let mut sent = Sent {
            requests: self.requests,
            fidelity: None,
            fio: Vec::new(),
            web: None,
            visited: Visited::default(),
            access: None,
        };
        if !self.stream.is_empty() {
            self.replay.epoch_monotonic_ns = Some(epoch_ns);
            let sink = |request| sent.requests.push(request);
            let fidelity = weir_replayer::replay(self.stream, &self.targets, &self.replay, sink);
            sent.fidelity = Some(fidelity.map_err(Error::failed)?);
        }
        for replay in self.replays {
            let fidelity = replay.finish(&options.stop, &mut sent.requests)?;
            sent.fidelity = Some(match sent.fidelity {
                None => fidelity,
                Some(others) => others.and(fidelity),
            });
        }
        for job in self.jobs {
            sent.fio.push(job.finish(run, self.places, epoch_ns, &options.stop, &mut sent.requests)?);
        }
        if let Some(asking) = asking {
            let asked = asking.finish()?;
            sent.requests.append(asked.requests);
            (sent.web, sent.visited) = (Some(asked.report), asked.visited);
        }
        if let Some(wanted) = &run.access {
            sent.access = Some(access::measure(access, wanted, epoch_ns, &mut sent.requests)?);
        }
        Ok(sent)
    }
}

/// Starts fio for each closed-loop class.
fn start_fio(
    context: &RunContext<'_>,
    places: &[Placement],
    groups: &ClassGroups,
) -> Result<Vec<fio::Job>, Error> {
    let of_fio = |(_, place): &(usize, &Placement)| place.class.engine == Engine::Fio;
    let start = |(index, place): (usize, &Placement)| {
        let name = &place.class.name;
        let folder = context.logs().join(format!("fio-{name}"));
        fio::start(context.run, place, index, &folder, groups.group(name), &groups.of_clients(name))
    };
    places.iter().enumerate().filter(of_fio).map(start).collect()
}
