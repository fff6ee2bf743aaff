//! Control groups of a run's classes: made, set as the study says, read back, and compared with the requests of each class.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use weir_daemons::cgroup::Cpu;
use weir_daemons::{Disk, Group, IoVersion, io_controller, io_version};
use weir_records::{Op, Request};
use weir_study::{ControlGroup, Engine, Run};

use crate::Error;
use crate::cgroup::cost_model::{self, Cost};
use crate::cgroup::limits::Limits;
use crate::context::journal::{Change, Journal};
use crate::context::run_context::RunContext;
use crate::device::block_device::BlockDevice;

/// The control groups of a run; empty if classes have none.
#[derive(Default)]
pub(crate) struct ClassGroups {
    classes: Vec<OfClass>,
    costs: Vec<Cost>,
}

/// A group of a class, or of one of its clients.
struct OfClass {
    name: String,
    client: Option<u32>,
    device: String,
    group: Group,
    wanted: ControlGroup,
    /// Disk of the class, and the bytes that the group had read and written before the run's requests.
    disk: Option<(Disk, (u64, u64))>,
}

impl fmt::Display for OfClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.client {
            None => write!(f, "class {}", self.name),
            Some(client) => write!(f, "client {client} of class {}", self.name),
        }
    }
}

/// `controllers.classes` of `observed.json`.
#[derive(Debug, Serialize)]
struct ClassReport {
    group: String,
    set: String,
    read_back: Option<String>,
    /// Bytes read during the requests, by the kernel's count; absent where it does not count.
    read_bytes: Option<u64>,
    written_bytes: Option<u64>,
    /// CPU time of the group's processes.
    cpu: Option<Cpu>,
}

/// `controllers` of `observed.json`.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// Version of control groups that has the I/O controller.
    version: u8,
    /// Whether the controller was moved there for this study.
    moved: bool,
    /// By class; where each client has a group, also by `CLASS client N`.
    classes: BTreeMap<String, ClassReport>,
    /// Cost models, by the disk's kernel name.
    cost: BTreeMap<String, cost_model::Report>,
}

/// Beginnings of the names of groups of classes and of clients.
const OF_CLASS: &str = "class-";
const OF_CLIENT: &str = "client-";

/// Whether a group has the load generator of a class, or of a client.
pub(crate) fn is_of_load(group: &Group) -> bool {
    let name = group.to_string();
    let last = name.rsplit('/').next().unwrap_or_default();
    last.starts_with(OF_CLASS) || last.starts_with(OF_CLIENT)
}

/// Whether a run has control groups.
pub(crate) fn has_any(run: &Run) -> bool {
    run.classes.iter().any(|class| class.cgroup.is_some() || class.cgroup_per_client)
}

/// Moves the kernel's I/O controller to version 2 of control groups, if the run uses it and the user allows it.
///
/// # Errors
/// The controller cannot be moved: this host cannot carry out the run.
pub(crate) fn move_controller(context: &RunContext<'_>, journal: &mut Journal) -> Result<(), Error> {
    let RunContext { run, options, .. } = *context;
    if !options.move_io_controller || !has_any(run) || io_version() != Some(IoVersion::One) {
        return Ok(());
    }
    journal.note(Change::IoController(options.state.clone()))?;
    io_controller::move_to_two(&options.state).map(|_| ()).map_err(|error| {
        Error::Unavailable(format!("the I/O controller cannot be moved to control groups version 2: {error}"))
    })
}

impl ClassGroups {
    /// Makes a group for each class that needs one, and checks that this kernel has the controllers.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if a controller is missing; [`Error::Failed`] if a group cannot be made.
    pub(crate) fn make(run: &Run, limits: &Limits, journal: &mut Journal) -> Result<Self, Error> {
        let mut made = ClassGroups::default();
        if !has_any(run) {
            return Ok(made);
        }
        for class in run.classes.iter().filter(|class| matches!(class.engine, Engine::Fio | Engine::Replay)) {
            let wanted = class.cgroup.unwrap_or_default();
            let of_class = |group, client, wanted| {
                let (name, device) = (class.name.clone(), class.device.clone());
                OfClass { name, client, device, group, wanted, disk: None }
            };
            let whole = limits.group(&format!("{OF_CLASS}{}", class.name));
            let mut groups = if class.cgroup_per_client {
                // Siblings, so that weights of clients and of other classes are of one level.
                let of = |client| limits.group(&format!("{OF_CLIENT}{}-{client}", class.name));
                (0..class.clients).map(|client| of_class(of(client), Some(client), wanted)).collect()
            } else {
                vec![of_class(whole.clone(), None, wanted)]
            };
            if class.cgroup_per_client {
                // fio itself sends no requests, and its processes begin in its group.
                groups.push(of_class(whole, None, ControlGroup::default()));
            }
            journal.note_all(groups.iter().map(|of| Change::Group(of.group.clone())))?;
            groups.iter().try_for_each(|of| of.group.make()).map_err(Error::failed)?;
            if let Some(why) = groups[0].group.lacks(&wanted) {
                return Err(Error::Unavailable(format!("class {}: {why}", class.name)));
            }
            made.classes.extend(groups);
        }
        if made.weighs() {
            cost_model::check().map_err(Error::Unavailable)?;
        }
        Ok(made)
    }

    /// Whether the run uses the I/O cost model.
    fn weighs(&self) -> bool {
        self.classes.iter().any(|class| class.wanted.weight.is_some())
    }

    /// Calibrates the cost model of the disks, if the run uses weights. Data on the disks are lost.
    ///
    /// # Errors
    /// A disk cannot be measured.
    pub(crate) fn calibrate(
        &mut self,
        context: &RunContext<'_>,
        devices: &mut [BlockDevice],
    ) -> Result<(), Error> {
        if self.weighs() {
            self.costs = cost_model::of(context, devices)?;
        }
        Ok(())
    }

    /// Sets groups and cost model as the study says, and reads them back.
    ///
    /// # Errors
    /// The kernel refuses, or reads back another value.
    pub(crate) fn set(&mut self, devices: &[BlockDevice], journal: &mut Journal) -> Result<(), Error> {
        for class in &mut self.classes {
            let device = devices.iter().find(|device| device.name == class.device);
            let Some(device) = device else { continue };
            let disk = Disk::of(&device.node).map_err(Error::failed)?;
            class.group.set_io(&[disk], &class.wanted).map_err(Error::failed)?;
            class.disk = Some((disk, (0, 0)));
        }
        self.costs.iter().try_for_each(|cost| cost.set(journal))
    }

    /// Reads the groups' counters; called just before the requests.
    pub(crate) fn begin(&mut self) {
        for class in &mut self.classes {
            if let Some((disk, before)) = &mut class.disk {
                *before = class.group.io_bytes(*disk).unwrap_or_default();
            }
        }
    }

    /// The group of a class; `None` if it has none.
    pub(crate) fn group(&self, class: &str) -> Option<&Group> {
        let is_of = |known: &&OfClass| known.name == class && known.client.is_none();
        self.classes.iter().find(is_of).map(|known| &known.group)
    }

    /// The groups of a class's clients, by client; empty if they have none of their own.
    pub(crate) fn of_clients(&self, class: &str) -> Vec<&Group> {
        let is_of = |known: &&OfClass| known.name == class && known.client.is_some();
        self.classes.iter().filter(is_of).map(|known| &known.group).collect()
    }

    /// Bytes that a class's group read and wrote since [`ClassGroups::begin`].
    fn moved(&self, class: &OfClass) -> Option<(u64, u64)> {
        let (disk, before) = class.disk?;
        // Version 1 counts only throttled disks (block/blk-throttle.h).
        let is_counted = io_version() == Some(IoVersion::Two)
            || self.classes.iter().any(|other| other.device == class.device && !other.wanted.max.is_none());
        let now = class.group.io_bytes(disk).filter(|_| is_counted)?;
        Some((now.0.saturating_sub(before.0), now.1.saturating_sub(before.1)))
    }

    /// Result for R-CONTROL: how groups differ from the study, or why a class's requests were not its group's; `None` without groups.
    pub(crate) fn judge(&self, asked: &Asked) -> Option<Result<String, String>> {
        if self.classes.is_empty() {
            return None;
        }
        let mut counted = 0;
        for class in &self.classes {
            let Some((disk, _)) = class.disk else { continue };
            let found = class.group.io(disk, &class.wanted);
            if found != class.wanted {
                return Some(Err(format!(
                    "wrong setting of the control group of {class} (found `{found}`, expected `{}`)",
                    class.wanted
                )));
            }
            let (reads, writes) = self.asked_of(class, asked);
            let Some((read, written)) = self.moved(class) else { continue };
            counted += 1;
            for (asked, by_group, what) in [(reads, read, "read"), (writes, written, "wrote")] {
                if (by_group as f64) < asked as f64 * LEAST_SHARE {
                    return Some(Err(format!(
                        "{class} {what} {asked} bytes, but its control group only {by_group}"
                    )));
                }
            }
        }
        if let Some(problem) = self.costs.iter().find_map(Cost::problem) {
            return Some(Err(problem));
        }
        let groups = self.classes.len();
        let how = if counted == groups {
            ", and the kernel counted each class's bytes in its own".to_owned()
        } else {
            format!("; this kernel counts bytes for {counted} of them")
        };
        Some(Ok(format!("{groups} control groups were as set, before and after{how}")))
    }

    /// Bytes that the processes of a group read and wrote, by the rows.
    fn asked_of(&self, class: &OfClass, asked: &Asked) -> (u64, u64) {
        if class.client.is_none() && !self.of_clients(&class.name).is_empty() {
            return (0, 0);
        }
        let clients = class.client.map_or(0..=u32::MAX, |client| client..=client);
        let name: Arc<str> = class.name.as_str().into();
        let of = |client| (Arc::clone(&name), client);
        asked
            .0
            .range(of(*clients.start())..=of(*clients.end()))
            .fold((0, 0), |sum, (_, bytes)| (sum.0 + bytes.0, sum.1 + bytes.1))
    }

    /// Report for `observed.json`; `None` without groups.
    pub(crate) fn report(&self, state: &Path) -> Option<Report> {
        if self.classes.is_empty() {
            return None;
        }
        let of = |class: &OfClass| {
            let moved = self.moved(class);
            let report = ClassReport {
                group: class.group.to_string(),
                set: class.wanted.to_string(),
                read_back: class.disk.map(|(disk, _)| class.group.io(disk, &class.wanted).to_string()),
                read_bytes: moved.map(|(read, _)| read),
                written_bytes: moved.map(|(_, written)| written),
                cpu: class.group.cpu(),
            };
            let name = &class.name;
            (class.client.map_or(name.clone(), |client| format!("{name} client {client}")), report)
        };
        Some(Report {
            version: if io_version() == Some(IoVersion::Two) { 2 } else { 1 },
            moved: io_controller::is_moved(state),
            classes: self.classes.iter().map(of).collect(),
            cost: self.costs.iter().map(|cost| (cost.kernel_name().to_owned(), cost.report())).collect(),
        })
    }
}

/// Bytes read and written by class and client, of the requests that succeeded.
#[derive(Default)]
pub(crate) struct Asked(BTreeMap<(Arc<str>, u32), (u64, u64)>);

impl Asked {
    /// Adds a request.
    pub(crate) fn add(&mut self, row: &Request) {
        if row.completed_ns.is_none() || row.status != 0 {
            return;
        }
        let bytes = self.0.entry((Arc::clone(&row.class), row.client)).or_default();
        match row.op {
            Op::Read => bytes.0 += row.size_bytes,
            Op::Write => bytes.1 += row.size_bytes,
            _ => {}
        }
    }
}

/// Tolerance between bytes of a class and of its group: the kernel rounds.
const LEAST_SHARE: f64 = 0.98;
