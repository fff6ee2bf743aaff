//! Clusters: the servers of a network file system on the hosts of a test network.
//!
//! `STATE/clusters/NAME/cluster.json` records each process, mount and folder before it is made. [`down`] removes exactly these.

mod description;
mod down;
mod record;
mod start;

pub use description::{Description, Member, On};
pub use down::{down, down_all};
pub use record::{Cluster, Server};
pub use start::{CLIENT, server_name, set, up};
pub(crate) use start::{check, plan, start_here};

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use weir_specs::Document;
    use weir_study::FileSystem;
    use weir_testbeds::CLUSTERS;

    use super::*;
    use crate::description::Daemon;

    #[test]
    fn every_cluster_parses_and_its_daemons_are_there() {
        for name in Description::names() {
            let text = CLUSTERS.text(name).unwrap();
            let found =
                Document::from_text(name.as_ref(), text).and_then(|document| document.parse::<Description>());
            let found = found.unwrap_or_else(|problems| panic!("{name}: {problems:?}"));
            assert_eq!(found.name, name);
            for member in found.daemons {
                let daemon =
                    Daemon::load(&member.daemon).unwrap_or_else(|| panic!("{name}: {}", member.daemon));
                // A setting is the study's; what the cluster sets is its own.
                assert!(
                    member.set.keys().all(|set| daemon.defaults.contains_key(set)),
                    "{name}: {}",
                    member.daemon
                );
            }
        }
    }

    #[test]
    fn a_setting_that_is_more_than_a_value_touches_no_server() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path();
        let cluster = Cluster {
            name: "glusterfs".to_owned(),
            servers: Vec::new(),
            clients: Vec::new(),
            client_namespace: "/proc/self/ns/net".into(),
            complete: true,
            set: BTreeMap::new(),
        };
        cluster.save(state).unwrap();
        for (name, value, said) in [
            ("io_threads", "4\nend-volume", "setting `io_threads`: is `4\\nend-volume`"),
            ("io_thraeds", "4", "unknown setting `io_thraeds`; did you mean `io_threads`?"),
            ("clients", "0.0.0.0", "unknown setting `clients`"),
        ] {
            let wanted = [(name.to_owned(), value.to_owned())].into();
            let refused = set(state, "glusterfs", &wanted).unwrap_err();
            assert!(refused.is_refusal() && refused.to_string().contains(said), "{refused}");
        }
        assert_eq!(Cluster::load(state, "glusterfs").unwrap().unwrap(), cluster);
    }

    #[test]
    fn every_network_file_system_has_its_cluster() {
        let all = FileSystem::names().filter_map(FileSystem::load).filter_map(|found| found.network);
        let clusters: Vec<String> = all.map(|network| network.cluster).collect();
        assert!(!clusters.is_empty());
        assert!(clusters.iter().all(|name| Description::load(name).is_some()), "{clusters:?}");
    }
}
