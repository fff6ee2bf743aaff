//! Servers that take part in a study, and the clusters of network file systems that are made of them.
//!
//! A service is described in `specs/NAME.yml`: [`start`] writes its configuration, prepares its data where there are none,
//! starts it in the foreground as an unprivileged user, in a network namespace and a control group of its own, and waits until
//! it answers. The process is written down before it is the program (see [`process`]), so that whoever comes after a crash
//! ends exactly that one. [`cluster`] starts the services of a network file system on the hosts of a test network and mounts
//! it as a client does; [`spread`] does so where these hosts are machines of their own.

mod brick;
mod bring_up;
pub mod cgroup;
pub mod client;
pub mod cluster;
mod data_folder;
mod description;
mod handed_on;
#[cfg(test)]
mod injection;
pub mod io_controller;
mod io_group;
mod limit;
pub mod process;
mod ready;
mod service;
mod snapshot;
pub mod spread;
mod user;
mod values;

pub use brick::Brick;
pub use bring_up::bring_up;
pub use cgroup::Group;
pub use data_folder::DataFolder;
pub use description::{Ready, Service, Signal, Stop};
pub use io_group::{IoVersion, cost_file, io_version};
pub use limit::Disk;
pub use process::{Scope, stop_all};
pub use service::{Hot, Instance, Start, Tier, check_start, start, stop, version};
pub use snapshot::{Snapshot, lay_out, restore, snapshot};
pub use user::User;
pub use values::check_settings;
pub use weir_host::Error;
