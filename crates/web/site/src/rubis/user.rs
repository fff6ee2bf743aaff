//! Users of RUBiS, by nickname and password.

use crate::database::Connection;
use crate::http::Form;
use crate::{Error, account};

/// The user with this nickname and password.
pub(super) fn known(connection: &mut dyn Connection, form: &Form) -> Result<i64, Error> {
    Ok(account::known(connection, form, "users", "id")?.int(0)?)
}
