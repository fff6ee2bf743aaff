//! Start and stop of a daemon by its description.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde::Serialize;
use weir_host::owned;
use weir_specs::template::{Filled, Values, fill};

use crate::Error;
use crate::cgroup::Group;
use crate::description::{Daemon, Ready};
use crate::process::{self, Identity, Launch, Scope};
use crate::ready::Question;
use crate::user::User;
use crate::values::values;

/// Parameters of a start.
#[derive(Debug, Clone)]
pub struct Start {
    /// Its name in the state folder; one description may run several times.
    pub name: String,
    /// Lifetime: a run or a study.
    pub scope: Scope,
    /// Folder of this start, for configuration and sockets; made if it is not there.
    pub run: PathBuf,
    /// Document root, if it serves files.
    pub root: Option<PathBuf>,
    /// Data folder; created and prepared if absent or empty.
    pub data: Option<PathBuf>,
    /// Listening address: loopback, or an address of a test network.
    pub address: IpAddr,
    /// Its port.
    pub port: u16,
    /// Network namespace; absent: the caller's.
    pub namespace: Option<PathBuf>,
    /// Its control group.
    pub group: Group,
    /// Value of `{memory_mib}`; 0 without a limit.
    pub memory_mib: u64,
    /// Settings that differ from the description's defaults, unchecked: the start checks them.
    pub set: BTreeMap<String, String>,
    /// Placeholders of its description (`defaults`) with other values.
    pub own: Values,
    /// Log file of standard output and standard error.
    pub log: PathBuf,
    /// Its place in a chain of daemons.
    pub tier: Tier,
}

/// Position of a daemon in a chain; by default there is no chain.
#[derive(Debug, Clone, Default)]
pub struct Tier {
    /// Address of the upstream daemon of a proxy.
    pub upstream: Option<SocketAddr>,
    /// Documents served from another folder than the root.
    pub hot: Option<Hot>,
}

/// Documents in another folder, at the same paths as below the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hot {
    /// The folder.
    pub folder: PathBuf,
    /// Their URIs, such as `/documents/000017.dat`.
    pub uris: Vec<String>,
}

/// A running daemon.
#[derive(Debug, Clone, Serialize)]
pub struct Instance {
    /// Its description's name; results call it `service`.
    #[serde(rename = "service")]
    pub daemon: String,
    /// Its name in the state folder.
    pub name: String,
    /// The process.
    pub process: Identity,
    /// Version, as the program prints it.
    pub version: String,
    /// Listening address.
    pub address: SocketAddr,
    /// Its control group.
    pub group: Group,
}

/// Starts a daemon and waits until it answers.
///
/// # Errors
/// [`Error::Refused`] if it is not installed or a setting is wrong; [`Error::Failed`] if it does not become ready: it is stopped then.
pub fn start(daemon: &Daemon, state: &Path, wanted: &Start) -> Result<Instance, Error> {
    let planned = plan(daemon, state, wanted)?;
    if planned.user.is_some() {
        passable(state)?;
    }
    lay_ready(&planned, wanted)?;
    let Planned { program, user, arguments, question, .. } = planned;
    let version = version_of(daemon, &program)?;
    let launch = Launch {
        name: wanted.name.clone(),
        scope: wanted.scope,
        program,
        arguments,
        folder: wanted.run.clone(),
        namespace: wanted.namespace.clone(),
        user,
        log: wanted.log.clone(),
        stop_signal: daemon.stop.signal.number(),
        stop_limit_ms: daemon.stop.limit_s * 1000,
        mounts: None,
        group: wanted.group.clone(),
    };
    let identity = process::start(state, &launch)?;
    let limit = Duration::from_secs(daemon.ready_limit_s);
    if let Err(error) = question.wait(identity, wanted.namespace.as_deref(), limit, &wanted.name, &wanted.log)
    {
        stop(state, &wanted.name)?;
        return Err(error);
    }
    Ok(Instance {
        daemon: daemon.name.clone(),
        name: wanted.name.clone(),
        process: identity,
        version,
        address: SocketAddr::new(wanted.address, wanted.port),
        group: wanted.group.clone(),
    })
}

/// Checks whether a daemon can be started. Touches nothing.
///
/// # Errors
/// [`Error::Refused`] as of [`start`].
pub fn check_start(daemon: &Daemon, state: &Path, wanted: &Start) -> Result<(), Error> {
    plan(daemon, state, wanted).map(drop)
}

/// A start, fully resolved, before anything is created.
struct Planned {
    program: PathBuf,
    user: Option<User>,
    arguments: Vec<String>,
    question: Question,
    prepare: Vec<Vec<String>>,
    folders: Vec<String>,
    /// Path and text of each.
    files: Vec<(String, String)>,
}

fn plan(daemon: &Daemon, state: &Path, wanted: &Start) -> Result<Planned, Error> {
    if !wanted.address.is_loopback() && wanted.namespace.is_none() {
        return Err(Error::Refused(format!(
            "daemon {} would listen at a public address (found {}). Give it a loopback address, or a host of a test network",
            wanted.name, wanted.address
        )));
    }
    let program = program(daemon)?;
    let user = user(daemon)?;
    let values = values(daemon, wanted, &program, user.as_ref())?;
    let filled = |text: &str| {
        let filled = fill(text, &values).map(Filled::into_string);
        filled.map_err(|error| Error::Refused(format!("daemon {}: {error}", daemon.name)))
    };
    let all = |texts: &[String]| texts.iter().map(|text| filled(text)).collect::<Result<Vec<_>, _>>();
    let files = daemon.files.iter().map(|(path, text)| Ok((filled(path)?, filled(text)?)));
    if let Some(user) = &user {
        let hot = wanted.tier.hot.as_ref().map(|hot| &hot.folder);
        let places = [Some(&wanted.run), wanted.root.as_ref(), wanted.data.as_ref(), hot];
        // The state folder itself is opened to it when it is started.
        let reaches = |place: &PathBuf| user.reaches(place, state);
        places.into_iter().flatten().try_for_each(reaches)?;
    }
    Ok(Planned {
        arguments: all(&daemon.arguments)?,
        question: question(&daemon.ready, wanted.address, &all)?,
        prepare: daemon.prepare.iter().map(|words| all(words)).collect::<Result<_, _>>()?,
        folders: all(&daemon.folders)?,
        files: files.collect::<Result<_, Error>>()?,
        program,
        user,
    })
}

/// Creates folders and files, and prepares the data folder if it is empty. Existing data are not touched.
fn lay_ready(planned: &Planned, wanted: &Start) -> Result<(), Error> {
    let user = planned.user.as_ref();
    make_folder(&wanted.run, user)?;
    for folder in &planned.folders {
        make_folder(Path::new(folder), user)?;
    }
    for (path, text) in &planned.files {
        write_file(Path::new(path), text, user)?;
    }
    let Some(data) = &wanted.data else { return Ok(()) };
    match owned::check_empty(data) {
        Err(error) if error.is_refusal() => return Ok(()),
        checked => checked?,
    }
    make_folder(data, user)?;
    let namespace = wanted.namespace.as_deref();
    planned.prepare.iter().try_for_each(|words| carry_out(words, &wanted.run, user, namespace))
}

/// Stops a daemon by its name in the state folder; `None` if it had exited or was never started.
///
/// # Errors
/// The record is damaged, or something cannot be ended.
pub fn stop(state: &Path, name: &str) -> Result<Option<process::Ended>, Error> {
    match process::find(state, name)? {
        Some(found) => process::stop(state, &found),
        None => Ok(None),
    }
}

/// Checks whether a daemon is installed; returns the user that it runs as, if it has one.
///
/// # Errors
/// [`Error::Refused`] if the program or its user is missing.
pub(crate) fn check_installed(daemon: &Daemon) -> Result<Option<User>, Error> {
    program(daemon)?;
    user(daemon)
}

/// The version that a daemon prints.
///
/// # Errors
/// It is not installed.
pub fn version(daemon: &Daemon) -> Result<String, Error> {
    version_of(daemon, &program(daemon)?)
}

fn version_of(daemon: &Daemon, program: &Path) -> Result<String, Error> {
    let output = Command::new(program).args(&daemon.version).output();
    let output = output.map_err(Error::io("cannot ask for the version of", program))?;
    // Some programs print the version on standard error.
    let words = [output.stdout, output.stderr].concat();
    let words = String::from_utf8_lossy(&words).into_owned();
    let line = words.lines().map(str::trim).find(|line| !line.is_empty());
    Ok(line.unwrap_or("no version printed").to_owned())
}

/// Folders searched besides PATH: the PATH of an unprivileged user has no sbin.
const PLACES: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| path.is_file());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).chain(PLACES.iter().map(PathBuf::from));
    places.map(|place| place.join(name)).find(|path| path.is_file())
}

fn program(daemon: &Daemon) -> Result<PathBuf, Error> {
    daemon.programs.iter().find_map(|name| on_path(name)).ok_or_else(|| {
        Error::Refused(format!(
            "daemon {} is not installed. Install the package {}",
            daemon.name,
            daemon.packages.join(", ")
        ))
    })
}

fn user(daemon: &Daemon) -> Result<Option<User>, Error> {
    let mut last = None;
    for name in &daemon.users {
        match User::find(name) {
            Ok(user) => return Ok(Some(user)),
            Err(error) => last = Some(error),
        }
    }
    last.map_or(Ok(None), Err)
}

fn question(
    ready: &Ready,
    address: IpAddr,
    all: &impl Fn(&[String]) -> Result<Vec<String>, Error>,
) -> Result<Question, Error> {
    let one = |text: &String| Ok::<_, Error>(all(std::slice::from_ref(text))?.concat());
    let at = |port: &String| {
        let port = one(port)?;
        let number = port
            .parse()
            .map_err(|_| Error::Refused(format!("`{port}` is not a port (expected 1 to 65535)")))?;
        Ok::<_, Error>(SocketAddr::new(address, number))
    };
    Ok(match ready {
        Ready::Socket(path) => Question::Socket(one(path)?.into()),
        Ready::Command(words) => Question::Command(all(words)?),
        Ready::Tcp(port) => Question::Tcp(at(port)?),
        Ready::Http(port) => Question::Http(at(port)?),
    })
}

/// Lets other users traverse the state folder to their own files, without reading it.
fn passable(state: &Path) -> Result<(), Error> {
    fs::create_dir_all(state).map_err(Error::io("cannot make", state))?;
    let mode = fs::metadata(state).map_err(Error::io("cannot look at", state))?.permissions().mode();
    if mode & 0o001 == 0 {
        let passable = fs::Permissions::from_mode(mode | 0o011);
        fs::set_permissions(state, passable).map_err(Error::io("cannot set the mode of", state))?;
    }
    Ok(())
}

fn make_folder(path: &Path, user: Option<&User>) -> Result<(), Error> {
    fs::create_dir_all(path).map_err(Error::io("cannot make", path))?;
    user.map_or(Ok(()), |user| user.own(path))
}

fn write_file(path: &Path, text: &str, user: Option<&User>) -> Result<(), Error> {
    let write = || {
        // The daemon owns the folder and could place a link there: do not follow it.
        let mut options = File::options();
        options.write(true).create(true).truncate(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
        let mut file = options.open(path)?;
        if let Some(user) = user {
            std::os::unix::fs::fchown(&file, Some(user.uid), Some(user.gid))?;
        }
        file.write_all(text.as_bytes())
    };
    write().map_err(Error::io("cannot write", path))
}

/// Runs a command to its end; its output becomes the error message.
fn carry_out(
    words: &[String],
    folder: &Path,
    user: Option<&User>,
    namespace: Option<&Path>,
) -> Result<(), Error> {
    let Some((program, arguments)) = words.split_first() else { return Ok(()) };
    let file = on_path(program).ok_or_else(|| Error::Refused(format!("{program} is not installed")))?;
    let mut command = Command::new(file);
    command.args(arguments).current_dir(folder).stdin(std::process::Stdio::null());
    if let Some(user) = user {
        command.uid(user.uid).gid(user.gid).env("HOME", folder);
    }
    let output = match namespace {
        Some(namespace) => weir_network::within(namespace, || command.output())?,
        None => command.output(),
    };
    let output = output.map_err(|error| Error::Failed(format!("{program}: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let words = [output.stdout, output.stderr].concat();
    let words = String::from_utf8_lossy(&words).into_owned();
    let last: Vec<&str> = words.lines().rev().take(3).collect();
    Err(Error::Failed(format!("{program} failed ({}): {}", output.status, last.join(" / "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_by_name_and_by_file() {
        assert!(on_path("sh").is_some() && on_path("/bin/sh").is_some());
        assert!(on_path("no-such-program").is_none() && on_path("/no/such").is_none());
    }
}
