//! Running the tracer: settings, the thread that empties the pipe, and what comes of it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use weir_traces::blktrace::{Reader, Record};

use super::settings::Settings;
use crate::Error;
use crate::assemble::{Assembly, Recorded};
use crate::disk::{Disk, DiskStatistics};

/// Memory for events per CPU, in KiB: a second or so at 300,000 requests/s.
const BUFFER_KIB: u32 = 64 << 10;

/// How long the reader waits for new events, in ms.
const POLL_MS: i32 = 20;

/// A collection under way. Dropping it ends it and forgets what was recorded.
pub struct Collector {
    devices: Vec<Disk>,
    starts: Vec<DiskStatistics>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<()>>>,
    stream: File,
    directory: PathBuf,
    settings: Settings,
}

/// What was recorded.
pub struct Capture {
    devices: Vec<Disk>,
    starts: Vec<DiskStatistics>,
    stops: Vec<DiskStatistics>,
    stream: File,
    directory: PathBuf,
    overruns: u64,
    names: Vec<(u32, String)>,
}

fn read_setting(path: &Path) -> Result<String, Error> {
    let text = fs::read_to_string(path)
        .map_err(|error| Error::Ftrace(format!("{} cannot be read: {error}", path.display())))?;
    Ok(text.trim().to_owned())
}

impl Collector {
    /// Sets the tracer up and returns when it records; the events wait in an unlinked file in `directory`.
    ///
    /// # Errors
    /// The kernel has no `blk` tracer, someone else is tracing, or the kernel refuses.
    pub fn start(devices: &[Disk], directory: &Path) -> Result<Self, Error> {
        let stream = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_TMPFILE)
            .mode(0o600)
            .open(directory)
            .map_err(Error::io(directory))?;
        let mut collector = Collector {
            devices: devices.to_vec(),
            starts: Vec::new(),
            stop: Arc::new(AtomicBool::new(false)),
            thread: None,
            stream,
            directory: directory.to_owned(),
            settings: Settings::take()?,
        };
        collector.set_up()?;
        for disk in devices {
            collector.starts.push(disk.statistics()?);
        }
        collector.begin()?;
        Ok(collector)
    }

    /// Everything but the switch of each device.
    fn set_up(&mut self) -> Result<(), Error> {
        let root = self.settings.root().to_owned();
        let tracer = read_setting(&root.join("current_tracer"))?;
        if tracer != "nop" {
            return Err(Error::Ftrace(format!("the tracer {tracer} is in use on this host")));
        }
        if !read_setting(&root.join("available_tracers"))?.split(' ').any(|name| name == "blk") {
            return Err(Error::Ftrace("the kernel has no blk tracer (CONFIG_BLK_DEV_IO_TRACE)".to_owned()));
        }
        for disk in &self.devices {
            if read_setting(&disk.sysfs().join("trace/enable"))? != "0" {
                return Err(Error::Ftrace(format!("{} is being traced by someone else", disk.name)));
            }
        }
        let clock = read_setting(&root.join("trace_clock"))?;
        let clock = clock.split(['[', ']']).nth(1).unwrap_or("local").to_owned();
        self.settings.change(Path::new("trace_clock"), &clock, "mono")?;
        let size = read_setting(&root.join("buffer_size_kb"))?;
        let size = size.split(' ').next().unwrap_or("1408").to_owned();
        self.settings.change(Path::new("buffer_size_kb"), &size, &BUFFER_KIB.to_string())?;
        self.settings.change(Path::new("current_tracer"), &tracer, "blk")?;
        // With blk_classic the tracer writes text even in binary form. Cgroup ids come in the payload.
        for (option, value) in
            [("blk_classic", "0"), ("blk_cgroup", "1"), ("bin", "1"), ("context-info", "0")]
        {
            let path = Path::new("options").join(option);
            let before = read_setting(&root.join(&path))?;
            self.settings.change(&path, &before, value)?;
        }
        let on = read_setting(&root.join("tracing_on"))?;
        self.settings.change(Path::new("tracing_on"), &on, "1")?;
        fs::write(root.join("trace"), "").map_err(Error::io(&root.join("trace")))
    }

    fn begin(&mut self) -> Result<(), Error> {
        let pipe_path = self.settings.root().join("trace_pipe");
        let pipe =
            OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&pipe_path).map_err(
                |error| Error::Ftrace(format!("{} cannot be opened: {error}", pipe_path.display())),
            )?;
        let stream = self.stream.try_clone().map_err(Error::io(&self.directory))?;
        let stop = Arc::clone(&self.stop);
        self.thread = Some(
            std::thread::Builder::new()
                .name("weir-ftrace".to_owned())
                .spawn(move || empty_pipe(pipe, stream, &stop))
                .map_err(|error| Error::Ftrace(format!("the reader's thread cannot be started: {error}")))?,
        );
        for disk in self.devices.clone() {
            self.settings.change(&disk.sysfs().join("trace/enable"), "0", "1")?;
        }
        Ok(())
    }

    /// Ends the recording and puts all settings back.
    ///
    /// # Errors
    /// The events could not be written to their file; a device's statistics cannot be read any more.
    pub fn stop(mut self) -> Result<Capture, Error> {
        let stops: Vec<_> = self.devices.iter().map(Disk::statistics).collect::<Result<_, _>>()?;
        for disk in &self.devices {
            let path = disk.sysfs().join("trace/enable");
            fs::write(&path, "0").map_err(Error::io(&path))?;
        }
        self.join()?;
        let root = self.settings.root();
        let overruns = overruns(root)?;
        let names = fs::read_to_string(root.join("saved_cmdlines"))
            .unwrap_or_default()
            .lines()
            .filter_map(|line| {
                let (pid, name) = line.trim_start().split_once(' ')?;
                Some((pid.parse().ok()?, name.to_owned()))
            })
            .collect();
        Ok(Capture {
            devices: std::mem::take(&mut self.devices),
            starts: std::mem::take(&mut self.starts),
            stops,
            stream: self.stream.try_clone().map_err(Error::io(&self.directory))?,
            directory: self.directory.clone(),
            overruns,
            names,
        })
    }

    fn join(&mut self) -> Result<(), Error> {
        self.stop.store(true, Ordering::Release);
        match self.thread.take().map(JoinHandle::join) {
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

/// Copies the pipe to the stream until it is told to stop and the pipe is empty.
fn empty_pipe(mut pipe: File, mut stream: File, stop: &AtomicBool) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 18];
    let mut held = 0;
    loop {
        let stopping = stop.load(Ordering::Acquire);
        match pipe.read(&mut buffer[held..]) {
            Ok(read) if read > 0 => held += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            _ if stopping => return stream.write_all(&buffer[..held]),
            _ => wait_for(&pipe),
        }
        // The pipe gives a page or less at a time.
        if buffer.len() - held < 1 << 13 {
            stream.write_all(&buffer[..held])?;
            held = 0;
        }
    }
}

fn wait_for(pipe: &File) {
    let mut poll = libc::pollfd { fd: pipe.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one valid pollfd is passed, and it lives through the call.
    unsafe { libc::poll(&mut poll, 1, POLL_MS) };
}

/// Events that found the buffer of their CPU full.
fn overruns(root: &Path) -> Result<u64, Error> {
    let cpus = root.join("per_cpu");
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

    /// The events as they were recorded, in the order in which the kernel gave them.
    ///
    /// # Errors
    /// The file cannot be read; the stream is damaged.
    pub fn records(&self) -> Result<Vec<Record>, Error> {
        let mut stream = self.stream.try_clone().map_err(Error::io(&self.directory))?;
        stream.seek(SeekFrom::Start(0)).map_err(Error::io(&self.directory))?;
        let records: Result<Vec<Record>, _> = Reader::new(stream, Path::new("trace_pipe")).collect();
        Ok(records?)
    }

    /// Rows and their reconciliation.
    ///
    /// # Errors
    /// As [`Capture::records`].
    pub fn into_rows(self, epoch_ns: i64) -> Result<Recorded, Error> {
        let mut records = self.records()?;
        // The pipe merges the CPUs by time, but a CPU's latest events can come after another's later ones.
        records.sort_by_key(|record| record.time_ns);
        let mut assembly = Assembly::new(&self.devices, "ftrace", epoch_ns);
        for (pid, name) in &self.names {
            assembly.name_process(*pid, name);
        }
        records.iter().for_each(|record| assembly.add(record));
        Ok(assembly.finish(&self.starts, &self.stops, self.overruns))
    }
}
