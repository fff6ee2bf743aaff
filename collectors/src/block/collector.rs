//! Block collector: start, stop, and the thread that drains the rings.

use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use libbpf_rs::RingBufferBuilder;
use weir_host::clock::monotonic_ns;
use weir_records::{BlockRequest, TableWriter};

use super::attach::{Mode, Programs, Recording, check_limits, possible_cpus};
use super::counters::Counters;
use super::event::{EVENT_BYTES, Event, Kind, RowMaker};
use super::readings::Readings;
use crate::Error;
use crate::disk::Disk;
use crate::reconcile::{CpuCount, Reconciliation, Snapshot};
use crate::spool::Spool;
use crate::worker::{Told, Worker};

/// Options of a collection.
#[derive(Debug)]
pub struct Options {
    /// Amount of recorded data of each request.
    pub mode: Mode,
    /// Largest size of the rings of completed requests, of all CPUs together.
    pub ring_bytes: u32,
    /// Use of the events.
    pub delivery: Delivery,
    /// Time limit for outstanding requests at the end.
    pub drain: Duration,
    /// Grows by 1 with each request without a completion, when it is found.
    pub losses: Arc<AtomicU64>,
}

/// Use of the events.
#[derive(Debug)]
pub enum Delivery {
    /// Spooled until the end, in memory up to `memory_bytes`, then in an unlinked file in `directory`.
    Spool {
        /// Limit of the memory used.
        memory_bytes: usize,
        /// Folder of the overflow file.
        directory: PathBuf,
    },
    /// Converted to rows at once, with times relative to `epoch_ns`, for a live view.
    Live {
        /// Receiver of rows; the collector continues without one.
        rows: Sender<BlockRequest>,
        /// Ns of `CLOCK_MONOTONIC`.
        epoch_ns: i64,
    },
}

impl Options {
    /// Mode `full`; half a gigabyte of memory, then a file in `directory`.
    pub fn spooled_to(directory: &Path) -> Self {
        let cpus = u32::try_from(possible_cpus()).unwrap_or(u32::MAX);
        Options {
            mode: Mode::Full,
            ring_bytes: cpus.saturating_mul(1 << 20).max(32 << 20),
            delivery: Delivery::Spool { memory_bytes: 512 << 20, directory: directory.to_owned() },
            drain: Duration::from_secs(2),
            losses: Arc::default(),
        }
    }
}

/// A running collection. Dropping it ends it and discards its events.
#[derive(Debug)]
pub struct Collector(Worker<Capture>);

/// Recording of a collection.
pub struct Capture {
    devices: Vec<Disk>,
    spool: Option<Spool>,
    reconciliation: Reconciliation,
    ended_ns: i64,
}

impl Collector {
    /// Loads the programs and returns when all are attached and recording.
    ///
    /// # Errors
    /// More than 8 devices, or BPF cannot be used; the text says why.
    pub fn start(devices: &[Disk], options: Options) -> Result<Self, Error> {
        check_limits(devices)?;
        let devices = devices.to_vec();
        let (worker, ()) = Worker::start("weir-collect", move |told| collect(devices, options, told))?;
        Ok(Collector(worker))
    }

    /// Ends the recording: waits for outstanding requests, reconciles, detaches.
    ///
    /// # Errors
    /// The statistics of a device cannot be read.
    pub fn stop(self) -> Result<Capture, Error> {
        self.0.stop()
    }
}

impl Capture {
    /// Reconciliation with the kernel's counters.
    pub fn reconciliation(&self) -> &Reconciliation {
        &self.reconciliation
    }

    /// When the recording ended, in ns of `CLOCK_MONOTONIC`: later completions are of requests that were in flight then.
    pub(crate) fn ended_ns(&self) -> i64 {
        self.ended_ns
    }

    /// Converts events to rows in order of completion, and calls `each` with each row.
    ///
    /// # Errors
    /// The overflow file of events cannot be written or read, or `each` failed.
    pub fn for_each(
        &mut self,
        epoch_ns: i64,
        mut each: impl FnMut(BlockRequest) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut maker = RowMaker::new(&self.devices, epoch_ns);
        let Some(spool) = &mut self.spool else { return Ok(()) };
        spool.each(|bytes| {
            let row = Event::decode(bytes).and_then(|event| maker.row(&event));
            row.map_or(Ok(()), &mut each)
        })
    }

    /// All rows, in order of completion.
    ///
    /// # Errors
    /// As [`Capture::for_each`].
    pub fn into_rows(mut self, epoch_ns: i64) -> Result<(Vec<BlockRequest>, Reconciliation), Error> {
        let mut rows = Vec::new();
        self.for_each(epoch_ns, |row| {
            rows.push(row);
            Ok(())
        })?;
        Ok((rows, self.reconciliation))
    }

    /// Writes `block.parquet`.
    ///
    /// # Errors
    /// As [`Capture::for_each`], or the disk is full.
    pub fn write(mut self, path: &Path, epoch_ns: i64) -> Result<Reconciliation, Error> {
        let mut table = TableWriter::create(path, epoch_ns)?;
        self.for_each(epoch_ns, |row| Ok(table.write(&row)?))?;
        table.close()?;
        Ok(self.reconciliation)
    }
}

/// Destination of events.
enum Sink {
    Spool(Spool),
    Live { rows: Sender<BlockRequest>, maker: RowMaker },
}

impl Sink {
    fn new(delivery: Delivery, devices: &[Disk]) -> Self {
        match delivery {
            Delivery::Spool { memory_bytes, directory } => {
                Sink::Spool(Spool::new(EVENT_BYTES, memory_bytes, &directory))
            }
            Delivery::Live { rows, epoch_ns } => Sink::Live { rows, maker: RowMaker::new(devices, epoch_ns) },
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        match self {
            Sink::Spool(spool) => spool.push(bytes),
            Sink::Live { rows, maker } => {
                if let Some(row) = Event::decode(bytes).and_then(|event| maker.row(&event)) {
                    // Without a receiver the counters are still complete.
                    let _ = rows.send(row);
                }
            }
        }
    }
}

/// Events so far.
struct Taken {
    sink: Sink,
    /// Requests among these events.
    rows: u64,
    losses: Arc<AtomicU64>,
}

impl Taken {
    fn take(&mut self, event: &[u8]) {
        match Event::kind(event) {
            Some(Kind::Completed) => self.rows += 1,
            Some(Kind::Hidden) => {
                self.rows += 1;
                self.losses.fetch_add(1, Ordering::Release);
            }
            Some(Kind::Name) | None => {}
        }
        self.sink.push(event);
    }
}

/// Minimum and maximum sleep between polls of the rings.
const VISITS: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(50));

/// Next sleep: a poll should find the fullest ring between a sixteenth and a quarter full.
fn next_sleep(sleep: Duration, found_full: f64) -> Duration {
    let next = if found_full > 0.25 {
        sleep / 2
    } else if found_full < 0.0625 {
        sleep * 2
    } else {
        sleep
    };
    next.clamp(VISITS.0, VISITS.1)
}

fn collect(devices: Vec<Disk>, options: Options, told: &Told<()>) -> Result<Capture, Error> {
    let Options { mode, ring_bytes, delivery, drain, losses } = options;
    libbpf_rs::set_print(None);
    let mut storage = MaybeUninit::uninit();
    let mut programs = Programs::load(&mut storage, &devices, mode, ring_bytes)?;
    programs.attach(mode)?;
    programs.set_recording(Recording::On, monotonic_ns())?;
    // Counted from here on: earlier completions are of earlier requests.
    let starts = snapshots(&programs, &devices)?;

    let taken = RefCell::new(Taken { sink: Sink::new(delivery, &devices), rows: 0, losses });
    let mut leftovers = Vec::new();
    let (ended_ns, stops);
    {
        // The map has a separate handle, since the skeleton is still in use.
        let map = libbpf_rs::MapHandle::try_from(&programs.skeleton.maps.events)
            .map_err(|error| Error::Bpf(format!("the ring buffer cannot be shared: {error}")))?;
        let mut builder = RingBufferBuilder::new();
        builder
            .add(&map, |bytes| {
                taken.borrow_mut().take(bytes);
                0
            })
            .map_err(|error| Error::Bpf(format!("the ring buffer cannot be read: {error}")))?;
        let ring = builder
            .build()
            .map_err(|error| Error::Bpf(format!("the ring buffer cannot be mapped: {error}")))?;
        // The names of tasks come before the requests that they made.
        let visit = |programs: &mut Programs<'_>| {
            let until = programs.rings.written();
            ring.consume_raw();
            programs.rings.take(&until, |event| taken.borrow_mut().take(event))
        };
        told.ready(());
        let mut sleep = VISITS.0;
        while told.sleep(sleep) {
            sleep = next_sleep(sleep, visit(&mut programs));
        }
        programs.set_recording(Recording::Drain, 0)?;
        let deadline = Instant::now() + drain;
        while Instant::now() < deadline && under_way(&devices)? > 0 {
            std::thread::sleep(VISITS.0);
            visit(&mut programs);
        }
        ended_ns = monotonic_ns();
        stops = snapshots(&programs, &devices)?;
        for device in 0..devices.len() {
            leftovers.push(programs.leftovers(device)?);
        }
        programs.detach();
        visit(&mut programs);
    }

    let mut taken = taken.into_inner();
    for left in &leftovers {
        left.issued.iter().for_each(|event| taken.take(&event.encode()));
    }
    let readings = Readings { devices: &devices, starts: &starts, stops: &stops, leftovers: &leftovers };
    let mut reconciliation = readings.reconcile(mode);
    reconciliation.rows = taken.rows;
    reconciliation.cpus = cpu_counts(&programs, devices.len())?;
    reconciliation.programs = programs.runs();
    let spool = match taken.sink {
        Sink::Spool(spool) => Some(spool),
        Sink::Live { .. } => None,
    };
    Ok(Capture { devices, spool, reconciliation, ended_ns })
}

/// Outstanding requests of all devices, by the kernel.
fn under_way(devices: &[Disk]) -> Result<u64, Error> {
    devices.iter().map(|disk| Ok(disk.statistics()?.in_flight)).sum()
}

fn snapshots(programs: &Programs<'_>, devices: &[Disk]) -> Result<Vec<Snapshot>, Error> {
    devices
        .iter()
        .enumerate()
        .map(|(device, disk)| {
            Ok(Snapshot {
                before: programs.device_counters(device)?,
                kernel: disk.statistics()?,
                after: programs.device_counters(device)?,
            })
        })
        .collect()
}

fn cpu_counts(programs: &Programs<'_>, devices: usize) -> Result<Vec<CpuCount>, Error> {
    let mut counts = Vec::new();
    for cpu in 0..possible_cpus() {
        let seen = programs.cpu_counters(cpu, devices)?;
        if seen != Counters::default() {
            counts.push(CpuCount {
                cpu,
                bios_queued: seen.bios_queued,
                issued: seen.issued,
                completed: seen.completions(),
                buffer_full: seen.completions_ring_full + seen.reuses_ring_full,
                evicted: seen.evicted,
            });
        }
    }
    Ok(counts)
}
