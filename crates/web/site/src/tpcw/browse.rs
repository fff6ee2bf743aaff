//! Browsing pages: home, lists, searches, a book.

use serde_json::{Value, json};

use super::site::{Bookshop, list};
use super::words::SUBJECTS;
use crate::Error;
use crate::database::Connection;
use crate::http::{Context, Form};

/// Books in a list (clauses 2.3, 2.8, 2.14).
const LIST: &str = "LIMIT 50";

impl Bookshop {
    /// Home: greets a known customer and shows promotions.
    pub(super) fn home(&self, form: &Form, context: &mut Context<'_>) -> Result<Value, Error> {
        let c_id = form.maybe_id("c_id")?;
        let name = match c_id {
            None => Value::Null,
            Some(c_id) => {
                let sql = "SELECT c_fname, c_lname FROM customer WHERE c_id = ?";
                let found = context.connection.run(sql, &[c_id.into()])?;
                let row = found.first().ok_or_else(|| Error::absent(format!("no customer {c_id}")))?;
                format!("{} {}", row.text(0)?, row.text(1)?).into()
            }
        };
        let items = self.promoted(context.connection, None)?;
        Ok(json!({"c_id": c_id, "name": name, "items": items}))
    }

    /// Promotions: five books that are related to one, or to any.
    pub(super) fn promoted(&self, connection: &mut dyn Connection, to: Option<i64>) -> Result<Value, Error> {
        let sql =
            "SELECT i_related1, i_related2, i_related3, i_related4, i_related5 FROM item WHERE i_id = ?";
        let item = to.unwrap_or_else(|| self.draw(self.items));
        let found = connection.run(sql, &[item.into()])?;
        let row = found.first().ok_or_else(|| Error::absent(format!("no item {item}")))?;
        let sql = "SELECT i_id, i_title, a_fname, a_lname, i_thumbnail FROM item JOIN author ON a_id = i_a_id \
                   WHERE i_id IN (?, ?, ?, ?, ?) ORDER BY i_id";
        list(&connection.run(sql, &row.0)?.rows)
    }

    /// New products: the 50 newest books of a subject.
    pub(super) fn new_products(&self, form: &Form, context: &mut Context<'_>) -> Result<Value, Error> {
        let subject = subject(form)?;
        let sql = format!(
            "SELECT i_id, i_title, a_fname, a_lname FROM item JOIN author ON a_id = i_a_id \
             WHERE i_subject = ? ORDER BY i_pub_date DESC, i_title {LIST}"
        );
        Ok(
            json!({"subject": subject, "items": list(&context.connection.run(&sql, &[subject.into()])?.rows)?}),
        )
    }

    /// Best sellers: the 50 books of a subject that were sold most often in the last 3,333 orders.
    pub(super) fn best_sellers(&self, form: &Form, context: &mut Context<'_>) -> Result<Value, Error> {
        let subject = subject(form)?;
        let sql = format!(
            "SELECT i_id, i_title, a_fname, a_lname, sold.qty \
             FROM (SELECT ol_i_id, SUM(ol_qty) AS qty FROM order_line \
                   WHERE ol_o_id > (SELECT MAX(o_id) - 3333 FROM orders) GROUP BY ol_i_id) sold \
             JOIN item ON i_id = sold.ol_i_id JOIN author ON a_id = i_a_id \
             WHERE i_subject = ? ORDER BY sold.qty DESC, i_id {LIST}"
        );
        Ok(
            json!({"subject": subject, "items": list(&context.connection.run(&sql, &[subject.into()])?.rows)?}),
        )
    }

    /// Product detail: all about a book.
    pub(super) fn product(&self, form: &Form, context: &mut Context<'_>) -> Result<Value, Error> {
        let i_id = form.id("i_id")?;
        let sql = "SELECT i_title, a_fname, a_lname, i_subject, i_desc, i_srp, i_cost, i_stock, i_isbn, i_page, i_backing, \
                   i_dimensions, i_publisher, i_pub_date, i_avail, i_image \
                   FROM item JOIN author ON a_id = i_a_id WHERE i_id = ?";
        let found = context.connection.run(sql, &[i_id.into()])?;
        let row = found.first().ok_or_else(|| Error::absent(format!("no item {i_id}")))?;
        Ok(json!({
            "i_id": i_id, "title": row.text(0)?, "author": format!("{} {}", row.text(1)?, row.text(2)?),
            "subject": row.text(3)?, "description": row.text(4)?, "srp": row.int(5)?, "cost": row.int(6)?,
            "stock": row.int(7)?, "isbn": row.text(8)?, "pages": row.int(9)?, "backing": row.text(10)?,
            "dimensions": row.text(11)?, "publisher": row.text(12)?, "published": row.int(13)?,
            "available": row.int(14)?, "image": row.text(15)?,
        }))
    }

    /// Search request: the form and promotions.
    pub(super) fn search_request(&self, _: &Form, context: &mut Context<'_>) -> Result<Value, Error> {
        Ok(json!({"items": self.promoted(context.connection, None)?}))
    }

    /// Search results: up to 50 books by author, title or subject.
    pub(super) fn search_results(&self, form: &Form, context: &mut Context<'_>) -> Result<Value, Error> {
        let kind = form.text("type", 7)?;
        let (condition, order, wanted) = match kind {
            "author" => ("a_lname LIKE ?", "i_title", format!("{}%", plain(form.text("search", 60)?)?)),
            "title" => ("i_title LIKE ?", "i_title", format!("{}%", plain(form.text("search", 60)?)?)),
            "subject" => ("i_subject = ?", "i_title", subject(form)?.to_owned()),
            other => {
                return Err(Error::bad(format!(
                    "parameter `type` is {other:?}, expected author, title or subject"
                )));
            }
        };
        let sql = format!(
            "SELECT i_id, i_title, a_fname, a_lname FROM item JOIN author ON a_id = i_a_id \
             WHERE {condition} ORDER BY {order}, i_id {LIST}"
        );
        let items = list(&context.connection.run(&sql, &[wanted.into()])?.rows)?;
        Ok(json!({"type": kind, "items": items, "promoted": self.promoted(context.connection, None)?}))
    }
}

fn subject(form: &Form) -> Result<&str, Error> {
    let found = form.text("subject", 60)?;
    if SUBJECTS.contains(&found) {
        Ok(found)
    } else {
        Err(Error::bad(format!("parameter `subject` is {found:?}, which is none of the 24")))
    }
}

/// A text without the wildcards of LIKE.
fn plain(text: &str) -> Result<&str, Error> {
    if text.contains(['%', '_', '\\']) {
        return Err(Error::bad("parameter `search` may not hold %, _ or \\"));
    }
    Ok(text)
}
