//! A test network: hosts as network namespaces behind a bridge without a route out.
//!
//! Each host is a namespace below `/run/netns` with one interface, `eth0`; the bridge has a namespace of its own. Nothing of it
//! is visible in the namespace of the machine itself, and no route leads out. Whatever is made is written down before in
//! `STATE/network.json`, so that [`down`] takes back exactly that, also after a crash.
//!
//! Hosts share kernel, files and processes: only their networks are apart.

mod counters;
mod lab;
mod namespace;
mod spec;
mod state;

pub use counters::{Counters, counters};
pub use lab::{down, status, up};
pub use namespace::{FOLDER as NAMESPACE_FOLDER, within};
pub use spec::{Spec, Subnet};
pub use state::{Host, Network};
pub use weir_host::Error;
