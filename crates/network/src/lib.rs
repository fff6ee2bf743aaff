//! Test network: network namespaces that stand for hosts, behind a bridge without a route out.
//!
//! Each host is a namespace below `/run/netns` with one interface, `eth0`; the bridge has its own namespace. The machine's own
//! namespace shows none of them. Each namespace is recorded in `STATE/network.json` before it is made, and [`down`] removes
//! exactly the recorded ones, also after a crash.
//!
//! Hosts share kernel, files and processes: only their networks are separate.

mod counters;
mod namespace;
mod spec;
mod state;
mod test_network;

pub use counters::{Counters, counters};
pub use namespace::{FOLDER as NAMESPACE_FOLDER, within};
pub use spec::{Spec, Subnet};
pub use state::{Host, Network};
pub use test_network::{down, status, up};
pub use weir_host::Error;
