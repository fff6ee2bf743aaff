//! User accounts of RUBiS and RUBBoS: initial rows, registration and login.

use rand::Rng;

use crate::Error;
use crate::browse::{Asked, Session};
use crate::database::{Connection, Row, Value};
use crate::http::Form;
use crate::text::letters;

/// First name, last name, nickname, password and address of a user of the initial content.
pub(crate) fn of_population(id: u64, rng: &mut impl Rng) -> [Value; 5] {
    [
        letters(rng, 3, 20).into(),
        letters(rng, 3, 20).into(),
        format!("user{id}").into(),
        format!("password{id}").into(),
        format!("user{id}@{}.com", letters(rng, 3, 9)).into(),
    ]
}

/// The same values from the registration form of a new user.
pub(crate) fn registered(form: &Form) -> Result<[Value; 5], Error> {
    Ok([
        form.text("firstname", 20)?.into(),
        form.text("lastname", 20)?.into(),
        form.text("nickname", 40)?.into(),
        form.text("password", 40)?.into(),
        form.text("email", 50)?.into(),
    ])
}

/// Columns of the user with this nickname and password.
pub(crate) fn known(
    connection: &mut dyn Connection,
    form: &Form,
    table: &str,
    columns: &str,
) -> Result<Row, Error> {
    let name = form.text("nickname", 40)?;
    let sql = format!("SELECT password, {columns} FROM {table} WHERE nickname = ?");
    let mut found = connection.run(&sql, &[name.into()])?.rows;
    let mut row = found.pop().ok_or_else(|| Error::absent(format!("no user is called {name}")))?;
    if row.text(0)? != form.text("password", 40)? {
        return Err(Error::Refused(403, "the password is wrong".into()));
    }
    row.0.remove(0);
    Ok(row)
}

/// Adds the login of a user of the initial content.
pub(crate) fn log_in(user: i64, asked: &mut Asked) {
    asked.put("nickname", &format!("user{user}")).put("password", &format!("password{user}"));
}

/// Adds the parameters of a registration.
pub(crate) fn register(session: &mut Session, asked: &mut Asked) {
    session.post(asked);
    let rng = &mut session.rng;
    asked.put("firstname", &letters(rng, 3, 20)).put("lastname", &letters(rng, 3, 20));
    asked.put("nickname", &format!("n{}", session.token)).put("password", "secret");
    asked.put("email", "new@example.com");
}
