//! Connection pool.

use std::ops::{Deref, DerefMut};
use std::sync::{Condvar, Mutex, PoisonError};

use super::{Address, Connection, DatabaseError};

/// Connections, each used by one thread at a time; broken ones are replaced at the next use.
pub struct Pool {
    address: Address,
    state: Mutex<State>,
    returned: Condvar,
}

struct State {
    idle: Vec<Box<dyn Connection>>,
    /// Connections that may still be opened.
    room: usize,
}

/// A connection on loan.
pub struct Lease<'a> {
    pool: &'a Pool,
    /// Present until it is dropped.
    connection: Option<Box<dyn Connection>>,
}

impl Pool {
    /// A pool of at most `size` connections; the first is opened immediately.
    ///
    /// # Errors
    /// The database cannot be opened.
    pub fn new(address: Address, size: usize) -> Result<Self, DatabaseError> {
        let first = address.connect()?;
        let state = State { idle: vec![first], room: size.max(1) - 1 };
        Ok(Pool { address, state: Mutex::new(state), returned: Condvar::new() })
    }

    /// Where it connects to.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Borrows a connection; waits for one where all are in use.
    ///
    /// # Errors
    /// A connection has to be opened, and cannot be.
    pub fn lease(&self) -> Result<Lease<'_>, DatabaseError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(connection) = state.idle.pop() {
                return Ok(Lease { pool: self, connection: Some(connection) });
            }
            if state.room > 0 {
                state.room -= 1;
                drop(state);
                return match self.address.connect() {
                    Ok(connection) => Ok(Lease { pool: self, connection: Some(connection) }),
                    Err(error) => {
                        self.release_slot();
                        Err(error)
                    }
                };
            }
            state = self.returned.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn release_slot(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).room += 1;
        self.returned.notify_one();
    }

    /// Closes the connections that are not in use: after one has broken the others have, too.
    fn close_idle(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.room += state.idle.len();
        let idle = std::mem::take(&mut state.idle);
        drop(state);
        drop(idle);
        self.returned.notify_all();
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        match self.connection.take() {
            Some(connection) if !connection.is_broken() => {
                let mut state = self.pool.state.lock().unwrap_or_else(PoisonError::into_inner);
                state.idle.push(connection);
                drop(state);
                self.pool.returned.notify_one();
            }
            _ => {
                self.pool.close_idle();
                self.pool.release_slot();
            }
        }
    }
}

impl Deref for Lease<'_> {
    type Target = dyn Connection;

    fn deref(&self) -> &Self::Target {
        match &self.connection {
            Some(connection) => &**connection,
            None => unreachable!("a lease holds its connection until it is dropped"),
        }
    }
}

impl DerefMut for Lease<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match &mut self.connection {
            Some(connection) => &mut **connection,
            None => unreachable!("a lease holds its connection until it is dropped"),
        }
    }
}
