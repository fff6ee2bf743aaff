//! Threads of a replay: read-ahead, pacing, results.

use std::sync::OnceLock;
use std::sync::mpsc::{channel, sync_channel};

use weir_records::Request;

use crate::feed::{CHUNKS_AHEAD, Feed, read_ahead};
use crate::pacer::Pacer;
use crate::step::Step;
use crate::submission::Submission;
use crate::{Error, Fidelity, Options, Targets};

/// Sends a stream, in order of intended time, to its targets, and returns its fidelity.
///
/// `sink` receives every request once, on the calling thread, in order of completion (of each ring): with
/// `submitted_ns` and `completed_ns` relative to the epoch and `status` 0 or an `errno`, or with
/// times missing where it was never sent (`EINVAL`: it has no place in its target; 0: the replay was
/// stopped before) or never completed (`ETIMEDOUT`). A stream that was not checked with
/// [`crate::Check`] is sent as far as it can be.
///
/// A stream of [`Step`]s with [`Options::dependencies`] is sent by one thread: a request that waits for others is intended a think time
/// after the last of them has completed, whatever its time in the stream, and recorded so.
///
/// The stream must end: after a stop it is read to its end, so that every request is accounted for.
///
/// # Errors
/// An option is out of range, or the kernel refuses the ring. The requests' own failures are not
/// errors.
pub fn replay(
    stream: impl Iterator<Item: Into<Step>> + Send,
    targets: &Targets,
    options: &Options,
    mut sink: impl FnMut(Request),
) -> Result<Fidelity, Error> {
    options.check()?;
    let submission = match options.submission {
        Some(submission) => submission,
        None => Submission::choose(options, targets)?,
    };
    let (to_feeds, from_reader): (Vec<_>, Vec<_>) =
        (0..submission.rings).map(|_| sync_channel(CHUNKS_AHEAD)).unzip();
    let (to_sink, from_pacers) = channel::<Vec<Request>>();
    let epoch_ns = OnceLock::new();
    std::thread::scope(|scope| {
        let (timescale, seed) = (options.timescale, options.seed);
        let reader = scope.spawn(move || read_ahead(stream, targets, timescale, seed, &to_feeds));
        let pacers: Vec<_> = from_reader
            .into_iter()
            .map(|from| {
                let (to_sink, epoch_ns) = (to_sink.clone(), &epoch_ns);
                scope.spawn(move || {
                    Pacer::new(targets, options, submission, epoch_ns, Feed::new(from), to_sink)?.run()
                })
            })
            .collect();
        drop(to_sink);
        for done in from_pacers {
            done.into_iter().for_each(&mut sink);
        }
        let mut recorders = Vec::with_capacity(pacers.len());
        for pacer in pacers {
            recorders.push(pacer.join().map_err(|_| Error::Thread { thread: "pacing" })??);
        }
        reader.join().map_err(|_| Error::Thread { thread: "reading" })?;
        let mut recorders = recorders.into_iter();
        let Some(mut all) = recorders.next() else { return Err(Error::Thread { thread: "pacing" }) };
        recorders.try_for_each(|recorder| all.merge(recorder))?;
        all.finish()
    })
}
