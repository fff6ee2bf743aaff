//! Descriptions of daemons: `testbeds/daemons/NAME.yml`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_specs::{Document, Setting};
use weir_testbeds::DAEMONS;

/// A daemon: its program, files and settings, how it starts in the foreground, when it is ready, and how it stops.
///
/// Every text may have placeholders: `{run}` (a folder of this start: configuration, sockets, temporary files), `{root}` (the
/// served files), `{upstream}` (address and port of the daemon that requests are passed to), `{data}` (data that outlive a
/// start), `{address}`, `{port}`, `{user}`, `{group}`, `{program_folder}`, `{memory_mib}`, and the names in `settings` and
/// `defaults`. The program text of a shell has no placeholder: the shell gets it as an argument.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Daemon {
    /// Its name.
    pub name: String,
    /// Description in one line.
    pub description: String,
    /// Debian packages that contain it.
    pub packages: Vec<String>,
    /// The program, by name or file: the first that exists is used.
    pub programs: Vec<String>,
    /// Unprivileged users to run as: the first that exists is used; none: root.
    #[serde(default)]
    pub users: Vec<String>,
    /// Arguments with which the program prints its version.
    pub version: Vec<String>,
    /// Settings by name, as placeholders. A study or a user may set these only.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, Setting>,
    /// Placeholders that only the harness sets, with their defaults.
    #[serde(default)]
    pub defaults: BTreeMap<String, String>,
    /// Folders to make.
    #[serde(default)]
    pub folders: Vec<String>,
    /// Files to write, by path.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Configuration that serves some documents from memory and the others from `{root}`; absent: not supported.
    #[serde(default)]
    pub hot: Option<HotDocuments>,
    /// Commands that fill an empty `{data}`.
    #[serde(default)]
    pub prepare: Vec<Vec<String>>,
    /// Arguments with which the program stays in the foreground.
    pub arguments: Vec<String>,
    /// Check that it is ready.
    pub ready: Ready,
    /// Time limit of the check, in seconds.
    #[serde(default = "half_a_minute")]
    pub ready_limit_s: u64,
    /// How it is stopped.
    pub stop: Stop,
}

/// How a server of files serves some of them from another folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HotDocuments {
    /// Placeholders where all documents lie in `{root}`.
    pub without: BTreeMap<String, String>,
    /// The same placeholders where some documents lie in `{hot}`; `{each}` is replaced by a text for each of them.
    pub with: BTreeMap<String, String>,
    /// Text of one document; `{uri}` is the document's URI.
    pub each: String,
}

fn half_a_minute() -> u64 {
    30
}

/// Readiness check of a daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Ready {
    /// Something accepts connections at `{address}` and this port.
    Tcp(String),
    /// A web server answers at `{address}` and this port, with any status.
    Http(String),
    /// Something accepts connections at this socket.
    Socket(String),
    /// This command succeeds; its first word is a program in the daemon's folder, or one of the host.
    Command(Vec<String>),
}

/// How a daemon is stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stop {
    /// The signal.
    pub signal: Signal,
    /// Time before it is killed, in seconds.
    pub limit_s: u64,
}

/// A signal that ends a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Signal {
    /// SIGTERM.
    Term,
    /// SIGINT.
    Int,
    /// SIGQUIT.
    Quit,
    /// SIGWINCH, with which Apache ends gracefully.
    Winch,
}

impl Signal {
    /// Its number.
    pub fn number(self) -> i32 {
        match self {
            Signal::Term => libc::SIGTERM,
            Signal::Int => libc::SIGINT,
            Signal::Quit => libc::SIGQUIT,
            Signal::Winch => libc::SIGWINCH,
        }
    }
}

impl Daemon {
    /// Names of all daemons.
    pub fn names() -> impl Iterator<Item = &'static str> {
        DAEMONS.names()
    }

    /// Whether it passes requests to another daemon, `{upstream}`.
    pub fn passes_on(&self) -> bool {
        self.files.values().any(|text| text.contains("{upstream}"))
    }

    /// A daemon by name; `None` if there is none of that name.
    pub fn load(name: &str) -> Option<Self> {
        Document::from_text(name.as_ref(), DAEMONS.text(name)?).ok()?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use weir_specs::template::placeholders;

    use super::*;

    /// Common placeholders of every start.
    const OF_EVERY_START: [&str; 12] = [
        "run",
        "root",
        "upstream",
        "data",
        "address",
        "port",
        "user",
        "group",
        "program_folder",
        "memory_mib",
        "hot",
        "uri",
    ];

    fn all() -> impl Iterator<Item = Daemon> {
        Daemon::names().filter_map(Daemon::load)
    }

    /// Every command of a daemon.
    fn commands(daemon: &Daemon) -> Vec<&Vec<String>> {
        let ready = match &daemon.ready {
            Ready::Command(words) => Some(words),
            _ => None,
        };
        daemon.prepare.iter().chain([&daemon.arguments]).chain(ready).collect()
    }

    #[test]
    fn no_setting_bears_the_name_of_a_placeholder_of_the_harness() {
        for daemon in all() {
            for name in daemon.settings.keys() {
                assert!(!OF_EVERY_START.contains(&name.as_str()), "{}: {name}", daemon.name);
                assert!(!daemon.defaults.contains_key(name), "{}: {name}", daemon.name);
            }
        }
    }

    #[test]
    fn every_setting_has_a_default_that_it_takes_and_is_used() {
        for daemon in all() {
            let texts: Vec<&String> =
                daemon.files.values().chain(commands(&daemon).into_iter().flatten()).collect();
            for (name, setting) in &daemon.settings {
                let place = format!("{}.{name}", daemon.name);
                assert!(!setting.about.is_empty(), "{place}");
                assert!(texts.iter().any(|text| placeholders(text).any(|used| used == name)), "{place}");
                if let Some(default) = &setting.default {
                    assert_eq!(setting.kind.problem(default), None, "{place}");
                    assert!(setting.kind.value(default).is_ok(), "{place}");
                }
            }
        }
    }

    #[test]
    fn no_placeholder_stands_in_the_program_text_of_a_shell() {
        for daemon in all() {
            for words in commands(&daemon) {
                let is_shell = words.first().is_some_and(|program| program == "sh");
                let program = words.get(2).filter(|_| is_shell);
                let found = program.and_then(|text| placeholders(text).next());
                assert_eq!(found, None, "{}: give it to the shell as an argument", daemon.name);
            }
        }
    }

    #[test]
    fn every_daemon_parses_and_bears_its_name() {
        for name in Daemon::names() {
            let text = DAEMONS.text(name).unwrap();
            let found: Result<Daemon, _> =
                Document::from_text(name.as_ref(), text).and_then(|doc| doc.parse());
            match found {
                Ok(daemon) => assert_eq!(daemon.name, name),
                Err(problems) => panic!("{name}: {problems:?}"),
            }
        }
    }
}
