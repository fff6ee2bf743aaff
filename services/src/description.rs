//! What a service is: `specs/NAME.yml`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_specs::Document;

/// Registry: the name and the text of each.
const ALL: [(&str, &str); 13] = [
    ("nginx", include_str!("../specs/nginx.yml")),
    ("nginx-proxy", include_str!("../specs/nginx-proxy.yml")),
    ("apache", include_str!("../specs/apache.yml")),
    ("postgresql", include_str!("../specs/postgresql.yml")),
    ("mariadb", include_str!("../specs/mariadb.yml")),
    ("moosefs-master", include_str!("../specs/moosefs-master.yml")),
    ("moosefs-chunkserver", include_str!("../specs/moosefs-chunkserver.yml")),
    ("glusterfs-brick", include_str!("../specs/glusterfs-brick.yml")),
    ("ceph-mon", include_str!("../specs/ceph-mon.yml")),
    ("ceph-mgr", include_str!("../specs/ceph-mgr.yml")),
    ("ceph-osd", include_str!("../specs/ceph-osd.yml")),
    ("ceph-mds", include_str!("../specs/ceph-mds.yml")),
    ("guest", include_str!("../specs/guest.yml")),
];

/// A server, and how it is prepared, started in the foreground, known to be ready, and ended.
///
/// Every text may have placeholders: `{run}` (a folder of this start: configuration, sockets, temporary files), `{root}` (what
/// is served), `{upstream}` (address and port of the service that it passes on to), `{data}` (what outlives a start), `{address}`, `{port}`, `{user}`, `{program_folder}`, `{memory_mib}`, and
/// those that `defaults` names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// Its name.
    pub name: String,
    /// What it is, in a line.
    pub description: String,
    /// Debian packages that bring it.
    pub packages: Vec<String>,
    /// The program, by name or file: the first that is there is taken.
    pub programs: Vec<String>,
    /// Unprivileged users to run as: the first that is there is taken; none: root.
    #[serde(default)]
    pub users: Vec<String>,
    /// Arguments with which the program says its version.
    pub version: Vec<String>,
    /// Placeholders of its own, with what they stand for unless told otherwise.
    #[serde(default)]
    pub defaults: BTreeMap<String, String>,
    /// Folders to make.
    #[serde(default)]
    pub folders: Vec<String>,
    /// Files to write, by path.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// How it serves some documents from memory and the others from `{root}`; absent: it cannot.
    #[serde(default)]
    pub hot: Option<HotDocuments>,
    /// Commands that fill `{data}` where it is empty.
    #[serde(default)]
    pub prepare: Vec<Vec<String>>,
    /// Arguments with which the program stays in the foreground.
    pub arguments: Vec<String>,
    /// How to know that it is ready.
    pub ready: Ready,
    /// How long that may take, in seconds.
    #[serde(default = "half_a_minute")]
    pub ready_limit_s: u64,
    /// How it is asked to end.
    pub stop: Stop,
}

/// How a server of files serves some of them from another folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HotDocuments {
    /// Placeholders where all documents lie in `{root}`.
    pub without: BTreeMap<String, String>,
    /// The same placeholders where some lie in `{hot}`; `{each}` stands for a text for each of these.
    pub with: BTreeMap<String, String>,
    /// That text; `{uri}` is what the document is asked for by.
    pub each: String,
}

fn half_a_minute() -> u64 {
    30
}

/// How to know that a service is ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Ready {
    /// Something accepts connections at `{address}` and this port.
    Tcp(String),
    /// A web server answers at `{address}` and this port, whatever it says.
    Http(String),
    /// Something accepts connections at this socket.
    Socket(String),
    /// This command succeeds; the first word is a program beside the service's own, or one of the host's.
    Command(Vec<String>),
}

/// How a service is asked to end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stop {
    /// The signal.
    pub signal: Signal,
    /// How long it is then given, in seconds, before it is killed.
    pub limit_s: u64,
}

/// A signal that asks a process to end.
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

impl Service {
    /// Names of all services.
    pub fn names() -> impl Iterator<Item = &'static str> {
        ALL.iter().map(|(name, _)| *name)
    }

    /// Whether it passes on what it is asked for to another service, `{upstream}`.
    pub fn passes_on(&self) -> bool {
        self.files.values().any(|text| text.contains("{upstream}"))
    }

    /// A service by name; `None` if there is none of that name.
    pub fn load(name: &str) -> Option<Self> {
        let (_, text) = ALL.iter().find(|(known, _)| *known == name)?;
        Document::from_text(name.as_ref(), text).ok()?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_service_parses_and_bears_its_name() {
        for (name, text) in ALL {
            let found: Result<Service, _> =
                Document::from_text(name.as_ref(), text).and_then(|doc| doc.parse());
            match found {
                Ok(service) => assert_eq!(service.name, name),
                Err(problems) => panic!("{name}: {problems:?}"),
            }
        }
    }
}
