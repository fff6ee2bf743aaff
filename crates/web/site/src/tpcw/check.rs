//! Consistency rules of TPC-W.

use crate::Error;
use crate::check::{Acknowledgement, Query};
use crate::facts::{self, Facts};

/// Changes that the site acknowledges.
pub(super) const ACKNOWLEDGEMENTS: &[Acknowledgement] = &[Acknowledgement {
    kind: "order",
    rule: "acknowledged",
    says: "every acknowledged order is there exactly once, with its id and total",
    sql: "SELECT o_token, o_id, o_total FROM orders WHERE o_token IS NOT NULL",
}];

/// Other consistency rules.
pub(super) fn rules(facts: &Facts) -> Result<Vec<Query>, Error> {
    let loaded = facts::number(facts, "orders")?;
    Ok(vec![
        Query {
            rule: "tokens",
            says: "no token stands for two orders",
            of: "orders",
            sql: "SELECT o_token, COUNT(*) FROM orders WHERE o_token IS NOT NULL GROUP BY o_token \
                 HAVING COUNT(*) > 1 ORDER BY 1"
                .into(),
            names: &["token", "orders"],
        },
        Query {
            rule: "subtotals",
            says: "an order's lines add up to its subtotal; an order has lines",
            of: "orders",
            sql: "SELECT o_id, o_sub_total, summed.total FROM orders \
                 LEFT JOIN (SELECT ol_o_id, SUM(ol_qty * ol_cost) AS total FROM order_line \
                 GROUP BY ol_o_id) summed ON summed.ol_o_id = o_id \
                 WHERE summed.total IS NULL OR summed.total <> o_sub_total ORDER BY o_id"
                .into(),
            names: &["order", "subtotal", "lines"],
        },
        Query {
            rule: "totals",
            says: "an order's total is its subtotal, 8.25 % of tax, and 3.00 and 1.00 a line for shipping",
            of: "orders",
            // DIV and / differ between engines on whole numbers: the tax is compared by its bounds.
            sql: "SELECT o_id, o_total, o_tax FROM orders \
                 JOIN (SELECT ol_o_id, COUNT(*) AS number FROM order_line \
                 GROUP BY ol_o_id) summed ON summed.ol_o_id = o_id \
                 WHERE o_total <> o_sub_total + o_tax + 300 + 100 * summed.number \
                 OR o_tax * 10000 > o_sub_total * 825 + 5000 \
                 OR o_tax * 10000 <= o_sub_total * 825 - 5000 ORDER BY o_id"
                .into(),
            names: &["order", "total", "tax"],
        },
        Query {
            rule: "cards",
            says: "an order was paid by one card, with its total",
            of: "orders",
            sql: "SELECT o_id, o_total, cx_xact_amt FROM orders LEFT JOIN cc_xacts ON cx_o_id = o_id \
                 WHERE cx_o_id IS NULL OR cx_xact_amt <> o_total ORDER BY o_id"
                .into(),
            names: &["order", "total", "paid"],
        },
        Query {
            rule: "stock",
            says: "an item's stock is its first value, less what was sold since, plus what was restocked",
            of: "item",
            sql: format!(
                "SELECT i_id, i_stock, i_stock_initial, i_restocked, sold.qty FROM item \
                 LEFT JOIN (SELECT ol_i_id, SUM(ol_qty) AS qty FROM order_line \
                 WHERE ol_o_id > {loaded} GROUP BY ol_i_id) sold ON sold.ol_i_id = i_id \
                 WHERE i_stock <> i_stock_initial + i_restocked - COALESCE(sold.qty, 0) ORDER BY i_id"
            )
            .into(),
            names: &["item", "stock", "at first", "restocked", "sold"],
        },
        Query {
            rule: "carts",
            says: "a cart's subtotal is that of its lines",
            of: "shopping_cart",
            sql: "SELECT sc_id, sc_sub_total, summed.total FROM shopping_cart \
                 LEFT JOIN (SELECT scl_sc_id, SUM(scl_qty * scl_cost) AS total FROM shopping_cart_line \
                 GROUP BY scl_sc_id) summed ON summed.scl_sc_id = sc_id \
                 WHERE sc_sub_total <> COALESCE(summed.total, 0) ORDER BY sc_id"
                .into(),
            names: &["cart", "subtotal", "lines"],
        },
    ])
}
