//! Open-loop classes of a run, merged to one stream for the replayer.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

use weir_records::Request;
use weir_replayer::{Layout, PeakRate, Route};
use weir_study::{Engine, Run};
use weir_workload::{Stream, StreamOptions};

use crate::Error;
use crate::files::placement::Placement;

/// The requests of all open-loop classes in order of intended time.
///
/// Request numbers are those within each class; the table of the run renumbers.
pub(crate) struct Merged {
    streams: Vec<Source>,
    /// Requests that [`Merged::look_ahead`] has read.
    ahead: VecDeque<Request>,
}

struct Source {
    stream: std::iter::Peekable<Stream>,
    offsets_bytes: Vec<u64>,
}

impl Merged {
    /// Begins the streams of the open-loop classes among some classes of a run.
    ///
    /// # Errors
    /// A frame-size file cannot be read.
    pub(crate) fn new<'a>(run: &Run, places: impl IntoIterator<Item = &'a Placement>) -> Result<Self, Error> {
        let open_loop = places.into_iter().filter(|place| place.class.engine == Engine::Replay);
        let streams = open_loop
            .map(|place| {
                let options = StreamOptions {
                    class: place.class.name.clone(),
                    clients: place.class.clients,
                    seed: run.seed,
                    duration_ns: run.length_ns(),
                    warmup_ns: run.warmup_ns(),
                    // Paths of recordings are absolute in a plan.
                    folder: Path::new("/").to_owned(),
                };
                let stream = Stream::new(&place.recipe, options).map_err(Error::Refused)?.peekable();
                Ok(Source { stream, offsets_bytes: place.offsets_bytes.clone() })
            })
            .collect::<Result<_, Error>>()?;
        Ok(Merged { streams, ahead: VecDeque::new() })
    }

    /// Whether no class is an open loop.
    pub(crate) fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    /// Reads the beginning of the stream, and keeps it: a recorded trace must not be read twice.
    pub(crate) fn look_ahead(&mut self) -> Outlook {
        let (mut peak, mut only_transfers) = (PeakRate::default(), true);
        while self.ahead.len() < LOOKED_AHEAD {
            let Some(request) = self.draw() else {
                return Outlook { peak_per_s: peak.per_s(), only_transfers };
            };
            peak.add(request.intended_ns);
            only_transfers &= request.op.data().is_some();
            self.ahead.push_back(request);
        }
        // What follows is not known.
        Outlook { peak_per_s: peak.per_s(), only_transfers: false }
    }

    fn draw(&mut self) -> Option<Request> {
        let due = |source: &mut Source| source.stream.peek().map(|request| request.intended_ns);
        let first = (0..self.streams.len())
            .filter_map(|index| Some((due(&mut self.streams[index])?, index)))
            .min()
            .map(|(_, index)| &mut self.streams[index])?;
        let mut request = first.stream.next()?;
        if let Some(offset) = request.file.and_then(|file| first.offsets_bytes.get(file as usize)) {
            request.offset += offset;
            request.file = None;
        }
        Some(request)
    }
}

impl Iterator for Merged {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        self.ahead.pop_front().or_else(|| self.draw())
    }
}

/// Requests that are read before the first one is sent: 40 MB.
const LOOKED_AHEAD: usize = 1 << 18;

/// What a replay must know of its requests before the first one.
pub(crate) struct Outlook {
    /// The highest rate, in requests per second; of a long stream, that of its first 262,144 requests.
    pub(crate) peak_per_s: f64,
    /// Whether all requests are known to be reads and writes.
    pub(crate) only_transfers: bool,
}

/// Target and I/O priority of each class.
pub(crate) fn layout<'a>(places: impl IntoIterator<Item = &'a Placement>, buffered: bool) -> Layout {
    let route = |place: &Placement| Route {
        path: place.path.clone(),
        name: Some(place.class.device.clone()),
        base_offset_bytes: 0,
        priority: place.class.priority,
    };
    let open_loop: Vec<&Placement> =
        places.into_iter().filter(|place| place.class.engine == Engine::Replay).collect();
    let classes: BTreeMap<String, Route> =
        open_loop.iter().map(|place| (place.class.name.clone(), route(place))).collect();
    let allow_writes = open_loop.iter().any(|place| place.recipe.may_write());
    // The run itself has claimed the disks, or mounted them.
    Layout { default: None, classes, allow_writes, buffered, shared: true }
}
