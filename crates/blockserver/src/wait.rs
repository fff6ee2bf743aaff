//! Waiting by polling, for kernel conditions without a notification.

use std::thread;
use std::time::{Duration, Instant};

/// Polls until `condition` holds; false at a timeout.
pub(crate) fn wait_until(timeout: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + timeout;
    loop {
        if condition() {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        thread::sleep(Duration::from_millis(5));
    }
}
