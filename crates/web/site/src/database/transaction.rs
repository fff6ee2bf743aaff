//! Transactions with retries after a deadlock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::{Connection, DatabaseError};

/// Maximum attempts of a transaction.
pub const MOST_ATTEMPTS: u32 = 20;
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// Carries out `work` in one transaction. After a deadlock or a serialisation failure it is rolled back and carried out
/// again, up to [`MOST_ATTEMPTS`] times in all; each further attempt is counted in `retries`.
///
/// What `work` returns has been committed. An error of the work's own kind rolls back.
///
/// # Errors
/// The work's own; the last of the database's.
pub fn transaction<T, E: From<DatabaseError>>(
    connection: &mut dyn Connection,
    retries: &AtomicU64,
    mut work: impl FnMut(&mut dyn Connection) -> Result<T, E>,
    database_error: impl Fn(&E) -> Option<&DatabaseError>,
) -> Result<T, E> {
    let mut pause = FIRST_PAUSE;
    let mut attempt = 1;
    loop {
        connection.batch("BEGIN")?;
        let done = work(connection).and_then(|value| Ok(connection.batch("COMMIT").map(|()| value)?));
        let Err(error) = done else { return done };
        if connection.is_broken() {
            return Err(error);
        }
        connection.batch("ROLLBACK")?;
        if attempt == MOST_ATTEMPTS || !database_error(&error).is_some_and(DatabaseError::is_retryable) {
            return Err(error);
        }
        retries.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
        attempt += 1;
    }
}
