//! Barrier of a run of several hosts: the instant at which all of them begin.

use std::thread::sleep;
use std::time::Duration;

use weir_coordination::Coordination;

use crate::Error;

/// Waits until a run of several hosts begins. Returns its epoch on this host's clock, `lead` ahead.
pub(crate) fn begin(peers: &mut Coordination, lead: Duration) -> Result<i64, Error> {
    let epoch_ns = peers.begin()?;
    let left_ns = epoch_ns - weir_host::clock::monotonic_ns();
    sleep(Duration::from_nanos(u64::try_from(left_ns).unwrap_or(0)).saturating_sub(lead));
    Ok(epoch_ns)
}
