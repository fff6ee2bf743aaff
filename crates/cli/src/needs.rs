//! Needs of a host for runs on devices: commands, parts of the kernel, memory, disks.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::Serialize;
use weir_runner::{Device, Testbed};
use weir_scheduler::kernel_scheduler;
use weir_study::{Capture, Engine, FileSystem, Run, RunDevice};

/// The needs of some runs, as `weir plan --needs` prints them.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Needs {
    /// Number of runs.
    pub runs: usize,
    /// Programs.
    pub commands: Vec<Command>,
    /// Parts of the kernel.
    pub kernel: Vec<KernelPart>,
    /// Whether block requests must be captured, which takes BPF.
    pub bpf: bool,
    /// Memory of modelled devices, of tmpfs and of hot files, in bytes.
    pub memory_bytes: u64,
    /// Paths of the disks that the testbed lists for these runs.
    pub disks: Vec<PathBuf>,
    /// Disks that one run would use twice, each with the devices that it stands for.
    pub used_twice: Vec<String>,
    /// Pairs of paths that one run uses. They must lead to different disks.
    pub used_together: Vec<Pair>,
    /// Whether disks are striped.
    pub arrays: bool,
    /// Devices to model, as `weir serve` takes them.
    pub modelled: Vec<RunDevice>,
    /// Whether a class has limits of a control group.
    pub cgroups: bool,
    /// File systems that must be mounted before a run.
    pub mounted: Vec<String>,
    /// Clusters of network file systems to start.
    pub clusters: Vec<String>,
    /// File systems of these clusters. Each host starts its own.
    pub cluster_file_systems: Vec<String>,
    /// Servers of the largest of these clusters.
    pub servers: usize,
}

/// Two paths that one run uses.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Pair {
    /// The paths, sorted.
    pub paths: [PathBuf; 2],
    /// Problem if both lead to one disk.
    pub problem: String,
}

/// A program.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Command {
    /// Name of the program.
    pub name: String,
    /// Debian package that contains it; `null` if unknown.
    pub package: Option<String>,
}

/// A part of the kernel, and the module that contains it where it is not built in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct KernelPart {
    /// Kind of the part.
    pub kind: Kind,
    /// Name within its kind, as the kernel shows it.
    pub name: String,
    /// Module for modprobe; `none` of the schedulers needs no module.
    pub module: Option<String>,
}

/// Kind of a part of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Named in `/proc/filesystems`.
    FileSystem,
    /// Named in `/sys/block/DEVICE/queue/scheduler`.
    Scheduler,
    /// Named in `/proc/mdstat`.
    Raid,
    /// A node below `/dev`.
    DeviceNode,
}

impl Needs {
    /// The needs of runs on a testbed. Runs in virtual time need nothing.
    pub fn of<'a>(runs: impl IntoIterator<Item = &'a Run>, testbed: &Testbed) -> Self {
        let runs: Vec<&Run> = runs.into_iter().filter(|run| !run.testbed.is_virtual()).collect();
        if runs.is_empty() {
            return Needs::default();
        }
        let names: BTreeSet<&str> = runs.iter().map(|run| run.settings.filesystem.as_str()).collect();
        let used: Vec<Use> =
            names.into_iter().filter_map(FileSystem::load).map(|of| Use::new(of, testbed)).collect();
        let by_name: BTreeMap<&str, &Use> =
            used.iter().map(|of| (of.file_system.name.as_str(), of)).collect();
        let of = |run: &Run| by_name.get(run.settings.filesystem.as_str()).copied();
        let devices = devices(&runs, of);
        let listed: Vec<&Device> = devices.keys().filter_map(|name| testbed.devices.get(*name)).collect();
        let arrays = listed.iter().any(|device| matches!(device, Device::Array { .. }));
        let is_listed = |device: &RunDevice| {
            !matches!(testbed.devices.get(&device.name), None | Some(Device::Modelled { .. }))
        };
        let modelled: Vec<RunDevice> = devices.into_values().filter(|device| !is_listed(device)).collect();
        let clusters: BTreeSet<String> = used.iter().filter_map(|of| of.cluster.clone()).collect();
        let in_memory_mib = runs.iter().map(|run| memory_mib(run, of(run))).max().unwrap_or(0);
        let modelled_mib: u64 = modelled.iter().map(|device| device.size_mib).sum();
        let (used_twice, used_together) = shared(&runs, testbed, of);
        let of_cluster = |run: &&&Run| of(run).is_some_and(|of| of.cluster.is_some());
        Needs {
            runs: runs.len(),
            commands: commands(&runs, &used, arrays, !modelled.is_empty()),
            kernel: kernel(&runs, &used, arrays, !modelled.is_empty()),
            bpf: runs.iter().any(|run| run.capture == Capture::Required),
            memory_bytes: (in_memory_mib + modelled_mib) << 20,
            disks: listed.into_iter().flat_map(paths).collect::<BTreeSet<_>>().into_iter().collect(),
            used_twice,
            used_together,
            arrays,
            modelled,
            cgroups: runs.iter().flat_map(|run| &run.classes).any(|class| class.cgroup.is_some()),
            mounted: used.iter().filter(|of| of.mounted).map(|of| of.file_system.name.clone()).collect(),
            clusters: clusters.into_iter().collect(),
            cluster_file_systems: used
                .iter()
                .filter(|of| of.cluster.is_some())
                .map(|of| of.file_system.name.clone())
                .collect(),
            servers: runs.iter().filter(of_cluster).map(|run| run.devices.len()).max().unwrap_or(0),
        }
    }
}

/// How runs use a file system on a testbed.
struct Use {
    file_system: FileSystem,
    /// It is mounted before a run.
    mounted: bool,
    /// The cluster that is started for it.
    cluster: Option<String>,
}

impl Use {
    fn new(file_system: FileSystem, testbed: &Testbed) -> Self {
        let cluster = file_system.network.as_ref().map(|network| network.cluster.clone());
        // A network file system that the testbed has mounted is used as it is.
        let mounted =
            file_system.mounted || (cluster.is_some() && testbed.mounts.contains_key(&file_system.name));
        Use { cluster: cluster.filter(|_| !mounted), file_system, mounted }
    }

    /// Whether runs use block devices of their own for it.
    fn is_on_devices(&self) -> bool {
        !self.mounted && (self.file_system.on_device || self.cluster.is_some())
    }
}

/// Block devices by name. A server of policies serves runs without one as well.
fn devices<'run, 'used>(
    runs: &[&'run Run],
    of: impl Fn(&Run) -> Option<&'used Use>,
) -> BTreeMap<&'run str, RunDevice> {
    let mut devices: BTreeMap<&str, RunDevice> = BTreeMap::new();
    for run in runs.iter().filter(|run| of(run).is_some_and(Use::is_on_devices)) {
        for device in &run.devices {
            let live = device.live || devices.get(device.name.as_str()).is_some_and(|known| known.live);
            devices.insert(&device.name, RunDevice { live, ..device.clone() });
        }
    }
    devices
}

/// Memory of a run except modelled devices: hot files, and devices of a file system in memory.
fn memory_mib(run: &Run, of: Option<&Use>) -> u64 {
    let hot: u64 = run.services.iter().filter_map(|service| service.hot_mib).sum();
    let in_memory = of.is_some_and(|of| !of.mounted && !of.is_on_devices());
    hot + if in_memory { run.devices.iter().map(|device| device.size_mib).sum() } else { 0 }
}

fn paths(device: &Device) -> Vec<PathBuf> {
    match device {
        Device::Modelled { .. } => Vec::new(),
        Device::Disk(disk) => vec![disk.path.clone()],
        Device::Array { members } => members.iter().map(|disk| disk.path.clone()).collect(),
    }
}

/// Disks that one run would use as two devices, or twice in an array; and pairs that must not be one disk.
fn shared<'used>(
    runs: &[&Run],
    testbed: &Testbed,
    of: impl Fn(&Run) -> Option<&'used Use>,
) -> (Vec<String>, Vec<Pair>) {
    let (mut twice, mut together) = (BTreeSet::new(), BTreeSet::new());
    for run in runs.iter().filter(|run| of(run).is_some_and(Use::is_on_devices)) {
        let listed = run.devices.iter().filter_map(|device| {
            let paths = testbed.devices.get(&device.name).map(paths)?;
            Some(paths.into_iter().map(|path| (path, device.name.as_str())))
        });
        let mut used: Vec<(PathBuf, &str)> = listed.flatten().collect();
        used.sort_by(|one, other| one.0.cmp(&other.0));
        for (at, (path, name)) in used.iter().enumerate() {
            for (other, other_name) in &used[at + 1..] {
                // One name is shorter than the same twice.
                let names =
                    if name == other_name { (*name).to_owned() } else { format!("{name} and {other_name}") };
                if path == other {
                    twice.insert(format!("{} of {names}", path.display()));
                } else {
                    let problem =
                        format!("{} and {} of {names} are one disk", path.display(), other.display());
                    together.insert(Pair { paths: [path.clone(), other.clone()], problem });
                }
            }
        }
    }
    (twice.into_iter().collect(), together.into_iter().collect())
}

fn commands(runs: &[&Run], used: &[Use], arrays: bool, models: bool) -> Vec<Command> {
    let clusters = used.iter().any(|of| of.cluster.is_some());
    let conditional = [
        (true, "blkid", "util-linux"),
        (true, "wipefs", "util-linux"),
        (true, "losetup", "mount"),
        // The roles of clusters install their own packages.
        (clusters, "ip", "iproute2"),
        (clusters, "nsenter", "util-linux"),
        (clusters, "mkfs.ext4", "e2fsprogs"),
        (runs.iter().flat_map(|run| &run.classes).any(|class| class.engine == Engine::Fio), "fio", "fio"),
        (arrays, "mdadm", "mdadm"),
        (models, "fusermount3", "fuse3"),
    ];
    let makers = used.iter().filter_map(|of| {
        let name = of.file_system.make.first()?.clone();
        Some(Command { name, package: of.file_system.packages.first().cloned() })
    });
    let wanted = conditional.into_iter().filter(|(wanted, _, _)| *wanted);
    let named = wanted.map(|(_, name, package)| Command { name: name.into(), package: Some(package.into()) });
    named.chain(makers).collect::<BTreeSet<_>>().into_iter().collect()
}

fn kernel(runs: &[&Run], used: &[Use], arrays: bool, models: bool) -> Vec<KernelPart> {
    let part =
        |kind, name: &str, module: &str| KernelPart { kind, name: name.into(), module: Some(module.into()) };
    let mut parts = BTreeSet::new();
    for of in used.iter().filter(|of| !of.mounted && of.cluster.is_none()) {
        if let Some(name) = &of.file_system.mount_type {
            parts.insert(part(Kind::FileSystem, name, name));
        }
    }
    let mounted =
        |run: &Run| used.iter().any(|of| of.mounted && of.file_system.name == run.settings.filesystem);
    for run in runs.iter().filter(|run| !run.devices.is_empty() && !mounted(run)) {
        // The kernel's scheduler in front of a policy of weir is `none`.
        let name = if run.live { "none" } else { run.settings.scheduler.name.as_str() };
        let module = kernel_scheduler(name).and_then(|scheduler| scheduler.module).map(str::to_owned);
        parts.insert(KernelPart { kind: Kind::Scheduler, name: name.into(), module });
    }
    if arrays {
        parts.insert(part(Kind::Raid, "raid0", "raid0"));
    }
    if models {
        parts.insert(part(Kind::DeviceNode, "fuse", "fuse"));
        parts.insert(part(Kind::DeviceNode, "loop-control", "loop"));
    }
    parts.into_iter().collect()
}
