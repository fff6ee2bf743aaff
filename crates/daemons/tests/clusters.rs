//! Network file systems: three servers come up, files go over the network and are there after a remount, all goes again.

mod common;

use std::fs;
use std::path::Path;

use common::State;
use weir_daemons::cluster::{Description, down, up};
use weir_daemons::{Group, Scope, ServerStorage, bring_up, client, process};
use weir_network::{Spec, Subnet, counters, up as network_up};
use weir_study::FileSystem;

fn installed(programs: &[&str]) -> bool {
    let places = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];
    let absent =
        programs.iter().find(|program| !places.iter().any(|place| Path::new(place).join(program).exists()));
    if let Some(program) = absent {
        eprintln!("skipped: {program} is not installed");
    }
    absent.is_none()
}

fn carries_files(name: &str, programs: &[&str]) {
    if !installed(programs) || !installed(&["ip"]) {
        return;
    }
    let Some(state) = State::new() else { return };
    let state = state.path();
    let hosts = ["client", "server-0", "server-1", "server-2"].map(str::to_owned).to_vec();
    let subnet = Subnet::try_from("10.93.1.0/24".to_owned()).unwrap();
    let short: String = name.chars().take(3).collect();
    let spec = Spec { name: format!("t{short}-{}", std::process::id()), subnet, hosts, rate_mbit: None };
    let network = network_up(&spec, state).unwrap();
    let description = Description::load(name).unwrap();
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
    mount(&format!("{name}-direct"));
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
fn moosefs_carries_files() {
    carries_files("moosefs", &["mfsmaster", "mfschunkserver", "mfsmount"]);
}

#[test]
fn cephfs_carries_files() {
    carries_files("cephfs", &["ceph-mon", "ceph-mgr", "ceph-osd", "ceph-mds", "ceph-fuse", "ceph"]);
}

#[test]
fn glusterfs_carries_files() {
    carries_files("glusterfs", &["glusterfsd", "glusterfs"]);
}
