//! Set-up and removal of the test network.

use std::fs;
use std::path::Path;

use crate::Error;
use crate::namespace::within;
use crate::spec::{BRIDGE, Spec};
use crate::state::{Host, Namespace, Network, boot_id};

/// Makes a test network, or its missing hosts. A complete network is kept unchanged.
///
/// # Errors
/// [`Error::Refused`] if `state` records another network, or a namespace of that name is not weir's; [`Error::Failed`] if the
/// kernel refuses: [`down`] removes what had been made.
pub fn up(spec: &Spec, state: &Path) -> Result<Network, Error> {
    spec.check()?;
    let mut network = match Network::load(state)? {
        Some(known) if is_that(&known, spec) => known,
        Some(known) => {
            return Err(Error::Refused(format!(
                "{}: another test network, `{}`, is up. Remove it first: weir network down --state {}",
                Network::file(state).display(),
                known.name,
                state.display()
            )));
        }
        None => planned(spec),
    };
    for namespace in network.hosts.iter().map(|host| &host.namespace).chain([&network.bridge]) {
        if namespace.present().is_some() && !namespace.is_ours() {
            return Err(Error::Refused(format!(
                "network namespace {} exists and weir did not make it. Remove it (ip netns delete {0}), or choose another name for the network",
                namespace.name
            )));
        }
    }
    network.save(state)?;
    if !network.bridge.is_ours() {
        network.bridge.make()?;
        network.save(state)?;
        quiet(&network.bridge)?;
        network.bridge.ip("link add br0 type bridge\nlink set br0 up\nlink set lo up\n")?;
    }
    let prefix = network.subnet.prefix();
    for index in 0..network.hosts.len() {
        if network.hosts[index].namespace.is_ours() {
            continue;
        }
        network.hosts[index].namespace.make()?;
        network.save(state)?;
        let Host { namespace, address, .. } = &network.hosts[index];
        quiet(namespace)?;
        // A port whose other end went with its namespace may take a moment to go.
        let _ = network.bridge.ip(&format!("link delete p{index}\n"));
        network.bridge.ip(&format!(
            "link add p{index} type veth peer name eth0 netns {}\nlink set p{index} master br0\nlink set p{index} up\n",
            namespace.name
        ))?;
        namespace
            .ip(&format!("link set lo up\naddress add {address}/{prefix} dev eth0\nlink set eth0 up\n"))?;
        if let Some(rate_mbit) = network.rate_mbit {
            namespace.limit("eth0", rate_mbit)?;
            network.bridge.limit(&format!("p{index}"), rate_mbit)?;
        }
    }
    Ok(network)
}

/// Disables IPv6: its announcements would count as traffic of a study.
fn quiet(namespace: &Namespace) -> Result<(), Error> {
    within(&namespace.path(), || {
        for which in ["all", "default"] {
            // A kernel without IPv6 has no such file.
            let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{which}/disable_ipv6"), "1");
        }
    })
}

fn is_that(known: &Network, spec: &Spec) -> bool {
    known.name == spec.name
        && known.subnet == spec.subnet
        && known.rate_mbit == spec.rate_mbit
        && known.hosts.iter().map(|host| &host.name).eq(spec.hosts.iter())
}

fn planned(spec: &Spec) -> Network {
    let namespace = |host: &str| Namespace { name: spec.namespace(host), inode: None };
    let hosts = spec.hosts.iter().enumerate().filter_map(|(index, name)| {
        let address = spec.subnet.address(index)?;
        Some(Host { name: name.clone(), address, namespace: namespace(name) })
    });
    Network {
        name: spec.name.clone(),
        subnet: spec.subnet,
        bridge: namespace(BRIDGE),
        rate_mbit: spec.rate_mbit,
        hosts: hosts.collect(),
        boot_id: boot_id(),
    }
}

/// Removes the test network that a state folder records. Returns what was removed; nothing if no network is recorded.
///
/// # Errors
/// The kernel refuses; namespaces that are left stay recorded.
pub fn down(state: &Path) -> Result<Vec<String>, Error> {
    let mut gone = Vec::new();
    if let Some(network) = Network::load(state)? {
        for namespace in network.hosts.iter().map(|host| &host.namespace).chain([&network.bridge]) {
            if namespace.remove()? {
                gone.push(format!("network namespace {}", namespace.name));
            }
        }
    }
    let file = Network::file(state);
    match fs::remove_file(&file) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io("cannot remove", &file)(error))
        }
        _ => Ok(gone),
    }
}

/// The recorded test network and the namespaces of it that are missing.
///
/// # Errors
/// The state file cannot be read.
pub fn status(state: &Path) -> Result<Option<(Network, Vec<String>)>, Error> {
    let Some(network) = Network::load(state)? else { return Ok(None) };
    let all = network.hosts.iter().map(|host| &host.namespace).chain([&network.bridge]);
    let missing = all.filter(|namespace| !namespace.is_ours());
    let missing =
        missing.map(|namespace| format!("network namespace {} is missing", namespace.name)).collect();
    Ok(Some((network, missing)))
}
