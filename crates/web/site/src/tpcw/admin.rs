//! Administration pages: a book's price, pictures and related books.

use serde_json::{Value, json};

use super::site::Bookshop;
use crate::Error;
use crate::database::Value as Cell;
use crate::http::{Context, Form};

/// Orders that decide which books are related (clause 2.16.3).
const ORDERS_LOOKED_AT: i64 = 10_000;

impl Bookshop {
    /// Admin request: the current data of a book.
    pub(super) fn admin_request(&self, form: &Form, context: &mut Context<'_>) -> Result<Value, Error> {
        self.product(form, context)
    }

    /// Admin confirm: changes a book, and sets its related books to those that its last buyers bought most.
    pub(super) fn admin_confirm(&self, form: &Form, context: &mut Context<'_>) -> Result<Value, Error> {
        let i_id = form.id("i_id")?;
        let cost = form.int("cost", 1, 1_000_000_000)?;
        let (image, thumbnail) = (form.text("image", 40)?, form.text("thumbnail", 40)?);
        let now_s = context.now_s;
        context.transaction(|connection| {
            let newest = connection.run("SELECT COALESCE(MAX(o_id), 0) FROM orders", &[])?.int()?;
            let since = Cell::from(newest - ORDERS_LOOKED_AT);
            let sql = "SELECT others.ol_i_id, SUM(others.ol_qty) AS qty FROM orders JOIN order_line others ON others.ol_o_id = o_id \
                       WHERE o_id > ? AND others.ol_i_id <> ? AND o_c_id IN \
                       (SELECT buyers.o_c_id FROM orders buyers JOIN order_line bought ON bought.ol_o_id = buyers.o_id \
                        WHERE bought.ol_i_id = ? AND buyers.o_id > ?) \
                       GROUP BY others.ol_i_id ORDER BY qty DESC, others.ol_i_id LIMIT 5";
            let mut related = connection.run(sql, &[since.clone(), i_id.into(), i_id.into(), since])?.ints()?;
            // Too few buyers: the books that follow, as any other choice.
            let mut next = i_id;
            while related.len() < 5 {
                next = next % self.items + 1;
                if self.items < 7 || (next != i_id && !related.contains(&next)) {
                    related.push(next);
                }
            }
            let sql = "UPDATE item SET i_cost = ?, i_image = ?, i_thumbnail = ?, i_pub_date = ?, i_related1 = ?, i_related2 = ?, \
                       i_related3 = ?, i_related4 = ?, i_related5 = ? WHERE i_id = ?";
            let mut parameters: Vec<Cell> = vec![cost.into(), image.into(), thumbnail.into(), now_s.into()];
            parameters.extend(related.iter().map(|item| Cell::from(*item)));
            parameters.push(i_id.into());
            if connection.run(sql, &parameters)?.affected == 0 {
                return Err(Error::absent(format!("no item {i_id}")));
            }
            Ok(json!({"i_id": i_id, "cost": cost, "image": image, "thumbnail": thumbnail, "related": related}))
        })
    }
}
