//! Worker thread of a collector: started, awaited until it records, stopped once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{JoinHandle, park_timeout};
use std::time::Duration;

use crate::Error;

/// A thread that records until it is stopped, and returns a `T`. Dropping it stops the thread and discards the `T`.
pub(crate) struct Worker<T> {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<T, Error>>>,
}

/// The thread's side of the worker.
pub(crate) struct Told<R> {
    stop: Arc<AtomicBool>,
    ready: Sender<R>,
}

impl<R> Told<R> {
    /// Reports that recording has begun.
    pub(crate) fn ready(&self, with: R) {
        // The starter waits for this, or has been dropped: then this thread is about to be stopped.
        let _ = self.ready.send(with);
    }

    /// Sleeps until a timeout or a stop; returns whether to continue.
    pub(crate) fn sleep(&self, at_most: Duration) -> bool {
        if !self.stop.load(Ordering::Acquire) {
            park_timeout(at_most);
        }
        !self.stop.load(Ordering::Acquire)
    }
}

impl<T: Send + 'static> Worker<T> {
    /// Starts a thread and waits until it is ready, or has failed.
    pub(crate) fn start<R: Send + 'static>(
        name: &str,
        work: impl FnOnce(&Told<R>) -> Result<T, Error> + Send + 'static,
    ) -> Result<(Self, R), Error> {
        let stop = Arc::new(AtomicBool::new(false));
        let (ready, started) = channel();
        let told = Told { stop: Arc::clone(&stop), ready };
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || work(&told))
            .map_err(|error| Error::Bpf(format!("the collector's thread cannot be started: {error}")))?;
        let mut worker = Worker { stop, thread: Some(thread) };
        match started.recv() {
            Ok(with) => Ok((worker, with)),
            // The thread ended before it was ready; its result says why.
            Err(_) => match worker.join() {
                Err(error) => Err(error),
                Ok(_) => Err(Error::Bpf("the collector ended before it was ready".to_owned())),
            },
        }
    }

    /// Stops the thread and returns its result.
    pub(crate) fn stop(mut self) -> Result<T, Error> {
        self.join()
    }
}

impl<T> Worker<T> {
    fn join(&mut self) -> Result<T, Error> {
        self.stop.store(true, Ordering::Release);
        let Some(thread) = self.thread.take() else {
            return Err(Error::Bpf("the collector has ended already".to_owned()));
        };
        thread.thread().unpark();
        thread.join().unwrap_or_else(|_| Err(Error::Bpf("the collector's thread panicked".to_owned())))
    }
}

// The result need not have a debug representation.
impl<T> std::fmt::Debug for Worker<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker").field("stop", &self.stop).finish_non_exhaustive()
    }
}

impl<T> Drop for Worker<T> {
    fn drop(&mut self) {
        if self.thread.is_some() {
            let _ = self.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_records_until_it_is_stopped() {
        let (worker, with) = Worker::start("test", |told: &Told<u32>| {
            told.ready(7);
            let mut visits = 0;
            while told.sleep(Duration::from_millis(1)) {
                visits += 1;
            }
            Ok(visits)
        })
        .unwrap();
        assert_eq!(with, 7);
        std::thread::sleep(Duration::from_millis(50));
        assert!(worker.stop().unwrap() > 0);
    }

    #[test]
    fn one_that_cannot_begin_says_why() {
        let failed = Worker::<()>::start("test", |_: &Told<()>| Err(Error::Bpf("no BPF here".to_owned())));
        assert!(failed.err().map(|error| error.to_string()).unwrap_or_default().contains("no BPF here"));
    }

    #[test]
    fn one_that_panics_is_an_error() {
        let failed = Worker::<()>::start("test", |_: &Told<()>| panic!("on purpose"));
        assert!(failed.err().map(|error| error.to_string()).unwrap_or_default().contains("panicked"));
    }

    #[test]
    fn dropping_it_ends_the_thread() {
        let ended = Arc::new(AtomicBool::new(false));
        let told_ended = Arc::clone(&ended);
        let (worker, ()) = Worker::start("test", move |told| {
            told.ready(());
            while told.sleep(Duration::from_secs(60)) {}
            told_ended.store(true, Ordering::Release);
            Ok(())
        })
        .unwrap();
        drop(worker);
        assert!(ended.load(Ordering::Acquire));
    }
}
