//! Capture of ftrace events: the thread that drains the trace buffers, and its recording.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use weir_host::clock::monotonic_ns;
use weir_trace::blktrace::Record;

use super::decode::{COMPLETION, Decoder, EVENTS};
use super::instance::Instance;
use super::ring::PageLayout;
use crate::Error;
use crate::assemble::{Assembly, Recorded};
use crate::disk::{Disk, DiskStatistics};
use crate::fill::Completion;

/// Memory for events per CPU, in KiB: about a second at 300,000 requests/s on one CPU.
const BUFFER_KIB: usize = 64 << 10;

/// The same where only completions are recorded, and read when one is wanted: as long at twice the rate.
const RECENT_KIB: usize = 32 << 10;

/// Memory for events of all CPUs, and the minimum of each, in KiB.
const MOST_KIB: usize = 1 << 20;
const LEAST_KIB: usize = 4 << 10;

/// Interval between polls of the buffers.
const VISIT_INTERVAL: Duration = Duration::from_millis(20);

/// In the place of a CPU's number: no page, but the time at which a poll of all buffers began.
const POLLED: u32 = u32::MAX;

/// Longest time between the stamp of an event and its place in its buffer: an interrupt may come between.
const STAMP_NS: u64 = 100_000_000;

/// Bytes of one read: at least a page of the trace buffer, which may be 64 KiB or more.
const READ_BYTES: usize = 1 << 18;

/// A running collection. Dropping it ends it and discards its events.
pub struct Collector {
    devices: Vec<Disk>,
    starts: Vec<DiskStatistics>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<()>>>,
    stream: File,
    directory: PathBuf,
    layout: PageLayout,
    decoder: Decoder,
    /// Completions that another collector missed, if only such completions are wanted.
    losses: Option<Arc<AtomicU64>>,
    // Last field: the instance can be removed only after the thread has closed its files.
    instance: Instance,
}

/// Recording of a collection.
pub struct Capture {
    devices: Vec<Disk>,
    starts: Vec<DiskStatistics>,
    stops: Vec<DiskStatistics>,
    stream: File,
    directory: PathBuf,
    layout: PageLayout,
    decoder: Decoder,
    overruns: u64,
}

impl Collector {
    /// Makes a trace instance, recorded in `state`, and returns when it records. Events go to an unlinked file in `directory`.
    /// Instances of dead processes are removed by [`super::recover`].
    ///
    /// # Errors
    /// The kernel has no block trace events or no trace instances, or refuses.
    pub fn start(devices: &[Disk], directory: &Path, state: &Path) -> Result<Self, Error> {
        Self::start_for(devices, directory, state, None)
    }

    /// The same for completions only. The kernel keeps the latest ones in memory, where new ones overwrite the oldest; they are
    /// copied to the file whenever `losses` has grown. So the cost is that of one event per request, unread.
    ///
    /// # Errors
    /// As [`Collector::start`].
    pub fn start_for_losses(
        devices: &[Disk],
        directory: &Path,
        state: &Path,
        losses: Arc<AtomicU64>,
    ) -> Result<Self, Error> {
        Self::start_for(devices, directory, state, Some(losses))
    }

    fn start_for(
        devices: &[Disk],
        directory: &Path,
        state: &Path,
        losses: Option<Arc<AtomicU64>>,
    ) -> Result<Self, Error> {
        let stream = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_TMPFILE)
            .mode(0o600)
            .open(directory)
            .map_err(Error::io(directory))?;
        let instance = Instance::make(state)?;
        let layout = PageLayout::parse(&instance.read("events/header_page")?)
            .ok_or_else(|| Error::Ftrace("events/header_page does not describe a page".to_owned()))?;
        let mut collector = Collector {
            devices: devices.to_vec(),
            starts: Vec::new(),
            stop: Arc::new(AtomicBool::new(false)),
            thread: None,
            stream,
            directory: directory.to_owned(),
            layout,
            decoder: Decoder::default(),
            losses,
            instance,
        };
        collector.set_up()?;
        collector.begin()?;
        Ok(collector)
    }

    /// Prepares the instance, without beginning to record.
    fn set_up(&mut self) -> Result<(), Error> {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let wanted_kib = if self.losses.is_some() { RECENT_KIB } else { BUFFER_KIB };
        let buffer_kib = (MOST_KIB / cpus).clamp(LEAST_KIB, wanted_kib);
        let instance = &self.instance;
        instance.write("tracing_on", "0")?;
        instance.write("trace_clock", "mono")?;
        instance.write("buffer_size_kb", &buffer_kib.to_string())?;
        let ours: Vec<String> =
            self.devices.iter().map(|disk| format!("dev == {}", disk.kernel_dev())).collect();
        let events = EVENTS.iter().filter(|(_, code)| self.losses.is_none() || *code == COMPLETION);
        for (event, _) in events {
            let folder = format!("events/block/{event}");
            let format = instance
                .read(&format!("{folder}/format"))
                .map_err(|error| Error::Ftrace(format!("the kernel has no trace event {event} ({error})")))?;
            if !self.decoder.learn(event, &format) {
                return Err(Error::Ftrace(format!("the trace event {event} has an unknown format")));
            }
            instance.write(&format!("{folder}/filter"), &ours.join(" || "))?;
            instance.write(&format!("{folder}/enable"), "1")?;
        }
        Ok(())
    }

    fn begin(&mut self) -> Result<(), Error> {
        let pipes = pipes(self.instance.path())?;
        let stream = self.stream.try_clone().map_err(Error::io(&self.directory))?;
        let (stop, layout, losses) = (Arc::clone(&self.stop), self.layout, self.losses.clone());
        self.thread = Some(
            std::thread::Builder::new()
                .name("weir-ftrace".to_owned())
                .spawn(move || empty_buffers(pipes, stream, layout, &stop, losses.as_deref()))
                .map_err(|error| Error::Ftrace(format!("the reader's thread cannot be started: {error}")))?,
        );
        self.starts = self.devices.iter().map(Disk::statistics).collect::<Result<_, _>>()?;
        self.instance.write("tracing_on", "1")
    }

    /// Ends the recording and removes the instance.
    ///
    /// # Errors
    /// The events could not be written to their file, or a device's statistics cannot be read.
    pub fn stop(mut self) -> Result<Capture, Error> {
        let stops: Vec<_> = self.devices.iter().map(Disk::statistics).collect::<Result<_, _>>()?;
        self.instance.write("tracing_on", "0")?;
        self.join()?;
        Ok(Capture {
            devices: std::mem::take(&mut self.devices),
            starts: std::mem::take(&mut self.starts),
            stops,
            stream: self.stream.try_clone().map_err(Error::io(&self.directory))?,
            directory: self.directory.clone(),
            layout: self.layout,
            decoder: std::mem::take(&mut self.decoder),
            overruns: overruns(self.instance.path())?,
        })
    }

    fn join(&mut self) -> Result<(), Error> {
        self.stop.store(true, Ordering::Release);
        match self.thread.take().map(|thread| {
            thread.thread().unpark();
            thread.join()
        }) {
            None | Some(Ok(Ok(()))) => Ok(()),
            Some(Ok(Err(error))) => Err(Error::Io { path: self.directory.clone(), source: error }),
            Some(Err(_)) => Err(Error::Ftrace("the reader's thread panicked".to_owned())),
        }
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = self.join();
    }
}

/// Trace buffer of one CPU.
struct Pipe {
    cpu: u32,
    file: File,
}

fn pipes(instance: &Path) -> Result<Vec<Pipe>, Error> {
    let folder = instance.join("per_cpu");
    let mut pipes = Vec::new();
    for entry in fs::read_dir(&folder).map_err(Error::io(&folder))? {
        let entry = entry.map_err(Error::io(&folder))?;
        let name = entry.file_name();
        let cpu = name.to_string_lossy().strip_prefix("cpu").and_then(|cpu| cpu.parse().ok());
        let Some(cpu) = cpu else { continue };
        let path = entry.path().join("trace_pipe_raw");
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(&path)
            .map_err(Error::io(&path))?;
        pipes.push(Pipe { cpu, file });
    }
    Ok(pipes)
}

/// Copies the used part of each page to the stream, with its CPU and length, until a stop with empty buffers. A poll of all buffers
/// ends with the time at which it began: all events before it are in the stream. With `losses`, a poll is left out if there were no
/// new ones.
fn empty_buffers(
    mut pipes: Vec<Pipe>,
    stream: File,
    layout: PageLayout,
    stop: &AtomicBool,
    losses: Option<&AtomicU64>,
) -> io::Result<()> {
    let mut stream = BufWriter::with_capacity(1 << 18, stream);
    let mut page = vec![0; READ_BYTES];
    let mut known_losses = 0;
    loop {
        let stopping = stop.load(Ordering::Acquire);
        if let Some(losses) = losses {
            let now = losses.load(Ordering::Acquire);
            if now == std::mem::replace(&mut known_losses, now) {
                if stopping {
                    return stream.flush();
                }
                std::thread::park_timeout(VISIT_INTERVAL);
                continue;
            }
        }
        let began_ns = monotonic_ns();
        for pipe in &mut pipes {
            while let Some(length) = read(&mut pipe.file, &mut page)? {
                let used = &page[..layout.used(&page[..length])];
                stream.write_all(&pipe.cpu.to_ne_bytes())?;
                stream.write_all(&u32::try_from(used.len()).unwrap_or(0).to_ne_bytes())?;
                stream.write_all(used)?;
            }
        }
        stream.write_all(&POLLED.to_ne_bytes())?;
        stream.write_all(&u32::try_from(size_of_val(&began_ns)).unwrap_or(0).to_ne_bytes())?;
        stream.write_all(&began_ns.to_ne_bytes())?;
        if stopping {
            return stream.flush();
        }
        std::thread::park_timeout(VISIT_INTERVAL);
    }
}

/// Reads one page; `None` if the buffer is empty.
fn read(pipe: &mut File, page: &mut [u8]) -> io::Result<Option<usize>> {
    loop {
        match pipe.read(page) {
            Ok(0) => return Ok(None),
            Ok(length) => return Ok(Some(length)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Events lost because the buffer of their CPU was full.
fn overruns(instance: &Path) -> Result<u64, Error> {
    let cpus = instance.join("per_cpu");
    let mut sum = 0;
    for entry in fs::read_dir(&cpus).map_err(Error::io(&cpus))? {
        let path = entry.map_err(Error::io(&cpus))?.path().join("stats");
        let text = fs::read_to_string(&path).map_err(Error::io(&path))?;
        for line in text.lines() {
            if let Some((name, count)) = line.split_once(": ")
                && matches!(name, "overrun" | "commit overrun" | "dropped events")
            {
                sum += count.trim().parse::<u64>().unwrap_or(0);
            }
        }
    }
    Ok(sum)
}

impl Capture {
    /// Events that were lost because the kernel's buffer was full.
    pub fn overruns(&self) -> u64 {
        self.overruns
    }

    /// Events as records of blktrace(8), in order of time.
    ///
    /// # Errors
    /// The file cannot be read, or a page is damaged.
    pub fn records(&self) -> Result<Vec<Record>, Error> {
        let mut records = Vec::new();
        self.each_record(|record| records.push(record))?;
        Ok(records)
    }

    /// Calls `each` with every page of the stream and its CPU.
    fn each_page(&self, mut each: impl FnMut(u32, &[u8]) -> Result<(), Error>) -> Result<(), Error> {
        let io = |source| Error::Io { path: self.directory.clone(), source };
        let mut stream = self.stream.try_clone().map_err(io)?;
        stream.seek(SeekFrom::Start(0)).map_err(io)?;
        let mut stream = BufReader::with_capacity(1 << 18, stream);
        let mut page = Vec::new();
        while let Some(cpu) = next_page(&mut stream, &mut page).map_err(io)? {
            each(cpu, &page)?;
        }
        Ok(())
    }

    /// Calls `each` with the records of a page.
    fn records_of(
        &self,
        decoder: &mut Decoder,
        cpu: u32,
        page: &[u8],
        mut each: impl FnMut(Record),
    ) -> Result<(), Error> {
        for event in self.layout.events(page) {
            let event = event.map_err(|error| Error::Ftrace(error.to_string()))?;
            decoder.records(cpu, event.time_ns, event.data, &mut each);
        }
        Ok(())
    }

    /// Calls `each` with the events as records of blktrace(8), in order of time. Those of the last polls are in memory.
    fn each_record(&self, mut each: impl FnMut(Record)) -> Result<(), Error> {
        let mut decoder = self.decoder.clone();
        // By time and place in the stream: a name stays before the record that contains it.
        let (mut waiting, mut place) = (BTreeMap::new(), 0u64);
        self.each_page(|cpu, page| {
            if cpu == POLLED {
                let began_ns = page.first_chunk().map_or(0, |bytes| i64::from_ne_bytes(*bytes));
                let complete_ns = u64::try_from(began_ns).unwrap_or(0).saturating_sub(STAMP_NS);
                let later = waiting.split_off(&(complete_ns, 0));
                std::mem::replace(&mut waiting, later).into_values().for_each(&mut each);
                return Ok(());
            }
            self.records_of(&mut decoder, cpu, page, |record| {
                waiting.insert((record.time_ns, place), record);
                place += 1;
            })
        })?;
        waiting.into_values().for_each(each);
        Ok(())
    }

    /// Calls `each` with every completion, of a whole request or of a part, in no order.
    ///
    /// # Errors
    /// As [`Capture::records`].
    pub fn each_completion(&self, epoch_ns: i64, mut each: impl FnMut(Completion)) -> Result<(), Error> {
        let mut decoder = self.decoder.clone();
        self.each_page(|cpu, page| {
            if cpu == POLLED {
                return Ok(());
            }
            self.records_of(&mut decoder, cpu, page, |record| {
                Completion::of(&record, &self.devices, epoch_ns).into_iter().for_each(&mut each);
            })
        })
    }

    /// Rows and their reconciliation.
    ///
    /// # Errors
    /// As [`Capture::records`].
    pub fn into_rows(self, epoch_ns: i64) -> Result<Recorded, Error> {
        self.assemble(Assembly::new(&self.devices, "ftrace", epoch_ns))
    }

    fn assemble(&self, mut assembly: Assembly) -> Result<Recorded, Error> {
        self.each_record(|record| assembly.add(&record))?;
        Ok(assembly.finish(&self.starts, &self.stops, self.overruns))
    }
}

/// Reads the next page of the stream and its CPU; `None` at the end.
fn next_page(stream: &mut impl Read, page: &mut Vec<u8>) -> io::Result<Option<u32>> {
    let mut head = [0; 8];
    match stream.read_exact(&mut head) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let [a, b, c, d, e, f, g, h] = head;
    page.resize(u32::from_ne_bytes([e, f, g, h]) as usize, 0);
    stream.read_exact(page)?;
    Ok(Some(u32::from_ne_bytes([a, b, c, d])))
}
