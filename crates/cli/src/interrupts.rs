//! Ctrl-C ends a command in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;

/// Set by the first Ctrl-C; the second one ends the process.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Turns Ctrl-C into a request to stop, while it exists.
pub struct Watcher {
    ended: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<()>,
}

impl Watcher {
    /// Begins to watch; `stop` is set by SIGINT and SIGTERM.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub fn start(stop: Arc<AtomicBool>) -> anyhow::Result<Self> {
        extern "C" fn interrupt(signal: libc::c_int) {
            INTERRUPTED.store(true, Ordering::Relaxed);
            // SAFETY: signal(2) may be called in a handler; the default action for the next one.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        let handler = interrupt as extern "C" fn(libc::c_int) as libc::sighandler_t;
        for signal in [libc::SIGINT, libc::SIGTERM] {
            // SAFETY: the handler only stores to an atomic and calls signal(2).
            unsafe { libc::signal(signal, handler) };
        }
        let ended = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&ended);
        let thread = std::thread::Builder::new()
            .name("interrupts".to_owned())
            .spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    if INTERRUPTED.load(Ordering::Relaxed) {
                        stop.store(true, Ordering::Relaxed);
                    }
                    std::thread::park_timeout(Duration::from_millis(100));
                }
            })
            .context("cannot watch for interrupts")?;
        Ok(Watcher { ended, thread })
    }

    /// Watches no more.
    pub fn end(self) {
        self.ended.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        // It only loops; there is nothing to learn from how it ended.
        let _ = self.thread.join();
    }
}
