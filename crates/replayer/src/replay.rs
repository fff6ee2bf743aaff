//! Threads of a replay: read-ahead, pacing, results.

use std::sync::mpsc::{channel, sync_channel};

use weir_records::Request;

use crate::feed::{CHUNKS_AHEAD, Feed, read_ahead};
use crate::pacer::Pacer;
use crate::{Error, Fidelity, Options, Targets};

/// Sends a stream, in order of intended time, to its targets, and returns its fidelity.
///
/// `sink` receives every request once, on the calling thread, in order of completion: with
/// `submitted_ns` and `completed_ns` relative to the epoch and `status` 0 or an `errno`, or with
/// times missing where it was never sent (`EINVAL`: it has no place in its target; 0: the replay was
/// stopped before) or never completed (`ETIMEDOUT`). A stream that was not checked with
/// [`crate::Check`] is sent as far as it can be.
///
/// The stream must end: after a stop it is read to its end, so that every request is accounted for.
///
/// # Errors
/// An option is out of range, or the kernel refuses the ring. The requests' own failures are not
/// errors.
pub fn replay(
    stream: impl Iterator<Item = Request> + Send,
    targets: &Targets,
    options: &Options,
    mut sink: impl FnMut(Request),
) -> Result<Fidelity, Error> {
    options.check()?;
    let (to_feed, from_reader) = sync_channel(CHUNKS_AHEAD);
    let (to_sink, from_pacer) = channel::<Vec<Request>>();
    std::thread::scope(|scope| {
        let (timescale, seed) = (options.timescale, options.seed);
        let reader = scope.spawn(move || read_ahead(stream, targets, timescale, seed, &to_feed));
        let pacer = scope.spawn(move || Pacer::new(targets, options, Feed::new(from_reader), to_sink)?.run());
        for done in from_pacer {
            done.into_iter().for_each(&mut sink);
        }
        let fidelity = pacer.join().map_err(|_| Error::Thread { thread: "pacing" })?;
        reader.join().map_err(|_| Error::Thread { thread: "reading" })?;
        fidelity
    })
}
