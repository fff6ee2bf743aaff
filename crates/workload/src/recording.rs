//! A recorded trace as a workload.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_trace::filter::{ScaleAddress, Sorted, Step};
use weir_trace::packed::{Chunk, MOST_REQUESTS, PackedFile, Spool};
use weir_trace::{Devices, Options, Reader, TraceRequest};
use weir_vocabulary::Op;

use crate::limits::{Demand, LARGEST_REQUEST_BYTES};
use crate::spec::{Access, Arrivals, Deadline, Popularity, Sizes, Workload};

const NS_PER_S: f64 = 1e9;
/// Memory for sorting a trace that is not in the order of its times.
const SORT_BYTES: usize = 256 << 20;

/// The requests of a trace.
///
/// The n-th device in the trace becomes the n-th file. Addresses beyond the file are scaled down; sequential requests
/// stay sequential. A trace that ends is repeated. Several clients begin at different positions, the first at the
/// beginning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Recording {
    /// The trace, compressed or not; relative to the workload's own folder.
    pub path: PathBuf,
    /// Its format (`weir trace formats`); detected from its content if absent.
    #[serde(default)]
    pub format: Option<String>,
    /// Options of the format, such as `time: "1"` of a table (`weir trace formats`).
    #[serde(default)]
    pub options: BTreeMap<String, String>,
    /// Start: skip requests before this many seconds since the first request.
    #[serde(default)]
    pub from_s: f64,
    /// End: skip requests from this many seconds since the first request on.
    #[serde(default)]
    pub to_s: Option<f64>,
    /// Factor on the times between requests: below 1 the load is heavier (Shenoy and Vin, section 3.3).
    #[serde(default = "one")]
    pub time_scale: f64,
}

fn one() -> f64 {
    1.0
}

impl Recording {
    fn options(&self) -> Result<Options, (String, String)> {
        let mut options = Options { format: self.format.clone(), ..Options::default() };
        for (key, value) in &self.options {
            options.set(key, value).map_err(|message| (format!("options.{key}"), message))?;
        }
        Ok(options)
    }

    /// The trace, in the order of its file.
    fn open(&self, path: &Path) -> Result<Box<dyn Reader>, String> {
        let options = self.options().map_err(|(field, message)| format!("{field}: {message}"))?;
        weir_trace::open(path, &options).map(|(_, reader)| reader).map_err(|error| error.to_string())
    }

    /// What is selected of the trace in order of time, for so many files, and the reader that is at its end.
    fn select(&self, path: &Path, files: usize) -> Result<(Selection, Box<dyn Reader>), String> {
        // Most traces are in order, and need no sorting. Only a regular file can be read again if this one is not.
        if path.is_file() {
            let mut reader = self.open(path)?;
            if let Some(selection) = Selection::of(self, path, files, &mut *reader)? {
                return Ok((selection, reader));
            }
        }
        let mut reader: Box<dyn Reader> = Box::new(Sorted::new(path, self.open(path)?, SORT_BYTES));
        let selection = Selection::of(self, path, files, &mut *reader)?;
        let selection = selection.ok_or_else(|| format!("{}: sorting left a disorder", path.display()))?;
        Ok((selection, reader))
    }

    /// Whether the trace can be opened; reads only its beginning.
    ///
    /// # Errors
    /// The file, and the reason.
    pub fn look(&self, folder: &Path) -> Result<(), String> {
        let options = self.options().map_err(|(field, message)| format!("{field}: {message}"))?;
        weir_trace::open(&folder.join(&self.path), &options).map(|_| ()).map_err(|error| error.to_string())
    }
}

/// Fields that exclude a recording, with messages.
pub(crate) fn check(workload: &Workload, recording: &Recording) -> Vec<(String, String)> {
    let mut problems = Vec::new();
    let mut within = |field: &str, value: f64, low: f64, high: f64| {
        if !(low..=high).contains(&value) {
            let message = format!("is {value}; it must be from {low} to {high}");
            problems.push((format!("arrivals.recorded.{field}"), message));
        }
    };
    within("time_scale", recording.time_scale, 1e-9, 1e9);
    within("from_s", recording.from_s, 0.0, 1e9);
    if let Some(to_s) = recording.to_s {
        within("to_s", to_s, recording.from_s, 1e9);
    }
    if let Err((field, message)) = recording.options() {
        problems.push((format!("arrivals.recorded.{field}"), message));
    }
    if let Some(name) = &recording.format
        && !weir_trace::FORMATS.iter().any(|format| format.name == name)
    {
        let known = weir_trace::FORMATS.iter().map(|format| format.name);
        problems.push(("arrivals.recorded.format".to_owned(), weir_specs::one_of("format", name, known)));
    }
    let mut wrong = |is_wrong: bool, field: &str, message: &str| {
        if is_wrong {
            problems.push((field.to_owned(), message.to_owned()));
        }
    };
    wrong(
        !matches!(workload.sizes, Sizes::Recorded),
        "sizes",
        "must be recorded, as the arrivals are: the trace says how large each request is",
    );
    wrong(
        workload.access != Access::Recorded,
        "access",
        "must be recorded, as the arrivals are: the trace says where each request falls",
    );
    wrong(
        workload.read_share != 1.0,
        "read_share",
        "is for drawn requests, and these are recorded: leave it out, the trace says what reads",
    );
    wrong(
        workload.files.popularity != Popularity::Uniform,
        "files.popularity",
        "is for drawn requests, and these are recorded: leave it out",
    );
    wrong(
        workload.deadline == Some(Deadline::RoundEnd),
        "deadline",
        "is round_end, but a trace has no rounds: use after: {ms: ...}",
    );
    problems
}

/// One request of a recording, ready to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Recorded {
    /// Since the first.
    pub(crate) at_ns: i64,
    pub(crate) file: u32,
    pub(crate) op: Op,
    /// Aligned, within the file.
    pub(crate) offset_bytes: u64,
    /// Aligned, at least one unit.
    pub(crate) size_bytes: u64,
}

/// A recording, mapped to the workload's files, in a temporary file; shared by the clients of a class.
///
/// Memory does not depend on its length: at most [`MOST_CHUNKS`] decoded chunks, and one for each client.
#[derive(Debug)]
pub(crate) struct Tape {
    /// In order of time, at least one request; devices are files.
    file: PackedFile,
    decoded: Mutex<Decoded>,
    /// From the first request to where the tape begins again: a mean gap after the last.
    pub(crate) round_ns: i64,
    /// Requests that a round sends, cut at the workload's blocks.
    sent_in_a_round: f64,
    /// Counts of skipped and changed requests.
    pub(crate) notes: Vec<String>,
}

/// Decoded chunks that are kept: 21 MB of them.
const MOST_CHUNKS: usize = 128;

/// Decoded chunks by number, and their numbers in the order of decoding.
#[derive(Debug, Default)]
struct Decoded {
    chunks: HashMap<usize, Arc<[Recorded]>>,
    order: VecDeque<usize>,
    buffer: Chunk,
}

impl Tape {
    /// Reads the recording of a workload whose files have these sizes.
    pub(crate) fn read(
        workload: &Workload,
        recording: &Recording,
        folder: &Path,
        sizes_bytes: &[u64],
    ) -> Result<Self, String> {
        let path = folder.join(&recording.path);
        let refuse = |message: String| format!("{}: {message}", path.display());
        let (selection, reader) = recording.select(&path, sizes_bytes.len())?;
        let Selection { kept, left_out, files, extents_bytes, .. } = selection;
        let kept = kept.finish().map_err(|error| error.to_string())?;
        if kept.index().requests() == 0 {
            return Err(refuse("no reads or writes in what is asked for; look at from_s and to_s".into()));
        }
        if files.len() > sizes_bytes.len() {
            return Err(refuse(format!(
                "asks {} devices, and files.count is {}: make it as many, or take one device out with \
                 `weir trace filter --device`",
                files.len(),
                sizes_bytes.len()
            )));
        }
        let mut notes = Vec::new();
        for (what, count) in [
            ("requests without data left out", left_out),
            ("damaged records passed over", reader.skipped().count()),
        ] {
            if count > 0 {
                notes.push(format!("{count} {what}"));
            }
        }
        for (what, count) in reader.skipped().noted() {
            notes.push(format!("{count} {what}"));
        }
        drop(reader);
        let requests = kept.index().requests();
        let span_ns = kept.index().times_ns(kept.index().chunks() - 1).map_or(0, |(_, last_ns)| last_ns);
        let (file, sent_in_a_round) =
            place(kept, &extents_bytes, sizes_bytes, workload, &mut notes).map_err(refuse)?;
        let mean_gap_ns = span_ns / i64::try_from(requests).unwrap_or(i64::MAX);
        Ok(Tape {
            file,
            decoded: Mutex::default(),
            round_ns: span_ns + mean_gap_ns.max(1),
            sent_in_a_round,
            notes,
        })
    }

    /// Number of chunks, at least one.
    pub(crate) fn chunks(&self) -> usize {
        self.file.index().chunks()
    }

    /// The first chunk that has a request at this time or later; one more than the last if there is none.
    pub(crate) fn chunk_from(&self, at_ns: i64) -> usize {
        self.file.index().chunk_from(at_ns)
    }

    /// The requests of a chunk, at least one.
    ///
    /// # Panics
    /// The temporary file, which nobody else can open, cannot be read back: as memory that fails, this ends the run.
    pub(crate) fn chunk(&self, number: usize) -> Arc<[Recorded]> {
        let mut decoded = self.decoded.lock().unwrap_or_else(PoisonError::into_inner);
        let Decoded { chunks, order, buffer } = &mut *decoded;
        if let Some(chunk) = chunks.get(&number) {
            return Arc::clone(chunk);
        }
        if let Err(error) = self.file.read(number, buffer) {
            panic!("the temporary file of a recorded trace cannot be read back: {error}");
        }
        let recorded = |request: TraceRequest| Recorded {
            at_ns: request.arrival_ns,
            file: request.device,
            op: if request.op.is_write() { Op::Write } else { Op::Read },
            offset_bytes: request.offset_bytes,
            size_bytes: request.size_bytes,
        };
        let chunk: Arc<[Recorded]> = (0..buffer.len()).map(|place| recorded(buffer.get(place))).collect();
        if order.len() == MOST_CHUNKS
            && let Some(oldest) = order.pop_front()
        {
            chunks.remove(&oldest);
        }
        order.push_back(number);
        chunks.insert(number, Arc::clone(&chunk));
        chunk
    }

    /// Demand of clients that replay the tape in a loop for a duration.
    pub(crate) fn demand(&self, clients: u32, duration_ns: i64) -> Demand {
        let rounds = duration_ns as f64 / self.round_ns.max(1) as f64;
        // Less than a round sends less than all.
        Demand { requests: f64::from(clients) * self.sent_in_a_round * rounds, ..Demand::default() }
    }
}

/// What of a trace is wanted.
struct Selection {
    from_ns: i64,
    to_ns: i64,
    time_scale: f64,
    origin_ns: Option<i64>,
    first_ns: Option<i64>,
    /// File of each device, by the device's number.
    files: BTreeMap<u32, u32>,
    /// By file, where the last byte of any request ends; no more files than the workload has.
    extents_bytes: Vec<u64>,
    kept: Spool,
    devices: Devices,
    left_out: u64,
}

impl Selection {
    /// What is selected of a trace; `None` if it is not in order of time.
    fn of(
        recording: &Recording,
        path: &Path,
        files: usize,
        reader: &mut dyn Reader,
    ) -> Result<Option<Self>, String> {
        let mut selection = Selection::new(recording, files)?;
        let mut last_ns = i64::MIN;
        while let Some(request) = reader.next_request().map_err(|error| error.to_string())? {
            if request.arrival_ns < last_ns {
                return Ok(None);
            }
            last_ns = request.arrival_ns;
            selection.take(&request).map_err(|message| format!("{}: {message}", path.display()))?;
        }
        Ok(Some(selection))
    }

    fn new(recording: &Recording, files: usize) -> Result<Self, String> {
        let ns = |seconds: f64| (seconds * NS_PER_S) as i64;
        Ok(Selection {
            from_ns: ns(recording.from_s),
            to_ns: recording.to_s.map_or(i64::MAX, ns),
            time_scale: recording.time_scale,
            origin_ns: None,
            first_ns: None,
            files: BTreeMap::new(),
            extents_bytes: vec![0; files],
            kept: Spool::create(MOST_REQUESTS).map_err(|error| error.to_string())?,
            devices: Devices::default(),
            left_out: 0,
        })
    }

    fn take(&mut self, request: &TraceRequest) -> Result<(), String> {
        let origin_ns = *self.origin_ns.get_or_insert(request.arrival_ns);
        let since_ns = request.arrival_ns.saturating_sub(origin_ns);
        if !(self.from_ns..self.to_ns).contains(&since_ns) {
            return Ok(());
        }
        if !request.op.has_data() || request.size_bytes == 0 {
            self.left_out += 1;
            return Ok(());
        }
        if request.object.is_some() {
            return Err("asks for objects, not for addresses of a device: it cannot be sent to one".into());
        }
        let first_ns = *self.first_ns.get_or_insert(since_ns);
        // A trace of a century at the largest factor is still within range.
        let at_ns = ((since_ns - first_ns) as f64 * self.time_scale).min(i64::MAX as f64 / 4.0) as i64;
        let next = self.files.len() as u32;
        let file = *self.files.entry(request.device).or_insert(next);
        if let Some(extent) = self.extents_bytes.get_mut(file as usize) {
            *extent = (*extent).max(request.offset_bytes.saturating_add(request.size_bytes));
        }
        // What is sent is all that is kept: a byte for each request less.
        let kept = TraceRequest {
            arrival_ns: at_ns,
            device: file,
            op: request.op,
            offset_bytes: request.offset_bytes,
            size_bytes: request.size_bytes,
            ..TraceRequest::default()
        };
        self.kept.push(&kept, &self.devices).map_err(|error| error.to_string())
    }
}

/// Moves requests into their files. Returns them, and how many are sent, cut at the workload's blocks.
fn place(
    kept: PackedFile,
    extents_bytes: &[u64],
    sizes_bytes: &[u64],
    workload: &Workload,
    notes: &mut Vec<String>,
) -> Result<(PackedFile, f64), String> {
    let mut scales: Vec<ScaleAddress> = extents_bytes
        .iter()
        .zip(sizes_bytes)
        .map(|(extent, size)| ScaleAddress::fit((*extent).max(1), *size))
        .collect();
    for (file, (extent, size)) in extents_bytes.iter().zip(sizes_bytes).enumerate() {
        if extent > size {
            notes.push(format!(
                "file {file}: addresses up to {extent} bytes scaled into {size} bytes, by {:.6}",
                *size as f64 / *extent as f64
            ));
        }
    }
    let devices = Devices::default();
    let unit_bytes = workload.alignment_bytes;
    let block_bytes = workload.block_bytes.unwrap_or(LARGEST_REQUEST_BYTES).max(1);
    let failed = |error: weir_trace::Error| error.to_string();
    let mut placed = Spool::create(MOST_REQUESTS).map_err(failed)?;
    let mut scaled = Vec::with_capacity(1);
    let mut widened = 0u64;
    let mut sent = 0.0;
    for request in kept.into_rows() {
        let request = request.map_err(failed)?;
        let size_bytes = sizes_bytes[request.device as usize];
        scaled.clear();
        scales[request.device as usize]
            .take(request, &devices, &mut scaled)
            .map_err(|bound| format!("{} is out of range", bound.0))?;
        for request in &scaled {
            let start = request.offset_bytes / unit_bytes * unit_bytes;
            let end = request
                .offset_bytes
                .saturating_add(request.size_bytes)
                .min(size_bytes)
                .next_multiple_of(unit_bytes)
                .min(size_bytes);
            widened += u64::from(end - start > request.size_bytes);
            sent += (end - start).div_ceil(block_bytes) as f64;
            let request = TraceRequest { offset_bytes: start, size_bytes: end - start, ..*request };
            placed.push(&request, &devices).map_err(failed)?;
        }
    }
    if widened > 0 {
        notes.push(format!("{widened} requests widened to units of {unit_bytes} bytes"));
    }
    notes.extend(scales.iter().flat_map(Step::notes));
    Ok((placed.finish().map_err(failed)?, sent))
}

/// The recording of a workload, if it has one.
pub(crate) fn of(workload: &Workload) -> Option<&Recording> {
    match &workload.arrivals {
        Arrivals::Recorded(recording) => Some(recording),
        _ => None,
    }
}
