//! Consistency rules of RUBiS.

use crate::Error;
use crate::check::{Acknowledgement, Query};
use crate::facts::Facts;

/// Changes that the site acknowledges.
pub(super) const ACKNOWLEDGEMENTS: &[Acknowledgement] = &[
    Acknowledgement {
        kind: "bid",
        rule: "acknowledged-bids",
        says: "every acknowledged bid is there exactly once, with its id and amount",
        sql: "SELECT token, id, bid FROM bids WHERE token IS NOT NULL",
    },
    Acknowledgement {
        kind: "purchase",
        rule: "acknowledged-purchases",
        says: "every acknowledged purchase is there exactly once, with its id and quantity",
        sql: "SELECT token, id, qty FROM buy_now WHERE token IS NOT NULL",
    },
    Acknowledgement {
        kind: "comment",
        rule: "acknowledged-comments",
        says: "every acknowledged comment is there exactly once, with its id and rating",
        sql: "SELECT token, id, rating FROM comments WHERE token IS NOT NULL",
    },
    Acknowledgement {
        kind: "item",
        rule: "acknowledged-items",
        says: "every acknowledged item is there exactly once, with its id and price",
        sql: "SELECT token, id, initial_price FROM items WHERE token IS NOT NULL",
    },
    Acknowledgement {
        kind: "user",
        rule: "acknowledged-users",
        says: "every acknowledged user is there exactly once, with its id and region",
        sql: "SELECT token, id, region FROM users WHERE token IS NOT NULL",
    },
];

/// Other consistency rules.
pub(super) fn rules(_: &Facts) -> Result<Vec<Query>, Error> {
    Ok(vec![
        Query {
            rule: "bids",
            says: "an item's count of bids and its highest bid are those of its bids",
            of: "items",
            sql: "SELECT i.id, i.nb_of_bids, b.number, i.max_bid, b.highest FROM items i \
                 LEFT JOIN (SELECT item_id, COUNT(*) AS number, MAX(bid) AS highest FROM bids \
                 GROUP BY item_id) b ON b.item_id = i.id WHERE i.nb_of_bids <> COALESCE(b.number, 0) \
                 OR i.max_bid <> COALESCE(b.highest, 0) ORDER BY i.id"
                .into(),
            names: &["item", "count", "bids", "highest", "of bids"],
        },
        Query {
            rule: "quantities",
            says: "an item's quantity is what it was at first, less what was bought; never below 0",
            of: "items",
            sql: "SELECT i.id, i.quantity, i.quantity_initial, b.bought FROM items i \
                 LEFT JOIN (SELECT item_id, SUM(qty) AS bought FROM buy_now \
                 GROUP BY item_id) b ON b.item_id = i.id WHERE i.quantity < 0 \
                 OR i.quantity <> i.quantity_initial - COALESCE(b.bought, 0) ORDER BY i.id"
                .into(),
            names: &["item", "quantity", "at first", "bought"],
        },
        Query {
            rule: "ratings",
            says: "a user's rating is the sum of the ratings in comments on that user",
            of: "users",
            sql: "SELECT u.id, u.rating, c.total FROM users u \
                 LEFT JOIN (SELECT to_user_id, SUM(rating) AS total FROM comments \
                 GROUP BY to_user_id) c ON c.to_user_id = u.id WHERE u.rating <> COALESCE(c.total, 0) \
                 ORDER BY u.id"
                .into(),
            names: &["user", "rating", "of comments"],
        },
    ])
}
