//! Window: limit on the outstanding requests of one NBD client.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Maximum outstanding requests of one connection.
const MOST_REQUESTS: usize = 1024;
/// Maximum bytes of these requests.
const MOST_BYTES: usize = 64 << 20;

/// Counts requests from arrival until their replies are written, and delays a client at the limit.
#[derive(Debug, Default)]
pub(super) struct Window {
    /// Requests, and bytes.
    used: Mutex<(usize, usize)>,
    freed: Condvar,
}

impl Window {
    /// Waits until the window has room for a request, and reserves it.
    pub fn enter(&self, bytes: usize) {
        let mut used = self.lock();
        while used.0 >= MOST_REQUESTS || (used.0 > 0 && used.1 + bytes > MOST_BYTES) {
            used = self.freed.wait(used).unwrap_or_else(PoisonError::into_inner);
        }
        *used = (used.0 + 1, used.1 + bytes);
    }

    /// Frees the room of a request.
    pub fn leave(&self, bytes: usize) {
        let mut used = self.lock();
        *used = (used.0.saturating_sub(1), used.1.saturating_sub(bytes));
        self.freed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, (usize, usize)> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
