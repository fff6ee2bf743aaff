//! Pages that change data: registration, bids, purchases, comments.

use serde_json::Value;

use super::user::known;
use crate::database::Connection;
use crate::http::{Context, Form};
use crate::once::once;
use crate::{Error, account};

const LARGEST_PRICE: i64 = 1_000_000_000_000;
const WEEK_S: i64 = 7 * 86_400;

fn lock_item(connection: &mut dyn Connection, item: i64) -> Result<i64, Error> {
    let found = connection.run("SELECT quantity FROM items WHERE id = ? FOR UPDATE", &[item.into()])?;
    Ok(found.first().ok_or_else(|| Error::absent(format!("no item {item} is for sale")))?.int(0)?)
}

pub(super) fn register_user(form: &Form, context: &mut Context<'_>) -> Result<Value, Error> {
    let token = form.text("token", 64)?;
    let now_s = context.now_s;
    let region = form.int("region", 1, super::populate::REGIONS as i64)?;
    let mut parameters = account::registered(form)?.to_vec();
    parameters.extend([now_s.into(), region.into(), token.into()]);
    once(
        context,
        token,
        "SELECT id, region FROM users WHERE token = ?",
        |_| Ok(()),
        |connection| {
            let sql = "INSERT INTO users (firstname, lastname, nickname, password, email, rating, balance, creation_date, region, \
                   token) VALUES (?, ?, ?, ?, ?, 0, 0, ?, ?, ?) RETURNING id";
            Ok((connection.run(sql, &parameters)?.int()?, region))
        },
    )
}

pub(super) fn register_item(form: &Form, context: &mut Context<'_>) -> Result<Value, Error> {
    let token = form.text("token", 64)?;
    let now_s = context.now_s;
    let price = form.int("initial_price", 1, LARGEST_PRICE)?;
    let quantity = form.int("quantity", 1, 1000)?;
    let (name, description) = (form.text("name", 100)?, form.text("description", 20_000)?);
    let (reserve, buy_now) =
        (form.int("reserve_price", 0, LARGEST_PRICE)?, form.int("buy_now", 0, LARGEST_PRICE)?);
    let category = form.int("category", 1, super::populate::CATEGORIES as i64)?;
    once(
        context,
        token,
        "SELECT id, initial_price FROM items WHERE token = ?",
        |_| Ok(()),
        |connection| {
            let seller = known(connection, form)?;
            let sql = "INSERT INTO items (name, description, initial_price, quantity, reserve_price, buy_now, nb_of_bids, max_bid, \
                   start_date, end_date, seller, category, quantity_initial, token) \
                   VALUES (?, ?, ?, ?, ?, ?, 0, 0, ?, ?, ?, ?, ?, ?) RETURNING id";
            let parameters = [
                name.into(),
                description.into(),
                price.into(),
                quantity.into(),
                reserve.into(),
                buy_now.into(),
                now_s.into(),
                (now_s + WEEK_S).into(),
                seller.into(),
                category.into(),
                quantity.into(),
                token.into(),
            ];
            Ok((connection.run(sql, &parameters)?.int()?, price))
        },
    )
}

/// A bid: noted, counted, and the highest so far is kept with the item.
pub(super) fn bid(form: &Form, context: &mut Context<'_>) -> Result<Value, Error> {
    let (token, item) = (form.text("token", 64)?, form.id("item")?);
    let bid = form.int("bid", 1, LARGEST_PRICE)?;
    let most = form.int("max_bid", bid, LARGEST_PRICE)?;
    let quantity = form.int("qty", 1, 1000)?;
    let now_s = context.now_s;
    let lock = |connection: &mut dyn Connection| lock_item(connection, item).map(drop);
    once(context, token, "SELECT id, bid FROM bids WHERE token = ?", lock, |connection| {
        let user = known(connection, form)?;
        let sql = "INSERT INTO bids (user_id, item_id, qty, bid, max_bid, date_s, token) VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id";
        let parameters =
            [user.into(), item.into(), quantity.into(), bid.into(), most.into(), now_s.into(), token.into()];
        let id = connection.run(sql, &parameters)?.int()?;
        let sql = "UPDATE items SET nb_of_bids = nb_of_bids + 1, max_bid = CASE WHEN max_bid < ? THEN ? ELSE max_bid END \
                   WHERE id = ?";
        connection.run(sql, &[bid.into(), bid.into(), item.into()])?;
        Ok((id, bid))
    })
}

/// An immediate purchase. If too few items are left, nothing is sold: id 0.
pub(super) fn buy_now(form: &Form, context: &mut Context<'_>) -> Result<Value, Error> {
    let (token, item) = (form.text("token", 64)?, form.id("item")?);
    let quantity = form.int("qty", 1, 1000)?;
    let now_s = context.now_s;
    let lock = |connection: &mut dyn Connection| lock_item(connection, item).map(drop);
    once(context, token, "SELECT id, qty FROM buy_now WHERE token = ?", lock, |connection| {
        let buyer = known(connection, form)?;
        if lock_item(connection, item)? < quantity {
            return Ok((0, 0));
        }
        connection
            .run("UPDATE items SET quantity = quantity - ? WHERE id = ?", &[quantity.into(), item.into()])?;
        let sql =
            "INSERT INTO buy_now (buyer_id, item_id, qty, date_s, token) VALUES (?, ?, ?, ?, ?) RETURNING id";
        let parameters = [buyer.into(), item.into(), quantity.into(), now_s.into(), token.into()];
        Ok((connection.run(sql, &parameters)?.int()?, quantity))
    })
}

/// A comment on a user, which changes the user's rating.
pub(super) fn comment(form: &Form, context: &mut Context<'_>) -> Result<Value, Error> {
    let (token, item, to) = (form.text("token", 64)?, form.id("item")?, form.id("to")?);
    let rating = form.int("rating", -5, 5)?;
    let text = form.text("comment", 20_000)?;
    let now_s = context.now_s;
    let lock = |connection: &mut dyn Connection| {
        let found = connection.run("SELECT id FROM users WHERE id = ? FOR UPDATE", &[to.into()])?;
        found.first().map(drop).ok_or_else(|| Error::absent(format!("no user {to}")))
    };
    once(context, token, "SELECT id, rating FROM comments WHERE token = ?", lock, |connection| {
        let from = known(connection, form)?;
        let sql = "INSERT INTO comments (from_user_id, to_user_id, item_id, rating, date_s, comment, token) \
                   VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id";
        let parameters =
            [from.into(), to.into(), item.into(), rating.into(), now_s.into(), text.into(), token.into()];
        let id = connection.run(sql, &parameters)?.int()?;
        connection.run("UPDATE users SET rating = rating + ? WHERE id = ?", &[rating.into(), to.into()])?;
        Ok((id, rating))
    })
}
