//! Daemons of a study (web servers, databases), and clusters of network file systems made of daemons.
//!
//! A daemon is described in `testbeds/daemons/NAME.yml`: [`start`] writes its configuration, prepares missing data,
//! starts it in the foreground as an unprivileged user, in its own network namespace and control group, and waits until it
//! answers. The process is recorded before exec (see [`process`]), so that exactly this process is stopped after a crash.
//! [`cluster`] starts the daemons of a network file system on the hosts of a test network and mounts it as a client does.
//! [`multi_host_cluster`] does so on separate machines.

mod bring_up;
pub mod cgroup;
pub mod client;
pub mod cluster;
mod data_folder;
mod description;
#[cfg(test)]
mod injection;
pub mod io_controller;
mod io_group;
mod limit;
pub mod multi_host_cluster;
pub mod named_group;
pub mod process;
mod ready;
mod server_storage;
mod snapshot;
mod start;
mod subtree_control;
mod user;
mod values;

pub use bring_up::bring_up;
pub use cgroup::Group;
pub use data_folder::DataFolder;
pub use description::{Daemon, Ready, Signal, Stop};
pub use io_group::{IoVersion, cost_file, io_version};
pub use limit::Disk;
pub use process::{Scope, stop_all};
pub use server_storage::ServerStorage;
pub use snapshot::{Snapshot, lay_out, restore, snapshot};
pub use start::{Hot, Instance, Start, Tier, check_start, start, stop, version};
pub use user::User;
pub use values::check_settings;
pub use weir_host::Error;
