//! Entry of the web client: distributes classes over threads and returns rows in order of intended time.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use hdrhistogram::Histogram;
use weir_host::clock::{monotonic_ns, thread_cpu_seconds};
use weir_host::thread::{self as host_thread, Scheduling};

use crate::Error;
use crate::class::{Class, Load, Options};
use crate::order::Order;
use crate::outcome::Outcome;
use crate::report::{Quantiles, Report, Tally, histogram, measured_s};
use crate::worker::{RowBatch, Target, ThreadWork, Worker};

/// Time for the threads to start before the first request.
const LEAD_NS: i64 = 20_000_000;
/// Batches of rows that may wait for the writer: some hundred MB.
const BATCHES: usize = 2048;

/// Result of one thread.
struct Done {
    tallies: Vec<Tally>,
    lateness: Histogram<u64>,
    turn: Histogram<u64>,
    cpu_seconds: f64,
    end_ns: i64,
    scheduling: Scheduling,
    stopped: bool,
    writer_waits: u64,
}

/// Sends the requests of the classes, and calls `on_outcome` with the outcome of each, in order of intended time. It is called
/// in the calling thread, as soon as no earlier outcome is possible; other threads send.
///
/// Every request that was due within the run has an outcome.
///
/// # Errors
/// An option is out of its range, there is no client and no source, or the system refuses threads or descriptors. A failure of a
/// server is an outcome, not an error.
pub fn browse(
    classes: Vec<Class>,
    options: &Options,
    mut on_outcome: impl FnMut(&Outcome),
) -> Result<Report, Error> {
    run(classes, options, &mut on_outcome)
}

/// [`browse`], compiled once for all callers.
fn run(
    classes: Vec<Class>,
    options: &Options,
    on_outcome: &mut dyn FnMut(&Outcome),
) -> Result<Report, Error> {
    options.check()?;
    let names: Vec<_> = classes.iter().map(|class| (class.name.clone(), class.server.url.clone())).collect();
    let (targets, crews) = share_out(classes, options.threads)?;
    host_thread::raise_open_files().map_err(Error::system("cannot raise the limit on open files"))?;
    let epoch_ns = options.epoch_monotonic_ns.unwrap_or_else(|| monotonic_ns() + LEAD_NS);
    let threads = crews.len();
    let (to, from) = sync_channel(BATCHES);
    let done = std::thread::scope(|scope| {
        let mut handles = Vec::new();
        for (thread, crew) in crews.into_iter().enumerate() {
            let (to, targets) = (to.clone(), &targets);
            let send = move || send((thread, crew), targets, options, epoch_ns, to);
            let spawned =
                std::thread::Builder::new().name(format!("browsers {thread}")).spawn_scoped(scope, send);
            match spawned {
                Ok(handle) => handles.push(handle),
                Err(source) => {
                    options.stop.store(true, Ordering::Relaxed);
                    return Err(Error::System { doing: "cannot start a thread".to_owned(), source });
                }
            }
        }
        drop(to);
        receive(&from, threads, on_outcome);
        handles
            .into_iter()
            .map(|handle| handle.join().map_err(|_| Error::Thread("sending"))?)
            .collect::<Result<Vec<Done>, Error>>()
    })?;
    report(&names, done, options, epoch_ns)
}

/// Distributes clients and sources over the threads.
fn share_out(classes: Vec<Class>, threads: usize) -> Result<(Vec<Target>, Vec<ThreadWork>), Error> {
    let mut crews: Vec<ThreadWork> = (0..threads).map(|_| ThreadWork::default()).collect();
    let mut targets = Vec::new();
    let mut next = 0;
    for (index, class) in (0..).zip(classes) {
        match class.load {
            Load::Closed(clients) => {
                for (number, client) in (0..).zip(clients) {
                    crews[next % threads].clients.push((index, number, client));
                    next += 1;
                }
            }
            Load::Open { sources, connections } => {
                let share = connections / sources.len().max(1);
                for source in sources {
                    crews[next % threads].sources.push((index, share, source));
                    next += 1;
                }
            }
        }
        targets.push(Target { server: class.server, documents: class.documents });
    }
    if next == 0 {
        let allowed = "give at least one class with a client or a source";
        return Err(Error::Option { option: "clients", found: "0".to_owned(), allowed });
    }
    crews.retain(|crew| !crew.clients.is_empty() || !crew.sources.is_empty());
    Ok((targets, crews))
}

/// Body of a sending thread.
fn send(
    crew: (usize, ThreadWork),
    targets: &[Target],
    options: &Options,
    epoch_ns: i64,
    to: SyncSender<RowBatch>,
) -> Result<Done, Error> {
    host_thread::sleep_precisely();
    let scheduling = options.fifo_priority.map_or(Scheduling::Other, host_thread::request_fifo);
    let ran = Worker::new(crew, targets, options, epoch_ns, to).and_then(|mut worker| {
        let end_ns = worker.run()?;
        Ok(Done {
            end_ns,
            scheduling,
            stopped: worker.stopped_until_ns.is_some(),
            writer_waits: worker.writer_waits,
            tallies: worker.tallies,
            lateness: worker.lateness,
            turn: worker.turn,
            cpu_seconds: thread_cpu_seconds(),
        })
    });
    if ran.is_err() {
        // Stop the other threads: the run has failed.
        options.stop.store(true, Ordering::Relaxed);
    }
    ran
}

fn receive(from: &Receiver<RowBatch>, threads: usize, on_outcome: &mut dyn FnMut(&Outcome)) {
    let mut order = Order::new(threads);
    while let Ok(handed) = from.recv() {
        order.add(handed, &mut *on_outcome);
    }
    order.finish(on_outcome);
}

fn report(
    names: &[(std::sync::Arc<str>, std::sync::Arc<str>)],
    done: Vec<Done>,
    options: &Options,
    epoch_ns: i64,
) -> Result<Report, Error> {
    let threads = done.len();
    let fifo = done.iter().all(|thread| thread.scheduling == Scheduling::Fifo);
    let stopped = done.iter().any(|thread| thread.stopped);
    // A run that was not stopped has its full length, even if the clients left earlier.
    let end_ns = if stopped { done.iter().map(|thread| thread.end_ns).max().unwrap_or(0) } else { i64::MAX };
    let measured_s = measured_s(options, end_ns);
    let (mut lateness, mut turn) = (histogram()?, histogram()?);
    let mut tallies = names.iter().map(|_| Tally::new()).collect::<Result<Vec<_>, _>>()?;
    let (mut cpu_seconds, mut writer_waits) = (0.0, 0);
    for thread in done {
        // All histograms have the same bounds, so nothing can be out of them.
        let _ = (lateness.add(&thread.lateness), turn.add(&thread.turn));
        tallies.iter_mut().zip(&thread.tallies).for_each(|(all, one)| all.merge(one));
        cpu_seconds += thread.cpu_seconds;
        writer_waits += thread.writer_waits;
    }
    let classes = names.iter().zip(tallies);
    Ok(Report {
        epoch_monotonic_ns: epoch_ns,
        measured_s,
        classes: classes.map(|((name, url), tally)| tally.finish(name, url, measured_s)).collect(),
        lateness: Quantiles::of(&lateness),
        turn: Quantiles::of(&turn),
        cpu_seconds,
        threads,
        scheduling: if fifo { Scheduling::Fifo } else { Scheduling::Other },
        stopped,
        writer_waits,
    })
}
