//! Network file systems: three servers come up, files go over the network and are there after a remount, all goes again.

mod common;

use std::fs;
use std::path::Path;

use common::State;
use weir_daemons::cluster::{Description, down, up};
use weir_daemons::{Daemon, Group, Ready, Scope, ServerStorage, bring_up, client, process};
use weir_network::{Spec, Subnet, counters, up as network_up};
use weir_study::FileSystem;

/// Whether all that a cluster and its clients run is installed; says what is not.
fn installed(description: &Description, mounts: &[FileSystem]) -> bool {
    let daemons: Vec<Daemon> =
        description.daemons.iter().map(|member| Daemon::load(&member.daemon).unwrap()).collect();
    // Of a daemon's programs one is enough.
    let mut needed: Vec<Vec<&str>> = vec![vec!["ip"]];
    for daemon in &daemons {
        needed.push(daemon.programs.iter().map(String::as_str).collect());
        let ready = match &daemon.ready {
            Ready::Command(words) => words.first(),
            _ => None,
        };
        needed.extend(
            daemon
                .prepare
                .iter()
                .filter_map(|words| words.first())
                .chain(ready)
                .map(|word| vec![word.as_str()]),
        );
    }
    for access in mounts.iter().filter_map(|filesystem| filesystem.network.as_ref()) {
        needed.extend(
            access
                .client
                .first()
                .into_iter()
                .chain(access.once_mounted.first())
                .map(|word| vec![word.as_str()]),
        );
    }
    needed
        .extend(description.set_up.iter().filter_map(|words| words.first()).map(|word| vec![word.as_str()]));
    let is_there = |program: &&str| {
        let places = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];
        places.iter().any(|place| Path::new(place).join(program).exists())
    };
    let absent = needed.iter().find(|any| !any.iter().any(is_there));
    if let Some(programs) = absent {
        eprintln!("{}: skipped: {} is not installed", description.name, programs[0]);
    }
    absent.is_none()
}

fn carries_files(name: &str) {
    let description = Description::load(name).unwrap();
    let of_cluster = |found: &FileSystem| found.network.as_ref().is_some_and(|access| access.cluster == name);
    let mounts: Vec<FileSystem> =
        FileSystem::names().filter_map(FileSystem::load).filter(of_cluster).collect();
    if !installed(&description, &mounts) {
        return;
    }
    let Some(state) = State::new() else { return };
    let state = state.path();
    let hosts = ["client", "server-0", "server-1", "server-2"].map(str::to_owned).to_vec();
    let subnet = Subnet::try_from("10.93.1.0/24".to_owned()).unwrap();
    let short: String = name.chars().take(3).collect();
    let spec = Spec { name: format!("t{short}-{}", std::process::id()), subnet, hosts, rate_mbit: None };
    let network = network_up(&spec, state).unwrap();
    let storages = vec![ServerStorage::Own; 3];
    let cluster = bring_up(&description, &network, state, &storages).unwrap();
    assert_eq!(up(&description, &network, state, &storages).unwrap(), cluster, "what is up is left as it is");

    let point = state.join("mnt");
    let group = Group::of_state(state).within("mount");
    let mount = |filesystem: &str| {
        let found = FileSystem::load(filesystem).unwrap();
        client::mount(&found, state, &point, "mount", Scope::Run, group.clone()).unwrap();
    };
    mount(name);
    client::check_on_network(&cluster, &point).unwrap();
    let files: Vec<(String, Vec<u8>)> =
        (0..12u8).map(|index| (format!("f{index}"), vec![index; 300_000 + usize::from(index)])).collect();
    for (file, bytes) in &files {
        fs::write(point.join(file), bytes).unwrap();
    }
    client::unmount(state, &point, "mount").unwrap();
    assert_eq!(fs::read_dir(&point).unwrap().count(), 0, "nothing of it lies on the file system below");
    for left in cluster.forget().unwrap() {
        assert!(left.cached_bytes * 10 <= left.total_bytes, "{left:?}");
    }

    // Without caches at the client, every reading goes over the network.
    let direct = format!("{name}-direct");
    assert!(FileSystem::load(&direct).is_some(), "{direct}: describe a mount without caches");
    mount(&direct);
    let bytes: u64 = files.iter().map(|(_, bytes)| bytes.len() as u64).sum();
    let before = counters(&cluster.client_namespace).unwrap();
    for _ in 0..2 {
        for (file, bytes) in &files {
            assert_eq!(&fs::read(point.join(file)).unwrap(), bytes, "{file}");
        }
    }
    let moved = counters(&cluster.client_namespace).unwrap() - before;
    assert!(moved.received_bytes >= 2 * bytes, "{bytes} bytes read twice: {moved:?}");
    let sizes: Vec<u64> =
        cluster.servers.iter().map(|server| size_bytes(server.data.as_deref().unwrap())).collect();
    assert!(sizes.iter().all(|size| *size > 100_000), "every server holds a part: {sizes:?}");

    // As after a crash: nobody unmounts, the state folder is all that is left.
    let gone = down(state, name).unwrap();
    assert!(gone.iter().any(|line| line.ends_with(" mount")), "{gone:?}");
    assert_eq!(process::all(state).unwrap(), []);
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!table.contains(state.to_str().unwrap()));
    assert!(!state.join("clusters").exists());
}

fn size_bytes(folder: &Path) -> u64 {
    fs::read_dir(folder).unwrap().flatten().fold(0, |sum, entry| {
        let metadata = entry.metadata().unwrap();
        sum + if metadata.is_dir() { size_bytes(&entry.path()) } else { metadata.len() }
    })
}

#[test]
fn every_cluster_carries_files() {
    // One after another: three servers of each would compete for the processors of a small machine.
    for name in Description::names() {
        eprintln!("cluster {name}");
        carries_files(name);
    }
}
