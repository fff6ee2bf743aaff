//! Specification of a server with a scheduler (`live`), and its engines.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_simulator::StripedArray;
use weir_simulator::machine::Model;
use weir_simulator::profile::{Profile, ProfileError};

use super::classes::{self, ClassSpec, completed};
use super::direct::{Direct, open_target};
use super::engine::{Engine, Media, Setup};
use super::machine::{Machine, RealMachine};
use super::policy_text::PolicyText;
use crate::engine::backing::Backing;
use crate::error::Error;
use crate::spec::ServeSpec;

/// Assignment of a server's heads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// All heads are one striped array that all classes share.
    #[default]
    Integrated,
    /// Each class has its own device and heads.
    Partitioned,
}

/// A way to a server's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExportKind {
    /// A loop device over the file in FUSE: a block device on any kernel.
    Loop,
    /// The file in FUSE, without a block device: the requesting process is known.
    File,
    /// The Network Block Device protocol, on a Unix socket or a port of loopback.
    Nbd,
    /// A block device of the kernel's ublk driver (Linux 6.5), or one for each class of a partitioned server.
    Ublk,
}

/// A policy in front of a server's heads.
///
/// ```yaml
/// live:
///   policy: hds root_kb_s=20000
///   queue_depth: 4
///   exports: [loop, nbd]
///   classes:
///     - {name: video, wants: real_time, weight: 2, range_mib: [0, 1024], deadline_ms: 500}
///     - {name: text}
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SchedulingSpec {
    /// A policy of `weir list schedulers`, and its settings: `NAME key=value ...`.
    pub policy: String,
    /// The classes; requests that are of none are of one more, `other`.
    #[serde(default)]
    pub classes: Vec<ClassSpec>,
    /// Requests that each head has at the same time.
    #[serde(default = "one")]
    pub queue_depth: u32,
    /// Real devices or files, one for each head, that are served by direct I/O in place of models. The profile is the
    /// policies' model of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<PathBuf>,
    /// Assignment of heads: one device of all heads, or one device for each class.
    #[serde(default)]
    pub layout: Layout,
    /// The ways to the data.
    #[serde(default = "a_loop_device")]
    pub exports: Vec<ExportKind>,
    /// Address of NBD: `unix`, a socket beside the state file that only root and the server's user can use (default), or
    /// `tcp:127.0.0.1:PORT`, which every user of this host can use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nbd: Option<String>,
    /// The same as `nbd: tcp:127.0.0.1:PORT`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nbd_port: Option<u16>,
    /// Maximum simultaneous NBD clients, 1 to 256.
    #[serde(default = "some_clients", skip_serializing_if = "are_some_clients")]
    pub nbd_connections: u32,
}

fn one() -> u32 {
    1
}

/// Default of the maximum simultaneous NBD clients.
const NBD_CLIENTS: u32 = 16;
const MOST_NBD_CLIENTS: u32 = 256;

fn some_clients() -> u32 {
    NBD_CLIENTS
}

fn are_some_clients(clients: &u32) -> bool {
    *clients == NBD_CLIENTS
}

fn a_loop_device() -> Vec<ExportKind> {
    vec![ExportKind::Loop]
}

impl SchedulingSpec {
    /// A policy with defaults for all else.
    pub fn new(policy: &str) -> Self {
        SchedulingSpec {
            policy: policy.to_owned(),
            classes: Vec::new(),
            queue_depth: one(),
            targets: Vec::new(),
            layout: Layout::default(),
            exports: a_loop_device(),
            nbd: None,
            nbd_port: None,
            nbd_connections: NBD_CLIENTS,
        }
    }

    /// The port of loopback at which NBD listens; `None` for the Unix socket.
    ///
    /// # Errors
    /// Another address is set; the text has the remedy.
    pub(crate) fn nbd_address(&self) -> Result<Option<SocketAddr>, String> {
        let Some(text) = &self.nbd else {
            return Ok(self.nbd_port.map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port))));
        };
        if text == "unix" {
            return Ok(None);
        }
        let address: Option<SocketAddr> = text.strip_prefix("tcp:").and_then(|address| address.parse().ok());
        match address {
            Some(address) if address.ip().is_loopback() => Ok(Some(address)),
            Some(address) => Err(format!(
                "is `{text}`, and {} is not loopback: NBD has neither password nor encryption here, and any program that reaches it could \
                 read and write the device. Use `unix`, or `tcp:127.0.0.1:{}` with an ssh tunnel to it",
                address.ip(),
                address.port()
            )),
            None => Err(format!(
                "is `{text}`; it must be `unix` or `tcp:ADDRESS:PORT` with a loopback address in numbers, such as tcp:127.0.0.1:10809"
            )),
        }
    }

    /// Warning about a server with an NBD port; `None` without one.
    pub fn nbd_warning(&self, name: &str) -> Option<String> {
        let address =
            self.nbd_address().ok().flatten().filter(|_| self.exports.contains(&ExportKind::Nbd))?;
        Some(format!(
            "every user and program of this host can read and write `{name}` over NBD at {address}: TCP has no password here. The Unix \
             socket (`--nbd unix`, the default) is for root and the server's user alone"
        ))
    }

    fn check_nbd(&self) -> Result<(), (&'static str, String)> {
        let (has_nbd, nbd_connections) = (self.exports.contains(&ExportKind::Nbd), self.nbd_connections);
        for (field, is_given) in [
            ("nbd", self.nbd.is_some()),
            ("nbd_port", self.nbd_port.is_some()),
            ("nbd_connections", nbd_connections != NBD_CLIENTS),
        ] {
            if is_given && !has_nbd {
                return Err((field, "is given without nbd in `exports`. Add nbd (--export nbd)".to_owned()));
            }
        }
        if self.nbd.is_some() && self.nbd_port.is_some() {
            return Err(("nbd_port", "is given beside `nbd`. Keep one of them".to_owned()));
        }
        if !(1..=MOST_NBD_CLIENTS).contains(&nbd_connections) {
            return Err((
                "nbd_connections",
                format!("is {nbd_connections} (expected 1 to {MOST_NBD_CLIENTS})"),
            ));
        }
        self.nbd_address().map(drop).map_err(|message| ("nbd", message))
    }

    /// Checks it as a part of `spec`; `file` is the name in errors.
    ///
    /// # Errors
    /// [`Error::Spec`] or [`Error::Unable`].
    pub(crate) fn check(&self, spec: &ServeSpec, file: &str) -> Result<(), Error> {
        let bad = |field: &str, message: String| {
            Err(Error::Spec { file: file.to_owned(), message: format!("field `live.{field}` {message}") })
        };
        let is_partitioned = self.layout == Layout::Partitioned;
        let size_mib = (!is_partitioned).then_some(spec.size_mib);
        if let Err(problem) = classes::check(&self.classes, size_mib) {
            return bad(&format!("classes.{}", problem.field), problem.message);
        }
        if !(1..=128).contains(&self.queue_depth) {
            return bad("queue_depth", format!("is {} (expected 1 to 128)", self.queue_depth));
        }
        let built = PolicyText::parse(&self.policy).and_then(|text| {
            text.build(&completed(&self.classes), 1).map_err(|error| format!("is refused: {error}"))
        });
        if let Err(message) = built {
            return bad("policy", message);
        }
        match self.exports.as_slice() {
            [] => {
                return bad(
                    "exports",
                    "is empty (expected at least one of loop, file, ublk and nbd)".to_owned(),
                );
            }
            all if is_partitioned && !all.iter().all(|kind| kind.has_one_for_each_class()) => {
                return bad(
                    "exports",
                    "may be only nbd and ublk for a partitioned server. For loop devices, serve each class by its own server"
                        .to_owned(),
                );
            }
            all if all.contains(&ExportKind::Loop) && all.contains(&ExportKind::Ublk) => {
                return bad(
                    "exports",
                    "has both loop and ublk, which are two block devices with the same data. Keep one of them"
                        .to_owned(),
                );
            }
            _ => {}
        }
        if let Err((field, message)) = self.check_nbd() {
            return bad(field, message);
        }
        if is_partitioned && self.classes.is_empty() {
            return bad(
                "classes",
                "is empty. A partitioned server needs classes, one for each device".to_owned(),
            );
        }
        if !self.targets.is_empty() {
            if is_partitioned {
                return bad(
                    "targets",
                    "cannot be partitioned. Serve each class by its own server".to_owned(),
                );
            }
            if self.targets.len() != spec.heads as usize {
                let found = self.targets.len();
                return bad(
                    "targets",
                    format!("has {found}, and `heads` is {}. Both must be equal", spec.heads),
                );
            }
            let need_bytes = head_bytes(spec.heads, unit_bytes(spec), spec.size_bytes());
            for target in &self.targets {
                if let Err(message) = open_target(target, need_bytes) {
                    return bad("targets", format!("cannot be used: {message}"));
                }
            }
        }
        Ok(())
    }
}

impl ExportKind {
    /// Whether a partitioned server can have one for each of its classes.
    fn has_one_for_each_class(self) -> bool {
        matches!(self, ExportKind::Nbd | ExportKind::Ublk)
    }
}

fn unit_bytes(spec: &ServeSpec) -> u64 {
    u64::from(spec.stripe_unit_kib) * 1024
}

/// Minimum size of each head.
fn head_bytes(heads: u32, unit_bytes: u64, size_bytes: u64) -> u64 {
    match heads {
        0 | 1 => size_bytes,
        heads => StripedArray::device_bytes(size_bytes, u64::from(heads), unit_bytes),
    }
}

/// Export with a name: a device of a server, or a part of one.
#[derive(Clone)]
pub(crate) struct Export {
    /// Its name.
    pub name: String,
    /// Description.
    pub about: String,
    /// Engine of its device.
    pub engine: Arc<Engine>,
    /// First byte of the device that belongs to it.
    pub first_byte: u64,
    /// Its size in bytes.
    pub size_bytes: u64,
    /// Whether the device has moving parts.
    pub is_rotational: bool,
}

/// Makes the engines of a checked specification, and its exports: the whole and the range of each class of an integrated
/// server, or the device of each class of a partitioned one. The first export is the whole, or that of the first class.
///
/// # Errors
/// [`Error::Profile`], [`Error::Spec`], [`Error::System`].
pub(crate) fn build(
    spec: &ServeSpec,
    live: &SchedulingSpec,
) -> Result<(Vec<Arc<Engine>>, Vec<Export>), Error> {
    let profile = spec.load_profile(&spec.name)?;
    let is_rotational = spec.is_disk();
    if live.layout == Layout::Partitioned {
        let mut engines = Vec::new();
        let mut exports = Vec::new();
        for class in &live.classes {
            let size_bytes = class.size_mib.unwrap_or(spec.size_mib) << 20;
            let alone = class.alone();
            let backing = backing(spec, size_bytes, Some(&class.name))?;
            let disks = Disks { heads: class.heads, size_bytes, classes: vec![alone], media: backing };
            let engine = engine(spec, live, &profile, disks)?;
            engines.push(Arc::clone(&engine));
            let about = format!("{}, {} heads under {}", spec.profile, class.heads, live.policy);
            exports.push(Export {
                name: class.name.clone(),
                about,
                engine,
                first_byte: 0,
                size_bytes,
                is_rotational,
            });
        }
        return Ok((engines, exports));
    }
    let size_bytes = spec.size_bytes();
    let media = if live.targets.is_empty() {
        backing(spec, size_bytes, None)?
    } else {
        let need_bytes = head_bytes(spec.heads, unit_bytes(spec), size_bytes);
        let opened = Direct::open(&live.targets, need_bytes).map_err(|message| Error::Spec {
            file: spec.name.clone(),
            message: format!("field `live.targets` cannot be used: {message}"),
        })?;
        Media::Direct(Box::new(opened))
    };
    let disks = Disks { heads: spec.heads, size_bytes, classes: live.classes.clone(), media };
    let engine = engine(spec, live, &profile, disks)?;
    let about = format!("{}, {} heads under {}", spec.profile, spec.heads, live.policy);
    let whole = Export {
        name: spec.name.clone(),
        about,
        engine: Arc::clone(&engine),
        first_byte: 0,
        size_bytes,
        is_rotational,
    };
    let of_class = |class: &ClassSpec| {
        let [from, to] = class.range()?;
        Some(Export {
            name: class.name.clone(),
            about: format!("the part of {} for class {}", spec.name, class.name),
            engine: Arc::clone(&engine),
            first_byte: from,
            size_bytes: to - from,
            is_rotational,
        })
    };
    let exports = std::iter::once(whole).chain(live.classes.iter().filter_map(of_class)).collect();
    Ok((vec![engine], exports))
}

fn backing(spec: &ServeSpec, size_bytes: u64, class: Option<&str>) -> Result<Media, Error> {
    let backing = match spec.backing_file() {
        None => Backing::memory(size_bytes)
            .map_err(Error::system(format!("reserve {} MiB of memory", size_bytes >> 20)))?,
        Some(path) => {
            let path = match class {
                None => path,
                // One file for each class, in the same folder.
                Some(class) => {
                    let mut name = path.file_name().unwrap_or_default().to_owned();
                    name.push(format!(".{class}"));
                    path.with_file_name(name)
                }
            };
            Backing::file(&path, size_bytes).map_err(Error::path("make the backing file", &path))?
        }
    };
    Ok(Media::Modelled(Arc::new(backing)))
}

/// Disks behind one scheduler, the classes that share them, and where their data are.
struct Disks {
    heads: u32,
    size_bytes: u64,
    classes: Vec<ClassSpec>,
    media: Media,
}

fn engine(
    spec: &ServeSpec,
    live: &SchedulingSpec,
    profile: &Profile,
    disks: Disks,
) -> Result<Arc<Engine>, Error> {
    let Disks { heads, size_bytes, classes, media } = disks;
    let stripe_unit_bytes = unit_bytes(spec);
    let each_bytes = head_bytes(heads, stripe_unit_bytes, size_bytes);
    let model = {
        let profile = profile.clone();
        move |seed: u64| Model::new(&profile, each_bytes, seed)
    };
    let wrong = |error: ProfileError| Error::Profile { file: spec.name.clone(), error };
    for head in 0..u64::from(heads) {
        model(head).map_err(wrong)?;
    }
    let is_real = matches!(media, Media::Direct(_));
    let machine = move |model: Model| match is_real {
        true => Machine::Real(Box::new(RealMachine::new(each_bytes, model))),
        false => Machine::Model(Box::new(model)),
    };
    // Each was made before: none fails.
    let machines = move |seed: u64| -> Vec<Machine> {
        (0..u64::from(heads)).flat_map(|head| model(seed.wrapping_add(head))).map(machine).collect()
    };
    let setup = Setup {
        media,
        machines: Box::new(machines),
        is_instant: profile.is_instant() && !is_real,
        size_bytes,
        stripe_unit_bytes,
        queue_depth: live.queue_depth,
        policy: live.policy.clone(),
        classes,
    };
    let refused =
        |message| Error::Spec { file: spec.name.clone(), message: format!("field `live.policy` {message}") };
    Engine::new(setup).map(Arc::new).map_err(refused)
}
