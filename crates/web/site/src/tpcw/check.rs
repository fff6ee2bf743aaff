//! What must hold in a bookshop, whatever was bought and whoever was killed.

use crate::Error;
use crate::check::{Acknowledged, Checked, acknowledged};
use crate::database::Connection;
use crate::load;

/// Checks the shop, and that every acknowledged order is there once.
///
/// # Errors
/// The database fails, or holds no shop.
pub fn check(connection: &mut dyn Connection, orders: &[Acknowledged]) -> Result<Checked, Error> {
    let facts = load::loaded_facts(connection, "tpcw")?;
    let loaded = load::number(&facts, "orders")?;
    let mut checked = Checked::default();
    acknowledged(
        &mut checked,
        connection,
        orders,
        ("order", "acknowledged", "every acknowledged order is there exactly once, with its id and total"),
        "SELECT o_token, o_id, o_total FROM orders WHERE o_token IS NOT NULL",
    )?;
    let mut query =
        |rule, of: &str, sql: &str, names: &[&str]| checked.query(connection, rule, of, sql, names);
    query(
        ("tokens", "no token stands for two orders"),
        "orders",
        "SELECT o_token, COUNT(*) FROM orders WHERE o_token IS NOT NULL GROUP BY o_token HAVING COUNT(*) > 1 ORDER BY 1",
        &["token", "orders"],
    )?;
    query(
        ("subtotals", "an order's lines add up to its subtotal; an order has lines"),
        "orders",
        "SELECT o_id, o_sub_total, summed.total FROM orders LEFT JOIN \
         (SELECT ol_o_id, SUM(ol_qty * ol_cost) AS total FROM order_line GROUP BY ol_o_id) summed ON summed.ol_o_id = o_id \
         WHERE summed.total IS NULL OR summed.total <> o_sub_total ORDER BY o_id",
        &["order", "subtotal", "lines"],
    )?;
    query(
        ("totals", "an order's total is its subtotal, 8.25 % of tax, and 3.00 and 1.00 a line for shipping"),
        "orders",
        // DIV and / differ between engines on whole numbers: the tax is compared by its bounds.
        "SELECT o_id, o_total, o_tax FROM orders JOIN \
         (SELECT ol_o_id, COUNT(*) AS number FROM order_line GROUP BY ol_o_id) summed ON summed.ol_o_id = o_id \
         WHERE o_total <> o_sub_total + o_tax + 300 + 100 * summed.number \
         OR o_tax * 10000 > o_sub_total * 825 + 5000 OR o_tax * 10000 <= o_sub_total * 825 - 5000 ORDER BY o_id",
        &["order", "total", "tax"],
    )?;
    query(
        ("cards", "an order was paid by one card, with its total"),
        "orders",
        "SELECT o_id, o_total, cx_xact_amt FROM orders LEFT JOIN cc_xacts ON cx_o_id = o_id \
         WHERE cx_o_id IS NULL OR cx_xact_amt <> o_total ORDER BY o_id",
        &["order", "total", "paid"],
    )?;
    query(
        (
            "stock",
            "an item's stock is what it was at first, less what was sold since, plus what was restocked",
        ),
        "item",
        &format!(
            "SELECT i_id, i_stock, i_stock_initial, i_restocked, sold.qty FROM item LEFT JOIN \
             (SELECT ol_i_id, SUM(ol_qty) AS qty FROM order_line WHERE ol_o_id > {loaded} GROUP BY ol_i_id) sold \
             ON sold.ol_i_id = i_id \
             WHERE i_stock <> i_stock_initial + i_restocked - COALESCE(sold.qty, 0) ORDER BY i_id"
        ),
        &["item", "stock", "at first", "restocked", "sold"],
    )?;
    query(
        ("carts", "a cart's subtotal is that of its lines"),
        "shopping_cart",
        "SELECT sc_id, sc_sub_total, summed.total FROM shopping_cart LEFT JOIN \
         (SELECT scl_sc_id, SUM(scl_qty * scl_cost) AS total FROM shopping_cart_line GROUP BY scl_sc_id) summed \
         ON summed.scl_sc_id = sc_id WHERE sc_sub_total <> COALESCE(summed.total, 0) ORDER BY sc_id",
        &["cart", "subtotal", "lines"],
    )?;
    for table in super::schema::TABLES {
        checked.orphans(connection, table)?;
    }
    Ok(checked)
}
