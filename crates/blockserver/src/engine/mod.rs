//! Engines behind a server's exports and control socket: one without a scheduler, or one or more with a scheduler.

pub(crate) mod alarm;
pub(crate) mod backing;
pub(crate) mod pacing;
pub(crate) mod scheduled;
pub(crate) mod unscheduled;

use std::io;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use crate::engine::backing::Backing;
use crate::engine::scheduled::{Arrangement, ClassSpec, Export, SchedulingStats};
use crate::engine::unscheduled::Engine;
use crate::error::Error;
use crate::exports::fuse::FileService;
use crate::spec::ServeSpec;
use crate::stats::Stats;

/// The engines of a server.
pub(crate) enum Engines {
    /// One engine, whose device model orders its own queue.
    Unscheduled(Arc<Engine>),
    /// Engines of a server with a scheduler: one, or one for each class.
    Scheduled {
        /// The engines.
        engines: Vec<Arc<scheduled::Engine>>,
        /// Exports by name; the first is the whole device.
        exports: Vec<Export>,
    },
}

impl Engines {
    /// Makes the engines of a checked specification.
    ///
    /// # Errors
    /// Memory or a file is not available, or a real device is unsuitable.
    pub fn new(spec: &ServeSpec) -> Result<Self, Error> {
        let Some(scheduling) = &spec.live else { return plain(spec).map(Arc::new).map(Engines::Unscheduled) };
        let (engines, exports) = scheduled::build(spec, scheduling)?;
        Ok(Engines::Scheduled { engines, exports })
    }

    /// Starts the threads. They end after [`stop`](Self::stop), except those that only wait.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn start(&self) -> io::Result<Vec<JoinHandle<()>>> {
        let named = |name: &str| thread::Builder::new().name(name.to_owned());
        let mut threads = Vec::new();
        match self {
            Engines::Unscheduled(engine) => {
                let engine = Arc::clone(engine);
                threads.push(named("timing").spawn(move || engine.keep_time())?);
            }
            Engines::Scheduled { engines, .. } => {
                for engine in engines {
                    let of = || Arc::clone(engine);
                    let (timing, completions, durable) = (of(), of(), of());
                    threads.push(named("timing").spawn(move || timing.keep_time())?);
                    threads.push(named("completions").spawn(move || completions.take_completions())?);
                    // It owns the engine, and ends with the process.
                    named("durable").spawn(move || durable.make_durable())?;
                }
            }
        }
        Ok(threads)
    }

    /// Service behind the file in FUSE.
    pub fn file(&self) -> Arc<dyn FileService> {
        match self {
            Engines::Unscheduled(engine) => Arc::clone(engine) as Arc<dyn FileService>,
            // The engine of the whole, or the first of a partitioned server, which exports no file.
            Engines::Scheduled { engines, .. } => Arc::clone(&engines[0]) as Arc<dyn FileService>,
        }
    }

    /// Turns models and schedulers on or off.
    pub fn set_timing(&self, on: bool) {
        match self {
            Engines::Unscheduled(engine) => engine.set_timing(on),
            Engines::Scheduled { engines, .. } => engines.iter().for_each(|engine| engine.set_timing(on)),
        }
    }

    /// Statistics; of a partitioned server those of its first device.
    pub fn stats(&self, reset: bool) -> Stats {
        match self {
            Engines::Unscheduled(engine) => engine.stats(reset),
            Engines::Scheduled { engines, .. } => {
                let mut all =
                    engines.iter().map(|engine| engine.stats(reset)).collect::<Vec<_>>().into_iter();
                all.next().unwrap_or_default()
            }
        }
    }

    /// Makes every byte zero.
    ///
    /// # Errors
    /// The backing fails.
    pub fn discard(&self) -> io::Result<()> {
        match self {
            Engines::Unscheduled(engine) => engine.discard(0, engine.size_bytes()),
            Engines::Scheduled { engines, .. } => engines.iter().try_for_each(|engine| {
                let (sender, receiver) = mpsc::channel();
                let reply = move |outcome: Result<scheduled::BorrowedPayload, i32>| {
                    let _ = sender.send(outcome.map(|_| ()));
                };
                engine.discard(0, engine.size_bytes(), scheduled::Reply::new(reply));
                receiver.recv().unwrap_or(Err(libc::EIO)).map_err(io::Error::from_raw_os_error)
            }),
        }
    }

    /// Classes and heads of all engines.
    ///
    /// # Errors
    /// The server has no scheduler.
    pub fn scheduling_stats(&self) -> Result<SchedulingStats, String> {
        let mut all = self.engines()?.iter().map(|engine| engine.scheduling_stats());
        let mut sum = all.next().unwrap_or_default();
        for other in all {
            sum.outstanding += other.outstanding;
            sum.classes.extend(other.classes);
            sum.heads.extend(other.heads);
        }
        Ok(sum)
    }

    /// All classes.
    ///
    /// # Errors
    /// The server has no scheduler.
    pub fn classes(&self) -> Result<Vec<ClassSpec>, String> {
        Ok(self.engines()?.iter().flat_map(|engine| engine.classes()).collect())
    }

    /// Adds or changes a class.
    ///
    /// # Errors
    /// As [`scheduled::Engine::set_class`], or the server has no scheduler.
    pub fn set_class(&self, class: ClassSpec) -> Result<(), String> {
        match self.engines()? {
            [engine] => engine.set_class(class),
            engines => of_class(engines, &class.name)?.set_class(class),
        }
    }

    /// Removes a class.
    ///
    /// # Errors
    /// As [`scheduled::Engine::remove_class`], or the server has no scheduler.
    pub fn remove_class(&self, name: &str) -> Result<(), String> {
        match self.engines()? {
            [engine] => engine.remove_class(name),
            engines => of_class(engines, name)?.remove_class(name),
        }
    }

    /// Replaces the scheduler.
    ///
    /// # Errors
    /// As [`scheduled::Engine::set_policy`], or the server has no scheduler.
    pub fn set_policy(&self, policy: &str) -> Result<(), String> {
        self.engines()?.iter().try_for_each(|engine| engine.set_policy(policy))
    }

    /// Replaces scheduler, classes and queue depth in one step.
    ///
    /// # Errors
    /// As [`scheduled::Engine::arrange`], or the server has no scheduler, or is partitioned.
    pub fn arrange(&self, wanted: &Arrangement) -> Result<(), String> {
        self.alone()?.arrange(wanted)
    }

    /// Active scheduler, classes and queue depth.
    ///
    /// # Errors
    /// The server has no scheduler, or is partitioned.
    pub fn arrangement(&self) -> Result<Arrangement, String> {
        Ok(self.alone()?.arrangement())
    }

    /// Sets time 0 of models and schedulers.
    ///
    /// # Errors
    /// As [`scheduled::Engine::begin_at`], or the server has no scheduler.
    pub fn begin_at(&self, at_ns: u64) -> Result<(), String> {
        self.engines()?.iter().try_for_each(|engine| engine.begin_at(at_ns))
    }

    /// Ends the threads.
    pub fn stop(&self) {
        match self {
            Engines::Unscheduled(engine) => engine.stop(),
            Engines::Scheduled { engines, .. } => engines.iter().for_each(|engine| engine.stop()),
        }
    }

    fn engines(&self) -> Result<&[Arc<scheduled::Engine>], String> {
        match self {
            Engines::Unscheduled(_) => Err(
                "this server has no scheduler. Start it with --policy, or write `live:` in its specification"
                    .to_owned(),
            ),
            Engines::Scheduled { engines, .. } => Ok(engines),
        }
    }
}

impl Engines {
    /// The one engine of an integrated server.
    fn alone(&self) -> Result<&scheduled::Engine, String> {
        match self.engines()? {
            [engine] => Ok(&**engine),
            _ => {
                Err("a partitioned server has a scheduler for each device. Change them one by one".to_owned())
            }
        }
    }
}

fn of_class<'a>(engines: &'a [Arc<scheduled::Engine>], name: &str) -> Result<&'a scheduled::Engine, String> {
    let has = |engine: &&Arc<scheduled::Engine>| engine.classes().iter().any(|class| class.name == name);
    let found = engines.iter().find(has);
    found.map(|engine| &**engine).ok_or_else(|| {
        format!("the server has no class `{name}`. The classes of a partitioned server are fixed, since each has a device")
    })
}

fn plain(spec: &ServeSpec) -> Result<Engine, Error> {
    let size = spec.size_bytes();
    let backing = match spec.backing_file() {
        None => Backing::memory(size)
            .map_err(Error::system(format!("reserve {} MiB of memory", spec.size_mib)))?,
        Some(path) => Backing::file(&path, size).map_err(Error::path("make the backing file", &path))?,
    };
    let instant = spec.load_profile(&spec.name)?.is_instant();
    let spec = spec.clone();
    // The specification was checked: the model can be made. Without a model it would serve without delay.
    let model = move || if instant { None } else { spec.build(&spec.name).ok() };
    Ok(Engine::new(backing, size, Box::new(model)))
}
