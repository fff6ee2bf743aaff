//! Pages that only read data.

use serde_json::{Value, json};

use super::user::known;
use crate::database::Value as Cell;
use crate::http::{Context, Form};
use crate::{Error, list};

const ITEM: &str = "i.id, i.name, i.initial_price, i.max_bid, i.nb_of_bids, i.end_date";

const ITEM_NAMES: &[&str] = &["id", "name", "initial_price", "max_bid", "bids", "end_date"];

impl Context<'_> {
    fn query(&mut self, sql: &str, parameters: &[Cell], names: &[&str]) -> Result<Value, Error> {
        list::query(self.connection, sql, parameters, names)
    }

    pub(super) fn categories(&mut self) -> Result<Value, Error> {
        Ok(
            json!({"categories": self.query("SELECT id, name FROM categories ORDER BY id", &[], &["id", "name"])?}),
        )
    }

    pub(super) fn regions(&mut self) -> Result<Value, Error> {
        Ok(json!({"regions": self.query("SELECT id, name FROM regions ORDER BY id", &[], &["id", "name"])?}))
    }

    pub(super) fn categories_in_region(&mut self, form: &Form) -> Result<Value, Error> {
        let region = form.id("region")?;
        if self.connection.run("SELECT name FROM regions WHERE id = ?", &[region.into()])?.first().is_none() {
            return Err(Error::absent(format!("no region {region}")));
        }
        let mut answer = self.categories()?;
        answer["region"] = region.into();
        Ok(answer)
    }

    pub(super) fn items_in_category(&mut self, form: &Form) -> Result<Value, Error> {
        let (category, page) = (form.id("category")?, list::number(form)?);
        let sql = format!(
            "SELECT {ITEM} FROM items i WHERE i.category = ? AND i.end_date >= ? \
             ORDER BY i.end_date, i.id LIMIT ? OFFSET ?"
        );
        let [limit, offset] = list::limits(page);
        let parameters = [category.into(), self.now_s.into(), limit, offset];
        Ok(json!({"category": category, "number": page, "items": self.query(&sql, &parameters, ITEM_NAMES)?}))
    }

    pub(super) fn items_in_region(&mut self, form: &Form) -> Result<Value, Error> {
        let (category, region) = (form.id("category")?, form.id("region")?);
        let page = list::number(form)?;
        let sql = format!(
            "SELECT {ITEM} FROM items i JOIN users u ON u.id = i.seller \
             WHERE i.category = ? AND u.region = ? AND i.end_date >= ? ORDER BY i.end_date, i.id LIMIT ? OFFSET ?"
        );
        let [limit, offset] = list::limits(page);
        let parameters = [category.into(), region.into(), self.now_s.into(), limit, offset];
        let items = self.query(&sql, &parameters, ITEM_NAMES)?;
        Ok(json!({"category": category, "region": region, "number": page, "items": items}))
    }

    /// An item that is for sale, or was.
    pub(super) fn item(&mut self, form: &Form) -> Result<Value, Error> {
        let id = form.id("item")?;
        for table in ["items", "old_items"] {
            let sql = format!(
                "SELECT i.name, i.description, i.initial_price, i.quantity, i.buy_now, i.nb_of_bids, i.max_bid, i.seller, \
                 u.nickname, i.end_date FROM {table} i JOIN users u ON u.id = i.seller WHERE i.id = ?"
            );
            if let Some(row) = self.connection.run(&sql, &[id.into()])?.first() {
                return Ok(json!({
                    "item": id, "name": row.text(0)?, "description": row.text(1)?, "initial_price": row.int(2)?,
                    "quantity": row.int(3)?, "buy_now": row.int(4)?, "bids": row.int(5)?, "max_bid": row.int(6)?,
                    "seller": row.int(7)?, "nickname": row.text(8)?, "end_date": row.int(9)?,
                    "for_sale": table == "items",
                }));
            }
        }
        Err(Error::absent(format!("no item {id}")))
    }

    pub(super) fn user(&mut self, form: &Form) -> Result<Value, Error> {
        let id = form.id("user")?;
        let sql = "SELECT nickname, rating, creation_date FROM users WHERE id = ?";
        let found = self.connection.run(sql, &[id.into()])?;
        let row = found.first().ok_or_else(|| Error::absent(format!("no user {id}")))?;
        let sql = "SELECT c.item_id, c.rating, c.comment, u.id, u.nickname FROM comments c \
                   JOIN users u ON u.id = c.from_user_id WHERE c.to_user_id = ? ORDER BY c.id";
        let comments = self.query(sql, &[id.into()], &["item", "rating", "comment", "from", "nickname"])?;
        Ok(json!({
            "user": id, "nickname": row.text(0)?, "rating": row.int(1)?, "since": row.int(2)?, "comments": comments,
        }))
    }

    pub(super) fn bid_history(&mut self, form: &Form) -> Result<Value, Error> {
        let id = form.id("item")?;
        let sql = "SELECT b.bid, b.date_s, u.id, u.nickname FROM bids b JOIN users u ON u.id = b.user_id \
                   WHERE b.item_id = ? ORDER BY b.date_s DESC, b.id DESC";
        Ok(json!({"item": id, "bids": self.query(sql, &[id.into()], &["bid", "date", "user", "nickname"])?}))
    }

    pub(super) fn comment_form(&mut self, form: &Form) -> Result<Value, Error> {
        let from = known(self.connection, form)?;
        let mut item = self.item(form)?;
        item["from"] = from.into();
        Ok(item)
    }

    /// Account page of the user: bids, purchases, items for sale and sold, comments.
    pub(super) fn about_me(&mut self, form: &Form) -> Result<Value, Error> {
        let id = known(self.connection, form)?;
        let me: [Cell; 1] = [id.into()];
        let bids = "SELECT i.id, i.name, i.max_bid, MAX(b.bid) FROM bids b JOIN items i ON i.id = b.item_id \
                    WHERE b.user_id = ? GROUP BY i.id, i.name, i.max_bid ORDER BY i.id";
        let bids = self.query(bids, &me, &["id", "name", "max_bid", "bid"])?;
        let bought = "SELECT i.id, i.name, b.qty FROM buy_now b JOIN items i ON i.id = b.item_id \
                      WHERE b.buyer_id = ? ORDER BY b.id";
        let bought = self.query(bought, &me, &["id", "name", "qty"])?;
        let selling = format!("SELECT {ITEM} FROM items i WHERE i.seller = ? ORDER BY i.id");
        let selling = self.query(&selling, &me, ITEM_NAMES)?;
        let sold = format!("SELECT {ITEM} FROM old_items i WHERE i.seller = ? ORDER BY i.id");
        let sold = self.query(&sold, &me, ITEM_NAMES)?;
        let comments =
            "SELECT c.from_user_id, c.rating, c.comment FROM comments c WHERE c.to_user_id = ? ORDER BY c.id";
        let comments = self.query(comments, &me, &["from", "rating", "comment"])?;
        let rating = self.connection.run("SELECT rating FROM users WHERE id = ?", &me)?.int()?;
        Ok(json!({
            "user": id, "rating": rating, "items": bids, "bought": bought, "selling": selling, "sold": sold,
            "comments": comments,
        }))
    }
}
