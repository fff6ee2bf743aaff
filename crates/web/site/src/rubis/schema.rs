//! The nine tables of RUBiS.
//!
//! Money is whole cents and times are whole seconds since 1970. `quantity_initial` is the quantity before the run, for
//! checks; `token` identifies a browser's request: a repeated request has no second effect.

use crate::schema::Kind::{Big, Int, Long, Serial, Text};
use crate::schema::{Table, columns};

/// The tables, each after the tables that its foreign keys reference.
pub const TABLES: &[Table] = &[CATEGORIES, REGIONS, USERS, ITEMS, OLD_ITEMS, BIDS, COMMENTS, BUY_NOW];

const CATEGORIES: Table = Table { name: "categories", ..Table::NAMED };
const REGIONS: Table = Table { name: "regions", ..Table::NAMED };

const USERS: Table = Table {
    name: "users",
    columns: columns![
        id: Serial, firstname: Text(20), lastname: Text(20), nickname: Text(40), password: Text(40),
        email: Text(50), rating: Int, balance: Big, creation_date: Big, region: Int; token: Text(64)
    ],
    unique: &["nickname", "token"],
    indexes: &["region"],
    foreign: &[("region", "regions", "id")],
    ..Table::BARE
};

const ITEMS: Table = Table {
    name: "items",
    columns: columns![
        id: Serial, name: Text(100), description: Long, initial_price: Big, quantity: Int,
        reserve_price: Big, buy_now: Big, nb_of_bids: Int, max_bid: Big, start_date: Big, end_date: Big,
        seller: Big, category: Int, quantity_initial: Int; token: Text(64)
    ],
    unique: &["token"],
    indexes: &["seller", "category, end_date"],
    foreign: &[("seller", "users", "id"), ("category", "categories", "id")],
    ..Table::BARE
};

const OLD_ITEMS: Table = Table { name: "old_items", ..ITEMS };

const BIDS: Table = Table {
    name: "bids",
    columns: columns![
        id: Serial, user_id: Big, item_id: Big, qty: Int, bid: Big, max_bid: Big, date_s: Big;
        token: Text(64)
    ],
    unique: &["token"],
    indexes: &["item_id", "user_id"],
    foreign: &[("user_id", "users", "id"), ("item_id", "items", "id")],
    ..Table::BARE
};

// The item of a comment is in one of two tables (sold or for sale); a foreign key cannot express that.
const COMMENTS: Table = Table {
    name: "comments",
    columns: columns![
        id: Serial, from_user_id: Big, to_user_id: Big, item_id: Big, rating: Int, date_s: Big,
        comment: Long; token: Text(64)
    ],
    unique: &["token"],
    indexes: &["from_user_id", "to_user_id", "item_id"],
    foreign: &[("from_user_id", "users", "id"), ("to_user_id", "users", "id")],
    ..Table::BARE
};

const BUY_NOW: Table = Table {
    name: "buy_now",
    columns: columns![
        id: Serial, buyer_id: Big, item_id: Big, qty: Int, date_s: Big; token: Text(64)
    ],
    unique: &["token"],
    indexes: &["buyer_id", "item_id"],
    foreign: &[("buyer_id", "users", "id"), ("item_id", "items", "id")],
    ..Table::BARE
};
