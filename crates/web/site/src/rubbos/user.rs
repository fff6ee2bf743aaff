//! Users and authors of RUBBoS, by nickname and password.

use crate::database::Connection;
use crate::http::Form;
use crate::{Error, account};

/// The user with this nickname and password.
pub(super) fn known(connection: &mut dyn Connection, form: &Form) -> Result<i64, Error> {
    Ok(known_with_access(connection, form)?.0)
}

/// The author with this nickname and password.
pub(super) fn author(connection: &mut dyn Connection, form: &Form) -> Result<i64, Error> {
    match known_with_access(connection, form)? {
        (id, 1) => Ok(id),
        _ => Err(Error::Refused(403, "only authors may do this".into())),
    }
}

fn known_with_access(connection: &mut dyn Connection, form: &Form) -> Result<(i64, i64), Error> {
    let row = account::known(connection, form, "board_users", "id, access")?;
    Ok((row.int(0)?, row.int(1)?))
}
