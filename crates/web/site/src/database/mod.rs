//! Connections to PostgreSQL and MariaDB: blocking, one per thread, statements prepared once.
//!
//! PostgreSQL's messages and its authentication are those of `postgres-protocol`; the packets of MariaDB and MySQL are
//! written here (`mariadb.rs` says why). A server that dies is an I/O error on a socket with a time limit. Statements are
//! written once, with `?` for a parameter; times are whole seconds since 1970 and money is whole cents, so both engines
//! store and add the same values.

mod address;
mod error;
mod mariadb;
mod message;
mod packet;
mod pool;
mod postgresql;
mod stream;
mod transaction;
mod value;

pub use address::{Address, Place};
pub use error::DatabaseError;
pub use pool::{Lease, Pool};
pub use transaction::{MOST_ATTEMPTS, transaction};
pub use value::{Row, Value};

/// Decodes messages from a server of either engine.
pub(crate) fn fuzzing(data: &[u8]) {
    let (first, second) = data.split_at(data.len() / 2);
    message::fuzzing(data);
    let _ = (packet::greeting(data), packet::server_error(data));
    let columns: Vec<_> = [first, second].into_iter().filter_map(packet::column).collect();
    let _ = packet::row(data, &columns);
}

/// A database engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// PostgreSQL 15 or later.
    PostgreSql,
    /// MariaDB 10.11 or later; MySQL 8.
    MariaDb,
}

impl Engine {
    /// Its name, as in addresses.
    pub fn name(self) -> &'static str {
        match self {
            Engine::PostgreSql => "postgresql",
            Engine::MariaDb => "mariadb",
        }
    }
}

/// Result of a statement.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// The rows of a query, or of a `RETURNING` clause.
    pub rows: Vec<Row>,
    /// Changed rows; for an UPDATE the matched rows, even if their values were equal before.
    pub affected: u64,
}

/// An open connection.
pub trait Connection: Send {
    /// The engine at the other end.
    fn engine(&self) -> Engine;

    /// Carries out one statement with parameters in place of its `?`; the statement is prepared at its first use.
    ///
    /// # Errors
    /// The server refused it, or the connection is lost.
    fn run(&mut self, sql: &str, parameters: &[Value]) -> Result<Answer, DatabaseError>;

    /// Carries out statements without parameters, such as definitions, one after another.
    ///
    /// # Errors
    /// As [`Connection::run`].
    fn batch(&mut self, sql: &str) -> Result<(), DatabaseError>;

    /// Adds rows in bulk: `COPY`, or `INSERT` of many rows at a time.
    ///
    /// # Errors
    /// As [`Connection::run`].
    fn bulk(&mut self, table: &str, columns: &[&str], rows: &[Row]) -> Result<u64, DatabaseError>;

    /// Whether the connection is unusable, because the server is gone or sent an unknown message.
    fn is_broken(&self) -> bool;
}

impl Address {
    /// Opens a connection.
    ///
    /// # Errors
    /// The server cannot be reached or refuses the user, or the file of the password cannot be used.
    pub fn connect(&self) -> Result<Box<dyn Connection>, DatabaseError> {
        match self.engine {
            Engine::PostgreSql => Ok(Box::new(postgresql::PostgreSql::connect(self)?)),
            Engine::MariaDb => Ok(Box::new(mariadb::MariaDb::connect(self)?)),
        }
    }
}
