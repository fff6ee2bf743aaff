//! Orders: purchase, inquiry and display.

use serde_json::{Value, json};

use super::cart::{self, CartLine};
use super::customer;
use super::populate::discounted;
use super::site::Bookshop;
use super::words::{CARDS, SHIPPING};
use crate::Error;
use crate::database::{Connection, DatabaseError};
use crate::http::{Context, Form};

const DAY_S: i64 = 86_400;

/// A stock that falls below 10 is filled up by 21 (clause 2.7.3). One engine assigns columns from left to right, the
/// other all together: `i_restocked` is assigned first, from the old stock.
const TAKE_FROM_STOCK: &str = "UPDATE item SET \
    i_restocked = i_restocked + CASE WHEN i_stock - ? < 10 THEN 21 ELSE 0 END, \
    i_stock = i_stock - ? + CASE WHEN i_stock - ? < 10 THEN 21 ELSE 0 END WHERE i_id = ?";

impl Bookshop {
    /// Buy confirm: the cart becomes an order. A known token returns the existing order: a browser that lost the answer
    /// repeats its request, and nothing is ordered twice.
    pub(super) fn buy_confirm(&self, form: &Form, context: &mut Context<'_>) -> Result<Value, Error> {
        let (sc_id, c_id, token) = (form.id("sc_id")?, form.id("c_id")?, form.text("token", 64)?);
        let card = form.text("cc_type", 10)?;
        let shipping = form.text("shipping", 10)?;
        for (name, found, known) in [("cc_type", card, &CARDS[..]), ("shipping", shipping, &SHIPPING[..])] {
            if !known.contains(&found) {
                return Err(Error::bad(format!(
                    "parameter `{name}` is {found:?}, expected one of {}",
                    known.join(", ")
                )));
            }
        }
        let now_s = context.now_s;
        let (days, auth) = (self.draw(7), self.draw(i64::MAX >> 8));
        let mut order = |connection: &mut dyn Connection| {
            cart::lock(connection, sc_id)?;
            if let Some(order) = repeated(connection, token)? {
                return Ok(order);
            }
            let lines = cart::lines(connection, sc_id)?;
            if lines.is_empty() {
                return Err(Error::Refused(409, format!("shopping cart {sc_id} is empty")));
            }
            let sql = "SELECT c_discount, c_addr_id, addr_co_id FROM customer JOIN address ON addr_id = c_addr_id WHERE c_id = ?";
            let found = connection.run(sql, &[c_id.into()])?;
            let row = found.first().ok_or_else(|| Error::absent(format!("no customer {c_id}")))?;
            let (discount, bill_to, co_id) = (row.int(0)?, row.int(1)?, row.int(2)?);
            let ship_to = match form.maybe("ship_street1") {
                Some(_) => customer::address(connection, form, "ship_")?,
                None => bill_to,
            };
            let (sub_total, tax, total) = cart::sum(&lines, discount);
            let sql = "INSERT INTO orders (o_c_id, o_date, o_sub_total, o_tax, o_total, o_ship_type, o_ship_date, \
                       o_bill_addr_id, o_ship_addr_id, o_status, o_token) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'PENDING', ?) \
                       RETURNING o_id";
            let parameters = [
                c_id.into(),
                now_s.into(),
                sub_total.into(),
                tax.into(),
                total.into(),
                shipping.into(),
                (now_s + days * DAY_S).into(),
                bill_to.into(),
                ship_to.into(),
                token.into(),
            ];
            let o_id = connection.run(sql, &parameters)?.int()?;
            add_lines(connection, o_id, &lines, discount)?;
            let sql = "INSERT INTO cc_xacts (cx_o_id, cx_type, cx_num, cx_name, cx_expire, cx_auth_id, cx_xact_amt, \
                       cx_xact_date, cx_co_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
            let parameters = [
                o_id.into(),
                card.into(),
                form.text("cc_num", 20)?.into(),
                form.text("cc_name", 31)?.into(),
                form.int("cc_expire", 0, 1 << 40)?.into(),
                format!("{auth:015X}").into(),
                total.into(),
                now_s.into(),
                co_id.into(),
            ];
            connection.run(sql, &parameters)?;
            connection.run("DELETE FROM shopping_cart_line WHERE scl_sc_id = ?", &[sc_id.into()])?;
            cart::note_totals(connection, sc_id, &[], now_s)?;
            Ok(json!({"o_id": o_id, "total": total, "sub_total": sub_total, "repeated": false}))
        };
        let done = context.transaction(&mut order);
        match done {
            // The same token with another cart, at the same time: by now the other has committed.
            Err(Error::Database(error)) if error.is_duplicate() => {
                context.transaction(|connection| repeated(connection, token))?.ok_or(Error::Database(error))
            }
            done => done,
        }
    }

    /// Order inquiry: the form.
    pub(super) fn order_inquiry(&self, form: &Form, context: &mut Context<'_>) -> Result<Value, Error> {
        self.registration(form, context)
    }

    /// Order display: a customer's last order.
    pub(super) fn order_display(&self, form: &Form, context: &mut Context<'_>) -> Result<Value, Error> {
        let connection = &mut *context.connection;
        let c_id = customer::known(connection, form)?;
        let sql = "SELECT o_id, o_date, o_sub_total, o_tax, o_total, o_ship_type, o_ship_date, o_status, cx_type, \
                   bill.addr_street1, ship.addr_street1 FROM orders JOIN cc_xacts ON cx_o_id = o_id \
                   JOIN address bill ON bill.addr_id = o_bill_addr_id JOIN address ship ON ship.addr_id = o_ship_addr_id \
                   WHERE o_c_id = ? ORDER BY o_id DESC LIMIT 1";
        let found = connection.run(sql, &[c_id.into()])?;
        let Some(row) = found.first() else {
            return Ok(json!({"c_id": c_id, "o_id": null, "lines": []}));
        };
        let o_id = row.int(0)?;
        let sql = "SELECT ol_i_id, i_title, i_publisher, ol_cost, ol_qty, ol_discount, ol_comments FROM order_line \
                   JOIN item ON i_id = ol_i_id WHERE ol_o_id = ? ORDER BY ol_id";
        let lines = connection.run(sql, &[o_id.into()])?.rows;
        let lines = lines.iter().map(|line| {
            Ok(json!({
                "i_id": line.int(0)?, "title": line.text(1)?, "publisher": line.text(2)?, "cost": line.int(3)?,
                "qty": line.int(4)?, "discount": line.int(5)?, "comments": line.text(6)?,
            }))
        });
        Ok(json!({
            "c_id": c_id, "o_id": o_id, "date": row.int(1)?, "sub_total": row.int(2)?, "tax": row.int(3)?,
            "total": row.int(4)?, "ship_type": row.text(5)?, "ship_date": row.int(6)?, "status": row.text(7)?,
            "card": row.text(8)?, "bill_to": row.text(9)?, "ship_to": row.text(10)?,
            "lines": lines.collect::<Result<Vec<Value>, DatabaseError>>()?,
        }))
    }
}

/// The order of a token, if there is one.
fn repeated(connection: &mut dyn Connection, token: &str) -> Result<Option<Value>, Error> {
    let sql = "SELECT o_id, o_total, o_sub_total FROM orders WHERE o_token = ?";
    let found = connection.run(sql, &[token.into()])?;
    let Some(row) = found.first() else { return Ok(None) };
    Ok(Some(json!({"o_id": row.int(0)?, "total": row.int(1)?, "sub_total": row.int(2)?, "repeated": true})))
}

fn add_lines(
    connection: &mut dyn Connection,
    o_id: i64,
    lines: &[CartLine],
    discount: i64,
) -> Result<(), Error> {
    for (number, line) in (1i64..).zip(lines) {
        let sql = "INSERT INTO order_line (ol_o_id, ol_id, ol_i_id, ol_qty, ol_cost, ol_discount, ol_comments) \
                   VALUES (?, ?, ?, ?, ?, ?, ?)";
        let parameters = [
            o_id.into(),
            number.into(),
            line.i_id.into(),
            line.quantity.into(),
            discounted(line.cost, discount).into(),
            discount.into(),
            format!("line {number}").into(),
        ];
        connection.run(sql, &parameters)?;
        let quantity = line.quantity;
        connection
            .run(TAKE_FROM_STOCK, &[quantity.into(), quantity.into(), quantity.into(), line.i_id.into()])?;
    }
    Ok(())
}
