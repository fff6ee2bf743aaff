//! A private database server: made, started and stopped as its description says (`sites/databases/*.yml`).

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::Error;
use crate::database::Address;

const PATIENCE: Duration = Duration::from_secs(60);

/// How a server is made and started. Texts hold `{{ NAME }}` for what an instance decides.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// What it is.
    pub description: String,
    /// Debian's packages.
    pub packages: Vec<String>,
    /// Folders in which its programs are, besides those of PATH.
    pub folders: Vec<PathBuf>,
    /// Users as whom it may run, the first that exists; not root.
    pub users: Vec<String>,
    /// Values of what an instance does not decide.
    pub defaults: BTreeMap<String, String>,
    /// Files that are written before a command is run: their paths, their content.
    pub files: BTreeMap<String, String>,
    /// The command that makes an empty data directory.
    pub initialise: Vec<String>,
    /// The command that serves, in the foreground.
    pub start: Vec<String>,
    /// The signal after which it rolls back, writes out and ends.
    pub stop_signal: i32,
    /// Address of a database of it.
    pub address: String,
    /// A database that is always there, to create others from.
    pub first_database: String,
    /// Statements that create a database.
    pub create: Vec<String>,
}

impl Description {
    /// Reads a description.
    ///
    /// # Errors
    /// All that is wrong with the file.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let parsed = weir_specs::Document::read(path).and_then(|document| document.parse());
        parsed.map_err(|problems| Error::Input(problems.to_string()))
    }

    /// A program of it, if it is installed.
    pub fn program(&self, name: &str) -> Option<PathBuf> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = self.folders.iter().cloned().chain(std::env::split_paths(&path));
        folders.map(|folder| folder.join(name)).find(|program| program.is_file())
    }

    /// The user as whom it runs: id and group.
    pub fn user(&self) -> Option<(u32, u32)> {
        let known = std::fs::read_to_string("/etc/passwd").ok()?;
        self.users.iter().find_map(|user| {
            let line = known.lines().find(|line| line.split(':').next() == Some(user))?;
            let mut fields = line.split(':').skip(2);
            Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
        })
    }

    /// Why it cannot be started here; nothing if it can.
    pub fn obstacle(&self) -> Option<String> {
        for command in [&self.initialise, &self.start] {
            let name = command.first().map_or("", String::as_str);
            if self.program(name).is_none() {
                return Some(format!(
                    "{name} is not installed (apt-get install {})",
                    self.packages.join(" ")
                ));
            }
        }
        // SAFETY: geteuid has no preconditions.
        let uid = unsafe { libc::geteuid() };
        match self.user() {
            _ if uid != 0 => Some("only root can start a server as another user".into()),
            None => Some(format!("none of the users {} exists", self.users.join(", "))),
            Some(_) => None,
        }
    }
}

/// A private server with a folder of its own.
pub struct Instance {
    description: Description,
    values: BTreeMap<String, String>,
    folder: PathBuf,
    child: Option<Child>,
}

impl Instance {
    /// Makes a server's data in an empty folder, which will belong to the server's user. `values` are what the instance
    /// decides, besides `data` and `run`.
    ///
    /// # Errors
    /// A program is missing, or it fails; then its output is in the error.
    pub fn create(description: Description, folder: &Path, values: &[(&str, String)]) -> Result<Self, Error> {
        let mut all = description.defaults.clone();
        let owner = std::env::var("USER").unwrap_or_else(|_| "root".to_owned());
        all.insert("owner".into(), owner);
        for (name, path) in [("data", folder.join("data")), ("run", folder.join("run"))] {
            all.insert(name.into(), path.display().to_string());
        }
        all.extend(values.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        let this = Instance { description, values: all, folder: folder.to_owned(), child: None };
        let (uid, gid) = this.description.user().unwrap_or((0, 0));
        for name in ["data", "run"] {
            let path = folder.join(name);
            std::fs::create_dir_all(&path).map_err(this.io())?;
            chown(&path, Some(uid), Some(gid)).map_err(this.io())?;
            let mode = if name == "data" { 0o700 } else { 0o755 };
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).map_err(this.io())?;
        }
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).map_err(this.io())?;
        this.write_files("run")?;
        let mut command = this.command(&this.description.initialise)?;
        let output = command.output().map_err(this.io())?;
        if !output.status.success() {
            let said = [output.stdout, output.stderr].concat();
            return Err(Error::Input(format!(
                "{} ended with {}: {}",
                command.get_program().display(),
                output.status,
                String::from_utf8_lossy(&said).trim()
            )));
        }
        this.write_files("data")?;
        Ok(this)
    }

    fn io(&self) -> impl Fn(std::io::Error) -> Error + use<> {
        let path = self.folder.display().to_string();
        move |source| Error::Io { path: path.clone(), source }
    }

    fn fill(&self, text: &str) -> String {
        let fill = |text: String, (name, value): (&String, &String)| {
            text.replace(&format!("{{{{ {name} }}}}"), value)
        };
        self.values.iter().fold(text.to_owned(), fill)
    }

    /// Writes the files that lie in the data directory, or those that do not.
    fn write_files(&self, within: &str) -> Result<(), Error> {
        for (path, text) in self.description.files.iter().filter(|(path, _)| path.contains(within)) {
            let path = self.fill(path);
            std::fs::write(&path, self.fill(text)).map_err(self.io())?;
            let (uid, gid) = self.description.user().unwrap_or((0, 0));
            chown(&path, Some(uid), Some(gid)).map_err(self.io())?;
        }
        Ok(())
    }

    fn command(&self, words: &[String]) -> Result<Command, Error> {
        let (name, arguments) = words.split_first().ok_or_else(|| Error::Input("an empty command".into()))?;
        let program = self.description.program(name);
        let program = program.ok_or_else(|| Error::Input(format!("{name} is not installed")))?;
        let mut command = Command::new(program);
        command.args(arguments.iter().map(|argument| self.fill(argument))).current_dir(&self.folder);
        command.stdin(Stdio::null()).env("LC_ALL", "C.UTF-8");
        if let Some((uid, gid)) = self.description.user() {
            command.uid(uid).gid(gid);
        }
        Ok(command)
    }

    /// The file that the server writes its messages to.
    pub fn log(&self) -> PathBuf {
        self.folder.join("server.log")
    }

    /// Starts the server and waits until it answers.
    ///
    /// # Errors
    /// It ends, or does not answer within a minute; then the end of its log is in the error.
    pub fn start(&mut self) -> Result<(), Error> {
        let log =
            std::fs::OpenOptions::new().create(true).append(true).open(self.log()).map_err(self.io())?;
        let both = log.try_clone().map_err(self.io())?;
        let mut command = self.command(&self.description.start)?;
        let mut child = command.stdout(log).stderr(both).spawn().map_err(self.io())?;
        let until = Instant::now() + PATIENCE;
        let address = self.address(&self.description.first_database)?;
        loop {
            match address.connect() {
                Ok(_) => break,
                Err(error) if !error.is_gone() || Instant::now() > until => {
                    let _ = (child.kill(), child.wait());
                    return Err(Error::Input(format!("{error}; the server said: {}", self.log_end())));
                }
                Err(_) => {}
            }
            if let Some(status) = child.try_wait().map_err(self.io())? {
                return Err(Error::Input(format!("the server ended with {status}: {}", self.log_end())));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        self.child = Some(child);
        Ok(())
    }

    fn log_end(&self) -> String {
        let text = std::fs::read_to_string(self.log()).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(8)..].join(" | ")
    }

    /// The address of a database of this server.
    ///
    /// # Errors
    /// The description gives none.
    pub fn address(&self, database: &str) -> Result<Address, Error> {
        Ok(self.fill(&self.description.address).replace("{{ database }}", database).parse()?)
    }

    /// Creates a database.
    ///
    /// # Errors
    /// The server refuses, for instance because it is there.
    pub fn create_database(&self, database: &str) -> Result<Address, Error> {
        let mut connection = self.address(&self.description.first_database)?.connect()?;
        for statement in &self.description.create {
            connection.batch(&statement.replace("{{ database }}", database))?;
        }
        self.address(database)
    }

    /// Ends the server at once, as a crash would: its children see that it is gone and end, too.
    ///
    /// # Errors
    /// It is not running.
    pub fn kill(&mut self) -> Result<(), Error> {
        let mut child = self.child.take().ok_or_else(|| Error::Input("the server is not running".into()))?;
        child.kill().and_then(|()| child.wait()).map_err(self.io())?;
        Ok(())
    }

    /// Ends the server in order.
    ///
    /// # Errors
    /// It did not end well.
    pub fn stop(&mut self) -> Result<(), Error> {
        let Some(mut child) = self.child.take() else { return Ok(()) };
        // SAFETY: the process is our child and has not been waited for, so that the id is still its own.
        unsafe { libc::kill(child.id() as libc::pid_t, self.description.stop_signal) };
        let until = Instant::now() + PATIENCE;
        loop {
            match child.try_wait().map_err(self.io())? {
                Some(status) if status.success() || status.signal() == Some(self.description.stop_signal) => {
                    return Ok(());
                }
                Some(status) => return Err(Error::Input(format!("the server ended with {status}"))),
                None if Instant::now() > until => {
                    child.kill().and_then(|()| child.wait()).map_err(self.io())?;
                    return Err(Error::Input("the server did not end within a minute and was killed".into()));
                }
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}
