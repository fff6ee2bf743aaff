//! Bring-up of a cluster: start the servers, mount, and check that files go over the network.

use std::path::Path;
use std::process::Command;

use weir_network::Network;
use weir_specs::template::{Filled, Value, fill};
use weir_study::FileSystem;

use crate::Error;
use crate::cgroup::Group;
use crate::client;
use crate::cluster::{Cluster, Description, check, down, plan, start_here};
use crate::process::Scope;
use crate::server_storage::{ServerStorage, run};

/// Starts the servers of a cluster, waits until all have joined, sets it up, and checks that a written file goes over the network.
///
/// # Errors
/// As of [`up`](crate::cluster::up), before anything was changed, and [`client::check_on_network`]; then the cluster is taken
/// down.
pub fn bring_up(
    description: &Description,
    network: &Network,
    state: &Path,
    storages: &[ServerStorage],
) -> Result<Cluster, Error> {
    let cluster = plan(description, network, storages)?;
    // A refusal here leaves a running cluster unchanged.
    check(description, &cluster, state)?;
    let brought = start_here(description, cluster, state).and_then(|(cluster, _)| {
        try_out(description, &cluster, state)?;
        Ok(cluster)
    });
    brought.map_err(|error| match down(state, &description.name) {
        Ok(_) => error,
        Err(left) => Error::Failed(format!("{error}; and not taken down: {left}")),
    })
}

fn try_out(description: &Description, cluster: &Cluster, state: &Path) -> Result<(), Error> {
    let name = &description.name;
    // The file system of the same name has a client without further options.
    let filesystem = FileSystem::load(name).ok_or_else(|| Error::Failed(format!("{name} has no client")))?;
    let (point, probe) = (state.join("mnt").join(format!(".probe-{name}")), format!("{name}.probe"));
    let group = Group::of_state(state).within(&probe);
    client::mount(&filesystem, state, &point, &probe, Scope::Study, group)?;
    let tried = client::room_of_servers(cluster)
        .and_then(|room_bytes| client::wait_for_all(cluster, &point, room_bytes))
        .and_then(|()| set_up(description, cluster, &point))
        .and_then(|()| client::check_on_network(cluster, &point));
    client::unmount(state, &point, &probe)?;
    let _ = std::fs::remove_dir(&point);
    tried.map(|_| ())
}

/// Runs the `set_up` commands of the description on the client's host.
pub(crate) fn set_up(description: &Description, cluster: &Cluster, point: &Path) -> Result<(), Error> {
    let mut values = cluster.addresses();
    values.insert("point".to_owned(), Value::path(point).map_err(Error::Refused)?);
    for words in &description.set_up {
        let words = words.iter().map(|word| fill(word, &values).map(Filled::into_string));
        let words = words.collect::<Result<Vec<_>, _>>();
        let words =
            words.map_err(|error| Error::Refused(format!("cluster {}: {error}", description.name)))?;
        let Some((program, arguments)) = words.split_first() else { continue };
        weir_network::within(&cluster.client_namespace, || run(Command::new(program).args(arguments)))??;
    }
    Ok(())
}
