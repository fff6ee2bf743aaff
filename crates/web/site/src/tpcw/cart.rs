//! The shopping cart.

use serde_json::{Value, json};

use super::populate::{discounted, tax_and_total};
use super::site::Bookshop;
use crate::Error;
use crate::database::Connection;
use crate::http::{Context, Form};

/// Different books in a cart (clause 2.4.3).
const MOST_LINES: usize = 100;
const LARGEST_QUANTITY: i64 = 9999;

/// A book in a cart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CartLine {
    pub i_id: i64,
    pub quantity: i64,
    /// Price of one, before the discount of the customer.
    pub cost: i64,
    pub title: String,
}

/// Subtotal, tax and total of a cart for a customer with this discount, in per cent.
pub(super) fn sum(lines: &[CartLine], discount: i64) -> (i64, i64, i64) {
    let sub_total = lines.iter().map(|line| line.quantity * discounted(line.cost, discount)).sum();
    if lines.is_empty() {
        return (0, 0, 0);
    }
    let (tax, total) = tax_and_total(sub_total, lines.len() as i64);
    (sub_total, tax, total)
}

/// The books in a cart, by id: in this order rows of `item` are locked.
pub(super) fn lines(connection: &mut dyn Connection, sc_id: i64) -> Result<Vec<CartLine>, Error> {
    let sql = "SELECT scl_i_id, scl_qty, scl_cost, i_title FROM shopping_cart_line JOIN item ON i_id = scl_i_id \
               WHERE scl_sc_id = ? ORDER BY scl_i_id";
    let mut lines = Vec::new();
    for row in connection.run(sql, &[sc_id.into()])?.rows {
        lines.push(CartLine {
            i_id: row.int(0)?,
            quantity: row.int(1)?,
            cost: row.int(2)?,
            title: row.text(3)?.to_owned(),
        });
    }
    Ok(lines)
}

/// Locks a cart until the end of the transaction.
pub(super) fn lock(connection: &mut dyn Connection, sc_id: i64) -> Result<(), Error> {
    let found =
        connection.run("SELECT sc_id FROM shopping_cart WHERE sc_id = ? FOR UPDATE", &[sc_id.into()])?;
    found.first().map(|_| ()).ok_or_else(|| Error::absent(format!("no shopping cart {sc_id}")))
}

/// Stores the subtotal of a cart, without discount.
pub(super) fn note_totals(
    connection: &mut dyn Connection,
    sc_id: i64,
    lines: &[CartLine],
    now_s: i64,
) -> Result<(), Error> {
    let (sub_total, _, total) = sum(lines, 0);
    let sql = "UPDATE shopping_cart SET sc_time = ?, sc_sub_total = ?, sc_total = ? WHERE sc_id = ?";
    connection.run(sql, &[now_s.into(), sub_total.into(), total.into(), sc_id.into()])?;
    Ok(())
}

/// A cart as JSON.
pub(super) fn shown(sc_id: i64, lines: &[CartLine], discount: i64) -> Value {
    let (sub_total, tax, total) = sum(lines, discount);
    let lines: Vec<Value> = lines
        .iter()
        .map(|line| json!({"i_id": line.i_id, "qty": line.quantity, "cost": line.cost, "title": line.title}))
        .collect();
    json!({"sc_id": sc_id, "lines": lines, "sub_total": sub_total, "tax": tax, "total": total})
}

/// New quantities: `ID:QUANTITY,ID:QUANTITY`; 0 takes a book out.
fn quantities(form: &Form) -> Result<Vec<(i64, i64)>, Error> {
    let Some(text) = form.maybe("qty") else { return Ok(Vec::new()) };
    let mut found = text
        .split(',')
        .map(|pair| {
            let (i_id, quantity) = pair.split_once(':')?;
            let quantity = quantity.parse().ok().filter(|number| (0..=LARGEST_QUANTITY).contains(number))?;
            Some((i_id.parse().ok()?, quantity))
        })
        .collect::<Option<Vec<(i64, i64)>>>()
        .ok_or_else(|| {
            Error::bad(format!("parameter `qty` is {text:?}, expected ID:QUANTITY,... with 0 to 9999"))
        })?;
    found.sort_unstable();
    Ok(found)
}

impl Bookshop {
    /// Shopping cart: makes one where there is none, adds a book, changes quantities. A cart that would be empty gets a
    /// book by chance.
    pub(super) fn cart(&self, form: &Form, context: &mut Context<'_>) -> Result<Value, Error> {
        let (given, add, changes) = (form.maybe_id("sc_id")?, form.maybe_id("i_id")?, quantities(form)?);
        let now_s = context.now_s;
        context.transaction(|connection| {
            let sc_id = match given {
                Some(sc_id) => {
                    lock(connection, sc_id)?;
                    sc_id
                }
                None => {
                    let sql = "INSERT INTO shopping_cart (sc_time, sc_sub_total, sc_total) VALUES (?, 0, 0) RETURNING sc_id";
                    connection.run(sql, &[now_s.into()])?.int()?
                }
            };
            if let Some(i_id) = add {
                self.add(connection, sc_id, i_id)?;
            }
            for (i_id, quantity) in &changes {
                let (sql, parameters) = if *quantity == 0 {
                    let sql = "DELETE FROM shopping_cart_line WHERE scl_sc_id = ? AND scl_i_id = ?";
                    (sql, vec![sc_id.into(), (*i_id).into()])
                } else {
                    let sql = "UPDATE shopping_cart_line SET scl_qty = ? WHERE scl_sc_id = ? AND scl_i_id = ?";
                    (sql, vec![(*quantity).into(), sc_id.into(), (*i_id).into()])
                };
                connection.run(sql, &parameters)?;
            }
            if lines(connection, sc_id)?.is_empty() {
                self.add(connection, sc_id, self.draw(self.items))?;
            }
            // Prices may have changed since the books were put in (clause 2.4.3).
            let sql = "UPDATE shopping_cart_line SET scl_cost = (SELECT i_cost FROM item WHERE i_id = scl_i_id) \
                       WHERE scl_sc_id = ?";
            connection.run(sql, &[sc_id.into()])?;
            let lines = lines(connection, sc_id)?;
            note_totals(connection, sc_id, &lines, now_s)?;
            Ok(shown(sc_id, &lines, 0))
        })
    }

    fn add(&self, connection: &mut dyn Connection, sc_id: i64, i_id: i64) -> Result<(), Error> {
        let found = connection.run("SELECT i_cost FROM item WHERE i_id = ?", &[i_id.into()])?;
        let cost = found.first().ok_or_else(|| Error::absent(format!("no item {i_id}")))?.int(0)?;
        let there = lines(connection, sc_id)?;
        if there.iter().any(|line| line.i_id == i_id) {
            let sql = "UPDATE shopping_cart_line SET scl_qty = scl_qty + 1 WHERE scl_sc_id = ? AND scl_i_id = ? AND scl_qty < ?";
            connection.run(sql, &[sc_id.into(), i_id.into(), LARGEST_QUANTITY.into()])?;
        } else if there.len() < MOST_LINES {
            let sql =
                "INSERT INTO shopping_cart_line (scl_sc_id, scl_i_id, scl_qty, scl_cost) VALUES (?, ?, 1, ?)";
            connection.run(sql, &[sc_id.into(), i_id.into(), cost.into()])?;
        }
        Ok(())
    }
}
