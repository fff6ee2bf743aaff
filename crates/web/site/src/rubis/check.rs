//! What must hold in an auction site, whatever was bid and whoever was killed.

use crate::Error;
use crate::check::{Acknowledged, Checked, acknowledged};
use crate::database::Connection;
use crate::load;

/// Checks the site, and that everything acknowledged is there once.
///
/// # Errors
/// The database fails, or holds no such site.
pub fn check(connection: &mut dyn Connection, orders: &[Acknowledged]) -> Result<Checked, Error> {
    load::loaded_facts(connection, "rubis")?;
    let mut checked = Checked::default();
    for (kind, rule, says, sql) in [
        (
            "bid",
            "acknowledged-bids",
            "every acknowledged bid is there exactly once, with its id and amount",
            "SELECT token, id, bid FROM bids WHERE token IS NOT NULL",
        ),
        (
            "purchase",
            "acknowledged-purchases",
            "every acknowledged purchase is there exactly once, with its id and quantity",
            "SELECT token, id, qty FROM buy_now WHERE token IS NOT NULL",
        ),
        (
            "comment",
            "acknowledged-comments",
            "every acknowledged comment is there exactly once, with its id and rating",
            "SELECT token, id, rating FROM comments WHERE token IS NOT NULL",
        ),
        (
            "item",
            "acknowledged-items",
            "every acknowledged item is there exactly once, with its id and price",
            "SELECT token, id, initial_price FROM items WHERE token IS NOT NULL",
        ),
        (
            "user",
            "acknowledged-users",
            "every acknowledged user is there exactly once, with its id and region",
            "SELECT token, id, region FROM users WHERE token IS NOT NULL",
        ),
    ] {
        acknowledged(&mut checked, connection, orders, (kind, rule, says), sql)?;
    }
    let mut query =
        |rule, of: &str, sql: &str, names: &[&str]| checked.query(connection, rule, of, sql, names);
    query(
        ("bids", "an item's count of bids and its highest bid are those of its bids"),
        "items",
        "SELECT i.id, i.nb_of_bids, b.number, i.max_bid, b.highest FROM items i LEFT JOIN \
         (SELECT item_id, COUNT(*) AS number, MAX(bid) AS highest FROM bids GROUP BY item_id) b ON b.item_id = i.id \
         WHERE i.nb_of_bids <> COALESCE(b.number, 0) OR i.max_bid <> COALESCE(b.highest, 0) ORDER BY i.id",
        &["item", "count", "bids", "highest", "of bids"],
    )?;
    query(
        ("quantities", "an item's quantity is what it was at first, less what was bought; never below 0"),
        "items",
        "SELECT i.id, i.quantity, i.quantity_initial, b.bought FROM items i LEFT JOIN \
         (SELECT item_id, SUM(qty) AS bought FROM buy_now GROUP BY item_id) b ON b.item_id = i.id \
         WHERE i.quantity < 0 OR i.quantity <> i.quantity_initial - COALESCE(b.bought, 0) ORDER BY i.id",
        &["item", "quantity", "at first", "bought"],
    )?;
    query(
        ("ratings", "a user's rating is the sum of the ratings in comments on that user"),
        "users",
        "SELECT u.id, u.rating, c.total FROM users u LEFT JOIN \
         (SELECT to_user_id, SUM(rating) AS total FROM comments GROUP BY to_user_id) c ON c.to_user_id = u.id \
         WHERE u.rating <> COALESCE(c.total, 0) ORDER BY u.id",
        &["user", "rating", "of comments"],
    )?;
    for table in super::schema::TABLES {
        checked.orphans(connection, table)?;
    }
    Ok(checked)
}
