//! Parallel work on many files.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::Error;

/// Calls `work` with the numbers from 0 to `count`, in about this order, on `workers` threads; `tools` makes each thread's state.
///
/// # Errors
/// The error of a worker; the others continue to the end.
pub(crate) fn each<T>(
    count: usize,
    workers: usize,
    tools: impl Fn() -> T + Sync,
    work: impl Fn(&mut T, usize) -> Result<(), Error> + Sync,
) -> Result<(), Error> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut tools = tools();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= count {
                return Ok(());
            }
            work(&mut tools, at)?;
        }
    };
    if workers < 2 {
        return worker();
    }
    thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(worker)).collect();
        let done = threads.into_iter().map(|thread| {
            thread.join().unwrap_or_else(|_| Err(Error::Failed("a file worker thread panicked".to_owned())))
        });
        // Waits for all workers, also after an error.
        done.collect::<Vec<_>>().into_iter().collect()
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn each_number_comes_once_and_an_error_is_told() {
        for workers in [1, 3] {
            let seen = Mutex::new(Vec::new());
            each(
                100,
                workers,
                || (),
                |(), at| {
                    seen.lock().unwrap().push(at);
                    Ok(())
                },
            )
            .unwrap();
            let mut seen = seen.into_inner().unwrap();
            seen.sort_unstable();
            assert_eq!(seen, (0..100).collect::<Vec<_>>());
            let failing = each(
                100,
                workers,
                || (),
                |(), at| match at {
                    50 => Err(Error::Failed("fifty".to_owned())),
                    _ => Ok(()),
                },
            );
            assert!(failing.unwrap_err().to_string().contains("fifty"));
        }
    }
}
