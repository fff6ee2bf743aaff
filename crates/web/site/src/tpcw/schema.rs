//! The ten tables of TPC-W, clause 1.4, with 13 secondary indexes and the columns that the consistency checks need.
//!
//! Money is whole cents and times are whole seconds since 1970. `i_stock_initial` and `i_restocked` say where the stock came
//! from; `o_token` is the browser's own mark of an order, so that a repeated request makes no second one.

use crate::schema::Kind::{Big, Int, Serial, Text};
use crate::schema::{Table, column, maybe};

/// The tables, each after those that its foreign keys point at.
pub const TABLES: &[Table] = &[
    COUNTRY,
    ADDRESS,
    CUSTOMER,
    AUTHOR,
    ITEM,
    ORDERS,
    ORDER_LINE,
    CC_XACTS,
    SHOPPING_CART,
    SHOPPING_CART_LINE,
];

const COUNTRY: Table = Table {
    name: "country",
    columns: &[
        column("co_id", Int),
        column("co_name", Text(50)),
        // Units of the currency for a dollar, in millionths.
        column("co_exchange", Big),
        column("co_currency", Text(18)),
    ],
    key: "co_id",
    indexes: &["co_name"],
    ..Table::BARE
};

const ADDRESS: Table = Table {
    name: "address",
    columns: &[
        column("addr_id", Serial),
        column("addr_street1", Text(40)),
        column("addr_street2", Text(40)),
        column("addr_city", Text(30)),
        column("addr_state", Text(20)),
        column("addr_zip", Text(10)),
        column("addr_co_id", Int),
    ],
    key: "addr_id",
    indexes: &["addr_co_id", "addr_zip"],
    foreign: &[("addr_co_id", "country", "co_id")],
    ..Table::BARE
};

const CUSTOMER: Table = Table {
    name: "customer",
    columns: &[
        column("c_id", Serial),
        column("c_uname", Text(20)),
        column("c_passwd", Text(20)),
        column("c_fname", Text(17)),
        column("c_lname", Text(17)),
        column("c_addr_id", Big),
        column("c_phone", Text(18)),
        column("c_email", Text(50)),
        column("c_since", Big),
        column("c_last_visit", Big),
        column("c_login", Big),
        column("c_expiration", Big),
        // Per cent.
        column("c_discount", Int),
        column("c_balance", Big),
        column("c_ytd_pmt", Big),
        column("c_birthdate", Big),
        column("c_data", Text(500)),
    ],
    key: "c_id",
    indexes: &["c_addr_id", "c_uname"],
    foreign: &[("c_addr_id", "address", "addr_id")],
    ..Table::BARE
};

const AUTHOR: Table = Table {
    name: "author",
    columns: &[
        column("a_id", Int),
        column("a_fname", Text(20)),
        column("a_lname", Text(20)),
        column("a_mname", Text(20)),
        column("a_dob", Big),
        column("a_bio", Text(500)),
    ],
    key: "a_id",
    indexes: &["a_lname"],
    ..Table::BARE
};

const ITEM: Table = Table {
    name: "item",
    columns: &[
        column("i_id", Int),
        column("i_title", Text(60)),
        column("i_a_id", Int),
        column("i_pub_date", Big),
        column("i_publisher", Text(60)),
        column("i_subject", Text(60)),
        column("i_desc", Text(500)),
        column("i_related1", Int),
        column("i_related2", Int),
        column("i_related3", Int),
        column("i_related4", Int),
        column("i_related5", Int),
        column("i_thumbnail", Text(40)),
        column("i_image", Text(40)),
        column("i_srp", Big),
        column("i_cost", Big),
        column("i_avail", Big),
        column("i_stock", Big),
        column("i_isbn", Text(13)),
        column("i_page", Int),
        column("i_backing", Text(15)),
        column("i_dimensions", Text(25)),
        column("i_stock_initial", Big),
        column("i_restocked", Big),
    ],
    key: "i_id",
    indexes: &["i_a_id", "i_subject", "i_title"],
    foreign: &[("i_a_id", "author", "a_id")],
    ..Table::BARE
};

const ORDERS: Table = Table {
    name: "orders",
    columns: &[
        column("o_id", Serial),
        column("o_c_id", Big),
        column("o_date", Big),
        column("o_sub_total", Big),
        column("o_tax", Big),
        column("o_total", Big),
        column("o_ship_type", Text(10)),
        column("o_ship_date", Big),
        column("o_bill_addr_id", Big),
        column("o_ship_addr_id", Big),
        column("o_status", Text(16)),
        maybe("o_token", Text(64)),
    ],
    key: "o_id",
    unique: &["o_token"],
    indexes: &["o_c_id"],
    foreign: &[
        ("o_c_id", "customer", "c_id"),
        ("o_bill_addr_id", "address", "addr_id"),
        ("o_ship_addr_id", "address", "addr_id"),
    ],
};

const ORDER_LINE: Table = Table {
    name: "order_line",
    columns: &[
        column("ol_o_id", Big),
        column("ol_id", Int),
        column("ol_i_id", Int),
        column("ol_qty", Int),
        // What one costs in this order.
        column("ol_cost", Big),
        column("ol_discount", Int),
        column("ol_comments", Text(110)),
    ],
    key: "ol_o_id, ol_id",
    indexes: &["ol_i_id", "ol_o_id"],
    foreign: &[("ol_o_id", "orders", "o_id"), ("ol_i_id", "item", "i_id")],
    ..Table::BARE
};

const CC_XACTS: Table = Table {
    name: "cc_xacts",
    columns: &[
        column("cx_o_id", Big),
        column("cx_type", Text(10)),
        column("cx_num", Text(20)),
        column("cx_name", Text(31)),
        column("cx_expire", Big),
        column("cx_auth_id", Text(15)),
        column("cx_xact_amt", Big),
        column("cx_xact_date", Big),
        column("cx_co_id", Int),
    ],
    key: "cx_o_id",
    foreign: &[("cx_o_id", "orders", "o_id"), ("cx_co_id", "country", "co_id")],
    ..Table::BARE
};

const SHOPPING_CART: Table = Table {
    name: "shopping_cart",
    columns: &[
        column("sc_id", Serial),
        column("sc_time", Big),
        column("sc_sub_total", Big),
        column("sc_total", Big),
    ],
    key: "sc_id",
    ..Table::BARE
};

const SHOPPING_CART_LINE: Table = Table {
    name: "shopping_cart_line",
    columns: &[
        column("scl_sc_id", Big),
        column("scl_i_id", Int),
        column("scl_qty", Int),
        column("scl_cost", Big),
    ],
    key: "scl_sc_id, scl_i_id",
    indexes: &["scl_i_id"],
    foreign: &[("scl_sc_id", "shopping_cart", "sc_id"), ("scl_i_id", "item", "i_id")],
    ..Table::BARE
};
