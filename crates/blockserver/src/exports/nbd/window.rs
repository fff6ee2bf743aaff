//! Limit on the outstanding requests of one client.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Requests of one connection that are not answered.
const MOST_REQUESTS: usize = 1024;
/// And their bytes.
const MOST_BYTES: usize = 64 << 20;

/// Counts requests from their arrival until their answers are written, and stops a client that asks for more than its due.
#[derive(Debug, Default)]
pub(super) struct Window {
    /// Requests, and bytes.
    used: Mutex<(usize, usize)>,
    freed: Condvar,
}

impl Window {
    /// Waits until there is room for a request, and takes it.
    pub fn enter(&self, bytes: usize) {
        let mut used = self.lock();
        while used.0 >= MOST_REQUESTS || (used.0 > 0 && used.1 + bytes > MOST_BYTES) {
            used = self.freed.wait(used).unwrap_or_else(PoisonError::into_inner);
        }
        *used = (used.0 + 1, used.1 + bytes);
    }

    /// A request is answered.
    pub fn leave(&self, bytes: usize) {
        let mut used = self.lock();
        *used = (used.0.saturating_sub(1), used.1.saturating_sub(bytes));
        self.freed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, (usize, usize)> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
