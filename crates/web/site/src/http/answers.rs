//! Interface between the application server and the pages of a benchmark.

use std::sync::atomic::AtomicU64;

use serde_json::Value;

use super::request::Form;
use crate::Error;
use crate::database::{Connection, transaction};

/// Handler of the pages of a benchmark.
pub(crate) trait Answers: Send + Sync {
    /// Answers a page.
    ///
    /// # Errors
    /// The database fails, or the request cannot be answered.
    fn answer(&self, page: &str, form: &Form, context: &mut Context<'_>) -> Result<Value, Error>;
}

impl<F> Answers for F
where
    F: Fn(&str, &Form, &mut Context<'_>) -> Result<Value, Error> + Send + Sync,
{
    fn answer(&self, page: &str, form: &Form, context: &mut Context<'_>) -> Result<Value, Error> {
        self(page, form, context)
    }
}

/// Context of a page: connection, retries and time.
pub struct Context<'a> {
    /// A connection, on loan for this page.
    pub connection: &'a mut dyn Connection,
    /// Transactions that were tried again.
    pub retries: &'a AtomicU64,
    /// Seconds since 1970.
    pub now_s: i64,
}

impl Context<'_> {
    /// Carries out a transaction; see [`crate::database::transaction`].
    ///
    /// # Errors
    /// As the work.
    pub fn transaction<T>(
        &mut self,
        work: impl FnMut(&mut dyn Connection) -> Result<T, Error>,
    ) -> Result<T, Error> {
        transaction(self.connection, self.retries, work, Error::database)
    }
}
