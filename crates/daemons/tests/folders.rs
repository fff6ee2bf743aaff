//! Folders of users: what weir has not marked is not touched, by no command and at no moment that a process is killed in.

use std::collections::BTreeMap;
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use weir_daemons::cluster::{Cluster, Description, down, down_all};
use weir_daemons::multi_host_cluster::{Members, serve};
use weir_daemons::{ServerStorage, restore, snapshot};
use weir_host::owned::{self, MARKER, Owner};

/// A cluster without daemons: all that is done is done to folders.
fn bare() -> Description {
    Description {
        name: "bare".to_owned(),
        description: "servers that are folders".to_owned(),
        packages: Vec::new(),
        daemons: Vec::new(),
        set_up: Vec::new(),
    }
}

fn serve_on(
    description: &Description,
    state: &Path,
    storage: &ServerStorage,
) -> Result<bool, weir_daemons::Error> {
    let server = Ipv4Addr::new(10, 1, 0, 1);
    let members = Members { servers: vec![server], clients: vec![Ipv4Addr::new(10, 1, 0, 2)], own: server };
    serve(description, state, &members, storage).map(|served| served.started)
}

struct Place {
    _folder: tempfile::TempDir,
    state: PathBuf,
    photos: PathBuf,
    empty: PathBuf,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [state, photos, empty] = ["state", "photos", "empty"].map(|name| folder.path().join(name));
        fs::create_dir_all(photos.join("2024")).unwrap();
        fs::create_dir(&empty).unwrap();
        fs::write(photos.join("2024/a.jpg"), "precious").unwrap();
        Place { _folder: folder, state, photos, empty }
    }

    fn check_photos(&self) {
        assert_eq!(
            listed(&self.photos),
            [("2024".into(), None), ("2024/a.jpg".into(), Some("precious".into()))]
        );
    }
}

/// All that is below a folder, with what files hold.
fn listed(folder: &Path) -> Vec<(PathBuf, Option<String>)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            let text = fs::read_to_string(&path).ok();
            if path.is_dir() {
                folders.push(path.clone());
            }
            found.push((path.strip_prefix(folder).unwrap().to_owned(), text));
        }
    }
    found.sort();
    found
}

#[test]
fn a_cluster_on_a_folder_with_files_is_refused_and_nothing_is_recorded() {
    let place = Place::new();
    for description in [bare(), Description::load("moosefs").unwrap()] {
        let refused =
            serve_on(&description, &place.state, &ServerStorage::Folder(place.photos.clone())).unwrap_err();
        assert!(refused.is_refusal() && refused.to_string().contains("\"2024\""), "{refused}");
        assert!(!place.state.exists(), "nothing is recorded");
        assert_eq!(down(&place.state, &description.name).unwrap(), Vec::<String>::new());
    }
    place.check_photos();
}

#[test]
fn a_record_that_lists_a_folder_without_a_marker_clears_nothing() {
    let place = Place::new();
    // As weir left it that recorded before it checked.
    assert!(serve_on(&bare(), &place.state, &ServerStorage::Folder(place.empty.clone())).unwrap());
    let file = place.state.join("clusters/bare/cluster.json");
    let record = fs::read_to_string(&file).unwrap();
    fs::write(&file, record.replace("empty", "photos")).unwrap();
    let gone = down_all(&place.state).unwrap();
    assert!(gone[0].contains("photos, which bears no marker"), "{gone:?}");
    place.check_photos();
    assert!(!place.state.join("clusters").exists());
}

#[test]
fn data_lie_beside_the_marker_and_go_with_it() {
    let place = Place::new();
    let storage = ServerStorage::Folder(place.empty.clone());
    assert!(serve_on(&bare(), &place.state, &storage).unwrap());
    assert!(!serve_on(&bare(), &place.state, &storage).unwrap(), "it was up");
    let cluster = Cluster::load(&place.state, "bare").unwrap().unwrap();
    assert_eq!(cluster.servers[0].data.as_deref(), Some(&*place.empty.join("data")));
    assert!(place.empty.join(MARKER).is_file());
    fs::write(place.empty.join("data/chunk"), "of the cluster").unwrap();
    fs::write(place.empty.join("notes"), "of the user").unwrap();
    // A refusal leaves one that is up as it is.
    let refused = serve_on(&bare(), &place.state, &ServerStorage::Folder(place.photos.clone())).unwrap_err();
    assert!(refused.is_refusal());
    assert!(place.empty.join("data/chunk").exists());
    down(&place.state, "bare").unwrap();
    assert_eq!(listed(&place.empty), [("notes".into(), Some("of the user".into()))]);
    place.check_photos();
}

#[test]
fn a_folder_is_of_one_server_of_one_cluster() {
    let place = Place::new();
    let refused = |state: &Path, folder: &Path, word: &str| {
        let refused = serve_on(&bare(), state, &ServerStorage::Folder(folder.to_owned())).unwrap_err();
        assert!(refused.is_refusal() && refused.to_string().contains(word), "{refused}");
    };
    refused(&place.state, &place.photos.join("nonesuch"), "Make it");
    refused(&place.state, &place.photos.join("2024/a.jpg"), "is no folder");
    fs::create_dir_all(place.state.join("inner")).unwrap();
    refused(&place.state, &place.state.join("inner"), "lies in the state folder");
    fs::remove_dir_all(&place.state).unwrap();

    let other = place.state.with_file_name("other");
    assert!(serve_on(&bare(), &other, &ServerStorage::Folder(place.empty.clone())).unwrap());
    refused(&place.state, &place.empty, "another state folder");
    refused(&place.state, &place.empty.join("data"), "which a weir made");
    let second = Description { name: "second".to_owned(), ..bare() };
    let taken = serve_on(&second, &other, &ServerStorage::Folder(place.empty.clone())).unwrap_err();
    assert!(taken.is_refusal() && place.empty.join("data").is_dir(), "{taken}");
    assert!(!other.join("clusters/second").exists() && !place.state.exists());
    down(&other, "bare").unwrap();
    assert_eq!(listed(&place.empty), []);
    place.check_photos();
}

#[test]
fn a_cluster_is_taken_down_by_its_name_and_no_way_leads_out() {
    let place = Place::new();
    fs::create_dir_all(place.state.join("clusters")).unwrap();
    for name in ["../../photos", "..", ".", "", "/", "a/b"] {
        assert!(down(&place.state, name).unwrap_err().is_refusal(), "{name}");
    }
    // A folder of somebody's where clusters are.
    let theirs = place.state.join("clusters/theirs");
    fs::rename(&place.photos, &theirs).unwrap();
    let left = down_all(&place.state).unwrap_err();
    assert!(!left.is_refusal() && left.to_string().contains("was not made by this weir"), "{left}");
    fs::rename(&theirs, &place.photos).unwrap();
    place.check_photos();
}

/// What a child does that is killed: it brings a cluster up and down, tries one on a folder with files, keeps and puts back data.
#[test]
fn child_that_is_killed() {
    let Some(folder) = std::env::var_os("WEIR_FOLDERS_CHILD").map(PathBuf::from) else { return };
    let [state, photos, empty, kept] = ["state", "photos", "empty", "kept"].map(|name| folder.join(name));
    loop {
        let _ = serve_on(&bare(), &state, &ServerStorage::Folder(empty.clone()));
        let _ = fs::write(empty.join("data/chunk"), "of the cluster");
        let _ = serve_on(&bare(), &state, &ServerStorage::Folder(photos.clone()));
        let _ = down(&state, "bare");
        let _ = restore(&state, &kept, &photos);
        let _ = restore(&state, &kept, &folder.join("database"));
        let copy = folder.join("copy");
        let _ = snapshot(&state, &folder.join("database"), &copy);
        let _ = fs::remove_dir_all(&copy);
    }
}

#[test]
fn whenever_a_process_is_killed_nothing_of_others_is_lost_and_all_is_taken_down() {
    let place = Place::new();
    let folder = place.state.parent().unwrap();
    let kept = folder.join("kept");
    fs::create_dir(&kept).unwrap();
    for index in 0..20 {
        fs::write(kept.join(index.to_string()), "row").unwrap();
    }
    fs::write(place.empty.join("lost+found"), "").unwrap();
    let (mut up, mut half) = (0, 0);
    for round in 0..60u64 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child_that_is_killed", "--nocapture"])
            .env("WEIR_FOLDERS_CHILD", folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // No two rounds at the same moment of its work.
        std::thread::sleep(Duration::from_micros(5_000 + 1_237 * round));
        child.kill().unwrap();
        child.wait().unwrap();

        place.check_photos();
        up += u32::from(place.state.join("clusters/bare").exists());
        half += u32::from(folder.join("database/data.restoring").exists());
        down_all(&place.state).unwrap();
        assert!(!place.state.join("clusters").exists(), "round {round}");
        let left = listed(&place.empty);
        // A marker that was just being made is taken by the next cluster.
        let is_clean = left.iter().all(|(path, _)| path.ends_with("lost+found") || path.ends_with(MARKER));
        assert!(is_clean, "round {round}: {left:?}");
        serve_on(&bare(), &place.state, &ServerStorage::Folder(place.empty.clone())).unwrap();
        down(&place.state, "bare").unwrap();
        assert_eq!(listed(&place.empty).len(), 1, "round {round}");
        restore(&place.state, &kept, &folder.join("database")).unwrap();
        assert_eq!(listed(&folder.join("database/data")), listed(&kept), "round {round}");
    }
    eprintln!("60 kills: {up} with a cluster recorded, {half} within a restore");
}

#[test]
fn folders_of_two_servers_are_checked_before_any_is_touched() {
    let Some(network) = Lab::up() else { return };
    let place = Place::new();
    let second = place.empty.with_file_name("second");
    fs::create_dir_all(second.join("inner")).unwrap();
    let folder = |path: &Path| ServerStorage::Folder(path.to_owned());
    let up = |storages: &[ServerStorage]| {
        weir_daemons::bring_up(&bare(), &network.network, &place.state, storages)
    };
    for (storages, word) in [
        (vec![folder(&place.empty), folder(&place.photos)], "\"2024\""),
        (vec![folder(&place.empty), folder(&place.empty)], "overlap"),
        (vec![folder(&place.empty), folder(&second.join("../empty"))], "overlap"),
        (vec![folder(&second.join("inner")), folder(&second)], "is not empty"),
    ] {
        let refused = up(&storages).unwrap_err();
        assert!(refused.is_refusal() && refused.to_string().contains(word), "{refused}");
        assert_eq!(listed(&place.empty), []);
        assert!(!place.state.exists());
    }
    // It has no client, so that it does not come up: what was made goes, and nothing else.
    let failed = up(&[folder(&place.empty), folder(&second.join("inner"))]).unwrap_err();
    assert!(!failed.is_refusal() && failed.to_string().contains("no client"), "{failed}");
    assert_eq!(listed(&place.empty), []);
    assert_eq!(listed(&second), [("inner".into(), None)]);
    assert!(!place.state.join("clusters").exists());
    place.check_photos();
}

/// A test network with two servers, in a state folder of its own.
struct Lab {
    network: weir_network::Network,
    state: tempfile::TempDir,
}

impl Lab {
    fn up() -> Option<Self> {
        let state = tempfile::tempdir().unwrap();
        let hosts = ["client", "server-0", "server-1"].map(str::to_owned).to_vec();
        let subnet = weir_network::Subnet::try_from("10.93.7.0/24".to_owned()).unwrap();
        let name = format!("tfo-{}", std::process::id());
        let spec = weir_network::Spec { name, subnet, hosts, rate_mbit: None };
        match weir_network::up(&spec, state.path()) {
            Ok(network) => Some(Lab { network, state }),
            Err(error) => {
                let _ = weir_network::down(state.path());
                eprintln!("skipped: no test network: {error}");
                None
            }
        }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = weir_network::down(self.state.path());
    }
}

#[test]
fn a_marked_folder_is_known_by_the_state_folder_that_made_it() {
    let place = Place::new();
    let owner = Owner::of_state(&place.state).unwrap();
    owned::claim(&place.empty, &owner, "data of cluster bare, server-0").unwrap();
    // Left by one that died: it is taken again.
    assert!(serve_on(&bare(), &place.state, &ServerStorage::Folder(place.empty.clone())).unwrap());
    down(&place.state, "bare").unwrap();
    assert_eq!(listed(&place.empty), []);
    let none: BTreeMap<String, String> = BTreeMap::new();
    assert!(weir_daemons::cluster::set(&place.state, "bare", &none).unwrap_err().is_refusal());
}
