//! Starting a daemon by its description.

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

/// How a daemon is started.
#[derive(Debug, Clone)]
pub struct Start {
    /// Its name in the state folder: of one daemon there may be several.
    pub name: String,
    /// How long it lives.
    pub scope: Scope,
    /// Folder of this start, for configuration and sockets; made if it is not there.
    pub run: PathBuf,
    /// What it serves, if it serves files.
    pub root: Option<PathBuf>,
    /// Its data; made and prepared if the folder is not there, or empty.
    pub data: Option<PathBuf>,
    /// Where it listens: loopback, or an address of a test network.
    pub address: IpAddr,
    /// Its port.
    pub port: u16,
    /// The network namespace that it lives in; that of the caller if absent.
    pub namespace: Option<PathBuf>,
    /// Its control group.
    pub group: Group,
    /// Memory that it is told it has, in MiB; 0 if it is not told.
    pub memory_mib: u64,
    /// Settings that differ from the description's, as they were given: each is checked once more when it starts.
    pub set: BTreeMap<String, String>,
    /// Placeholders of its description (`defaults`) that stand for something else.
    pub own: Values,
    /// Where its words go.
    pub log: PathBuf,
    /// What it has beside or behind it.
    pub tier: Tier,
}

/// What a daemon of several has beside or behind it: nothing unless told otherwise.
#[derive(Debug, Clone, Default)]
pub struct Tier {
    /// The daemon that it passes on to what it is asked for.
    pub upstream: Option<SocketAddr>,
    /// What it serves from another folder than its root.
    pub hot: Option<Hot>,
}

/// Documents that lie in a folder of their own, at the paths that they have below the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hot {
    /// The folder.
    pub folder: PathBuf,
    /// What they are asked for by, such as `/documents/000017.dat`.
    pub uris: Vec<String>,
}

/// A daemon that runs.
#[derive(Debug, Clone, Serialize)]
pub struct Instance {
    /// Its description's name; results call it `service`.
    #[serde(rename = "service")]
    pub daemon: String,
    /// Its name in the state folder.
    pub name: String,
    /// The process.
    pub process: Identity,
    /// What it says of its version.
    pub version: String,
    /// Where it listens.
    pub address: SocketAddr,
    /// Its control group.
    pub group: Group,
}

/// Starts a daemon and waits until it answers.
///
/// # Errors
/// [`Error::Refused`] if it is not installed or told nonsense; [`Error::Failed`] if it does not come up: it is ended then.
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

/// Whether a daemon can be started so. Touches nothing.
///
/// # Errors
/// [`Error::Refused`] as of [`start`].
pub fn check_start(daemon: &Daemon, state: &Path, wanted: &Start) -> Result<(), Error> {
    plan(daemon, state, wanted).map(drop)
}

/// A daemon, before anything of it is made.
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
            "daemon {} would listen at {}: give it a loopback address, or a host of a test network",
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

/// Makes its folders and files, and prepares its data if there are none. What lies in a data folder that holds something is not
/// touched.
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

/// Ends a daemon by its name in the state folder; says how, or `None` if it had ended by itself or was never there.
///
/// # Errors
/// What is written down is damaged, or something cannot be ended.
pub fn stop(state: &Path, name: &str) -> Result<Option<process::Ended>, Error> {
    match process::find(state, name)? {
        Some(found) => process::stop(state, &found),
        None => Ok(None),
    }
}

/// Whether a daemon is installed; gives the user that it runs as, if it has one.
///
/// # Errors
/// [`Error::Refused`] if it is not, or its user is not there.
pub(crate) fn check_installed(daemon: &Daemon) -> Result<Option<User>, Error> {
    program(daemon)?;
    user(daemon)
}

/// What a daemon says of its version.
///
/// # Errors
/// It is not installed.
pub fn version(daemon: &Daemon) -> Result<String, Error> {
    version_of(daemon, &program(daemon)?)
}

fn version_of(daemon: &Daemon, program: &Path) -> Result<String, Error> {
    let output = Command::new(program).args(&daemon.version).output();
    let output = output.map_err(Error::io("cannot ask for the version of", program))?;
    // Some say it on standard error.
    let words = [output.stdout, output.stderr].concat();
    let words = String::from_utf8_lossy(&words).into_owned();
    let line = words.lines().map(str::trim).find(|line| !line.is_empty());
    Ok(line.unwrap_or("it said nothing").to_owned())
}

/// Where a program is looked for besides PATH: a login shell of an unprivileged user has no sbin.
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
            "daemon {} is not installed: install the package {}",
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
        let number = port.parse().map_err(|_| Error::Refused(format!("`{port}` is no port")))?;
        Ok::<_, Error>(SocketAddr::new(address, number))
    };
    Ok(match ready {
        Ready::Socket(path) => Question::Socket(one(path)?.into()),
        Ready::Command(words) => Question::Command(all(words)?),
        Ready::Tcp(port) => Question::Tcp(at(port)?),
        Ready::Http(port) => Question::Http(at(port)?),
    })
}

/// Others may pass through the state folder, to what is theirs; what is in it they cannot see.
fn passable(state: &Path) -> Result<(), Error> {
    fs::create_dir_all(state).map_err(Error::io("cannot make", state))?;
    let mode = fs::metadata(state).map_err(Error::io("cannot look at", state))?.permissions().mode();
    if mode & 0o001 == 0 {
        let passable = fs::Permissions::from_mode(mode | 0o011);
        fs::set_permissions(state, passable).map_err(Error::io("cannot open the way through", state))?;
    }
    Ok(())
}

fn make_folder(path: &Path, user: Option<&User>) -> Result<(), Error> {
    fs::create_dir_all(path).map_err(Error::io("cannot make", path))?;
    user.map_or(Ok(()), |user| user.own(path))
}

fn write_file(path: &Path, text: &str, user: Option<&User>) -> Result<(), Error> {
    let write = || {
        // The folder is the daemon's: a link that it has put there is not followed.
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

/// Carries out a command to its end; its words become the error.
fn carry_out(
    words: &[String],
    folder: &Path,
    user: Option<&User>,
    namespace: Option<&Path>,
) -> Result<(), Error> {
    let Some((program, arguments)) = words.split_first() else { return Ok(()) };
    let file = on_path(program).ok_or_else(|| Error::Refused(format!("{program}: not installed")))?;
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
