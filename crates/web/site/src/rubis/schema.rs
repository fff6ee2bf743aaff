//! The nine tables of RUBiS.
//!
//! Money is whole cents and times are whole seconds since 1970. `quantity_initial` says where a quantity came from; `token` is
//! the browser's own mark, so that a repeated request does nothing twice.

use crate::schema::Kind::{Big, Int, Long, Serial, Text};
use crate::schema::{Table, column, maybe};

/// The tables, each after those that its foreign keys point at.
pub const TABLES: &[Table] = &[CATEGORIES, REGIONS, USERS, ITEMS, OLD_ITEMS, BIDS, COMMENTS, BUY_NOW];

const CATEGORIES: Table = Table { name: "categories", ..Table::NAMED };
const REGIONS: Table = Table { name: "regions", ..Table::NAMED };

const USERS: Table = Table {
    name: "users",
    columns: &[
        column("id", Serial),
        column("firstname", Text(20)),
        column("lastname", Text(20)),
        column("nickname", Text(40)),
        column("password", Text(40)),
        column("email", Text(50)),
        column("rating", Int),
        column("balance", Big),
        column("creation_date", Big),
        column("region", Int),
        maybe("token", Text(64)),
    ],
    unique: &["nickname", "token"],
    indexes: &["region"],
    foreign: &[("region", "regions", "id")],
    ..Table::BARE
};

const ITEMS: Table = Table {
    name: "items",
    columns: &[
        column("id", Serial),
        column("name", Text(100)),
        column("description", Long),
        column("initial_price", Big),
        column("quantity", Int),
        column("reserve_price", Big),
        column("buy_now", Big),
        column("nb_of_bids", Int),
        column("max_bid", Big),
        column("start_date", Big),
        column("end_date", Big),
        column("seller", Big),
        column("category", Int),
        column("quantity_initial", Int),
        maybe("token", Text(64)),
    ],
    unique: &["token"],
    indexes: &["seller", "category, end_date"],
    foreign: &[("seller", "users", "id"), ("category", "categories", "id")],
    ..Table::BARE
};

const OLD_ITEMS: Table = Table { name: "old_items", ..ITEMS };

const BIDS: Table = Table {
    name: "bids",
    columns: &[
        column("id", Serial),
        column("user_id", Big),
        column("item_id", Big),
        column("qty", Int),
        column("bid", Big),
        column("max_bid", Big),
        column("date_s", Big),
        maybe("token", Text(64)),
    ],
    unique: &["token"],
    indexes: &["item_id", "user_id"],
    foreign: &[("user_id", "users", "id"), ("item_id", "items", "id")],
    ..Table::BARE
};

// A comment may be about an item that is sold or not yet: of two tables, so that no foreign key can say it.
const COMMENTS: Table = Table {
    name: "comments",
    columns: &[
        column("id", Serial),
        column("from_user_id", Big),
        column("to_user_id", Big),
        column("item_id", Big),
        column("rating", Int),
        column("date_s", Big),
        column("comment", Long),
        maybe("token", Text(64)),
    ],
    unique: &["token"],
    indexes: &["from_user_id", "to_user_id", "item_id"],
    foreign: &[("from_user_id", "users", "id"), ("to_user_id", "users", "id")],
    ..Table::BARE
};

const BUY_NOW: Table = Table {
    name: "buy_now",
    columns: &[
        column("id", Serial),
        column("buyer_id", Big),
        column("item_id", Big),
        column("qty", Int),
        column("date_s", Big),
        maybe("token", Text(64)),
    ],
    unique: &["token"],
    indexes: &["buyer_id", "item_id"],
    foreign: &[("buyer_id", "users", "id"), ("item_id", "items", "id")],
    ..Table::BARE
};
