//! Process that replays one open-loop class in its own control group.
//!
//! The I/O controller of control groups (version 2) distinguishes processes, not threads. The process is `weir replay`: it
//! opens and checks its requests, prints `ready`, reads the epoch, and sends from then on.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use weir_daemons::Group;
use weir_records::{Request, RequestSpool, TableReader, TableWriter};
use weir_replayer::{Fidelity, Options, PeakRate};
use weir_study::Run;

use crate::Error;
use crate::files::placement::Placement;
use crate::load::class_process::ClassProcess;
use crate::load::open_loop::Merged;

/// A class whose process is ready to send.
pub(crate) struct ReplayProcess {
    program: ClassProcess,
    said: BufReader<ChildStdout>,
    class: String,
    planned: PathBuf,
    answered: PathBuf,
    words: PathBuf,
    preparation: Duration,
}

/// Starts the process of an open-loop class and waits until it is ready; `None` if the class has no requests.
///
/// # Errors
/// The requests cannot be written, or the process cannot be started or refuses them.
pub(crate) fn start(
    run: &Run,
    place: &Placement,
    group: &Group,
    folder: &Path,
) -> Result<Option<ReplayProcess>, Error> {
    let class = &place.class.name;
    fs::create_dir_all(folder).map_err(Error::io("cannot make", folder))?;
    let planned = folder.join("planned.parquet");
    let mut table = TableWriter::create(&planned, 0).map_err(Error::failed)?;
    let mut peak = PeakRate::default();
    for row in Merged::new(run, [place])? {
        peak.add(row.intended_ns);
        table.write(&row).map_err(Error::failed)?;
    }
    if table.close().map_err(Error::failed)? == 0 {
        return Ok(None);
    }
    let program = std::env::current_exe()
        .map_err(|error| Error::Failed(format!("cannot find the executable of weir: {error}")))?;
    let words = folder.join("words.txt");
    let answered = folder.join("answered.parquet");
    let mut command = Command::new(program);
    command
        .arg("replay")
        .arg(&planned)
        .args(["--target".as_ref(), place.path.as_os_str()])
        .args(["--target-name", &place.class.device])
        .args(["--out".as_ref(), answered.as_os_str()])
        .args(["--seed", &run.seed.to_string(), "--json", "--await-epoch", "--shared"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(File::create(&words).map_err(Error::io("cannot write", &words))?);
    if let Some(priority) = place.class.priority {
        command.args(["--priority", &format!("{class}={priority}")]);
    }
    if place.recipe.may_write() {
        command.arg("--allow-writes");
    }
    if run.settings.buffered {
        command.arg("--buffered");
    }
    let failed = |error: std::io::Error| Error::Failed(format!("replay of class {class}: {error}"));
    let mut program = ClassProcess::start(&mut command, Some(group), failed)?;
    let Some(said) = program.child.stdout.take() else {
        return Err(Error::Failed(format!("replay of class {class} has no output")));
    };
    let (said, class) = (BufReader::new(said), class.clone());
    // The process computes the same from the same requests.
    let preparation = Options { peak_per_s: Some(peak.per_s()), ..Options::default() }.preparation();
    let mut apart = ReplayProcess { program, said, class, planned, answered, words, preparation };
    let mut line = String::new();
    apart.said.read_line(&mut line).map_err(failed)?;
    if line.trim() != "ready" {
        return Err(apart.failure("did not begin"));
    }
    Ok(Some(apart))
}

impl ReplayProcess {
    /// How long before the epoch the process must be told of it, at least.
    pub(crate) fn preparation(&self) -> Duration {
        self.preparation
    }

    /// Sends the epoch to the process.
    ///
    /// # Errors
    /// The process has ended.
    pub(crate) fn begin(&mut self, epoch_monotonic_ns: i64) -> Result<(), Error> {
        let Some(mut told) = self.program.child.stdin.take() else {
            return Err(self.failure("has its epoch already"));
        };
        writeln!(told, "{epoch_monotonic_ns}").map_err(|_| self.failure("ended before its epoch"))
    }

    /// Waits for the process. Its requests go to `requests`, with times relative to the run's epoch.
    ///
    /// # Errors
    /// The process failed, or the run is interrupted.
    pub(crate) fn finish(
        mut self,
        stop: &AtomicBool,
        requests: &mut RequestSpool,
    ) -> Result<Fidelity, Error> {
        let status = self.program.wait(&format!("replay of class {}", self.class), stop)?;
        if !status.success() {
            return Err(self.failure("failed"));
        }
        let mut text = String::new();
        let read = self.said.read_to_string(&mut text);
        read.map_err(|error| Error::Failed(format!("replay of class {}: {error}", self.class)))?;
        let fidelity = serde_json::from_str(&text)
            .map_err(|error| Error::Failed(format!("replay of class {}: {error}", self.class)))?;
        for row in TableReader::<Request>::open(&self.answered).map_err(Error::failed)? {
            requests.push(row.map_err(Error::failed)?);
        }
        // The run's table holds these rows.
        let _ = fs::remove_file(&self.planned);
        let _ = fs::remove_file(&self.answered);
        Ok(fidelity)
    }

    fn failure(&self, how: &str) -> Error {
        let words = fs::read_to_string(&self.words).unwrap_or_default();
        Error::Failed(format!("replay of class {} {how}: {}", self.class, words.trim()))
    }
}
