//! Customers: registration and login.

use serde_json::{Value, json};

use super::cart;
use super::site::Bookshop;
use crate::Error;
use crate::database::Connection;
use crate::http::{Context, Form};
use crate::text::digsyl;

/// A login is good for two hours (clause 2.6.3).
const LOGIN_S: i64 = 7200;

/// Inserts the address of a form, or finds it where it is already known. Its parameters begin with `prefix`.
pub(super) fn address(connection: &mut dyn Connection, form: &Form, prefix: &str) -> Result<i64, Error> {
    let text = |name: &str, most| form.text(&format!("{prefix}{name}"), most);
    let country = text("country", 50)?;
    let sql = "SELECT co_id FROM country WHERE co_name = ? ORDER BY co_id LIMIT 1";
    let found = connection.run(sql, &[country.into()])?;
    let co_id =
        found.first().ok_or_else(|| Error::bad(format!("country {country:?} is not known")))?.int(0)?;
    let parts = [
        text("street1", 40)?.into(),
        text("street2", 40)?.into(),
        text("city", 30)?.into(),
        text("state", 20)?.into(),
        text("zip", 10)?.into(),
        co_id.into(),
    ];
    let sql = "SELECT addr_id FROM address WHERE addr_street1 = ? AND addr_street2 = ? AND addr_city = ? \
               AND addr_state = ? AND addr_zip = ? AND addr_co_id = ? ORDER BY addr_id LIMIT 1";
    if let Some(row) = connection.run(sql, &parts)?.first() {
        return Ok(row.int(0)?);
    }
    let sql = "INSERT INTO address (addr_street1, addr_street2, addr_city, addr_state, addr_zip, addr_co_id) \
               VALUES (?, ?, ?, ?, ?, ?) RETURNING addr_id";
    Ok(connection.run(sql, &parts)?.int()?)
}

/// The customer of a name and a password.
pub(super) fn known(connection: &mut dyn Connection, form: &Form) -> Result<i64, Error> {
    let name = form.text("uname", 20)?;
    let sql = "SELECT c_id, c_passwd FROM customer WHERE c_uname = ? ORDER BY c_id LIMIT 1";
    let found = connection.run(sql, &[name.into()])?;
    let row = found.first().ok_or_else(|| Error::absent(format!("no customer is called {name}")))?;
    if row.text(1)? != form.text("passwd", 20)? {
        return Err(Error::Refused(403, "the password is wrong".into()));
    }
    Ok(row.int(0)?)
}

impl Bookshop {
    /// Customer registration: the form.
    pub(super) fn registration(&self, form: &Form, context: &mut Context<'_>) -> Result<Value, Error> {
        let (c_id, sc_id) = (form.maybe_id("c_id")?, form.maybe_id("sc_id")?);
        let name = match c_id {
            None => Value::Null,
            Some(c_id) => {
                let found =
                    context.connection.run("SELECT c_uname FROM customer WHERE c_id = ?", &[c_id.into()])?;
                found.first().ok_or_else(|| Error::absent(format!("no customer {c_id}")))?.text(0)?.into()
            }
        };
        Ok(json!({"c_id": c_id, "sc_id": sc_id, "uname": name}))
    }

    /// Buy request: a customer logs in or registers, and sees the total of the cart.
    pub(super) fn buy_request(&self, form: &Form, context: &mut Context<'_>) -> Result<Value, Error> {
        let sc_id = form.id("sc_id")?;
        let now_s = context.now_s;
        let discount = self.draw(51) - 1;
        context.transaction(|connection| {
            let c_id = if form.maybe("uname").is_some() {
                let c_id = known(connection, form)?;
                let sql = "UPDATE customer SET c_login = ?, c_expiration = ? WHERE c_id = ?";
                connection.run(sql, &[now_s.into(), (now_s + LOGIN_S).into(), c_id.into()])?;
                c_id
            } else {
                register(connection, form, discount, now_s)?
            };
            let sql = "SELECT c_uname, c_fname, c_lname, c_discount, addr_street1, addr_city, addr_zip, co_name FROM customer \
                       JOIN address ON addr_id = c_addr_id JOIN country ON co_id = addr_co_id WHERE c_id = ?";
            let found = connection.run(sql, &[c_id.into()])?;
            let row = found.first().ok_or_else(|| Error::absent(format!("no customer {c_id}")))?;
            cart::lock(connection, sc_id)?;
            let lines = cart::lines(connection, sc_id)?;
            Ok(json!({
                "c_id": c_id, "uname": row.text(0)?, "name": format!("{} {}", row.text(1)?, row.text(2)?),
                "discount": row.int(3)?,
                "address": format!("{}, {} {}, {}", row.text(4)?, row.text(5)?, row.text(6)?, row.text(7)?),
                "cart": cart::shown(sc_id, &lines, row.int(3)?),
            }))
        })
    }
}

/// Registers a customer; the name is DIGSYL of the id, which is only known then.
fn register(connection: &mut dyn Connection, form: &Form, discount: i64, now_s: i64) -> Result<i64, Error> {
    let addr_id = address(connection, form, "")?;
    let sql = "INSERT INTO customer (c_uname, c_passwd, c_fname, c_lname, c_addr_id, c_phone, c_email, c_since, c_last_visit, \
               c_login, c_expiration, c_discount, c_balance, c_ytd_pmt, c_birthdate, c_data) \
               VALUES ('', '', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, ?, ?) RETURNING c_id";
    let parameters = [
        form.text("fname", 17)?.into(),
        form.text("lname", 17)?.into(),
        addr_id.into(),
        form.text("phone", 18)?.into(),
        form.text("email", 50)?.into(),
        now_s.into(),
        now_s.into(),
        now_s.into(),
        (now_s + LOGIN_S).into(),
        discount.into(),
        form.int("birthdate", -10_000_000_000, 10_000_000_000)?.into(),
        form.text("data", 500)?.into(),
    ];
    let c_id = connection.run(sql, &parameters)?.int()?;
    let name = digsyl(c_id as u64, 0);
    let sql = "UPDATE customer SET c_uname = ?, c_passwd = ? WHERE c_id = ?";
    connection.run(sql, &[name.as_str().into(), name.to_lowercase().into(), c_id.into()])?;
    Ok(c_id)
}
