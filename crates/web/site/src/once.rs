//! Idempotent requests: a repeated token does nothing twice.

use serde_json::{Value, json};

use crate::Error;
use crate::database::Connection;
use crate::http::Context;

/// Carries out `work` in a transaction, unless `find` (a query for id and amount with the token as its only parameter)
/// finds the result of the same request; then these are returned. `lock` is executed first: a repeat that arrives during
/// the first request waits there. The work returns id and amount.
pub(crate) fn once(
    context: &mut Context<'_>,
    token: &str,
    find: &str,
    lock: impl Fn(&mut dyn Connection) -> Result<(), Error>,
    mut work: impl FnMut(&mut dyn Connection) -> Result<(i64, i64), Error>,
) -> Result<Value, Error> {
    let answer =
        |(id, amount): (i64, i64), repeated: bool| json!({"id": id, "amount": amount, "repeated": repeated});
    let found = |connection: &mut dyn Connection| -> Result<Option<(i64, i64)>, Error> {
        let found = connection.run(find, &[token.into()])?;
        found.first().map(|row| Ok((row.int(0)?, row.int(1)?))).transpose()
    };
    let done = context.transaction(|connection| {
        lock(connection)?;
        Ok(match found(connection)? {
            Some(done) => answer(done, true),
            None => answer(work(connection)?, false),
        })
    });
    match done {
        // The other request with this token has committed in between.
        Err(Error::Database(error)) if error.is_duplicate() => match context.transaction(found)? {
            Some(done) => Ok(answer(done, true)),
            None => Err(Error::Refused(409, "this name is taken".into())),
        },
        done => done,
    }
}
