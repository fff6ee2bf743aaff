//! The ten tables of TPC-W, clause 1.4, with 13 secondary indexes and the columns that the consistency checks need.
//!
//! Money is whole cents and times are whole seconds since 1970. `i_stock_initial` and `i_restocked` account for the
//! stock; `o_token` identifies a browser's order: a repeated request makes no second one.

use crate::schema::Kind::{Big, Int, Serial, Text};
use crate::schema::{Table, columns};

/// The tables, each after the tables that its foreign keys reference.
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
    columns: columns![
        co_id: Int, co_name: Text(50),
        // Units of the currency for a dollar, in millionths.
        co_exchange: Big, co_currency: Text(18)
    ],
    key: "co_id",
    indexes: &["co_name"],
    ..Table::BARE
};

const ADDRESS: Table = Table {
    name: "address",
    columns: columns![
        addr_id: Serial, addr_street1: Text(40), addr_street2: Text(40), addr_city: Text(30),
        addr_state: Text(20), addr_zip: Text(10), addr_co_id: Int
    ],
    key: "addr_id",
    indexes: &["addr_co_id", "addr_zip"],
    foreign: &[("addr_co_id", "country", "co_id")],
    ..Table::BARE
};

const CUSTOMER: Table = Table {
    name: "customer",
    columns: columns![
        c_id: Serial, c_uname: Text(20), c_passwd: Text(20), c_fname: Text(17), c_lname: Text(17),
        c_addr_id: Big, c_phone: Text(18), c_email: Text(50), c_since: Big, c_last_visit: Big,
        c_login: Big, c_expiration: Big,
        // Per cent.
        c_discount: Int, c_balance: Big, c_ytd_pmt: Big, c_birthdate: Big, c_data: Text(500)
    ],
    key: "c_id",
    indexes: &["c_addr_id", "c_uname"],
    foreign: &[("c_addr_id", "address", "addr_id")],
    ..Table::BARE
};

const AUTHOR: Table = Table {
    name: "author",
    columns: columns![
        a_id: Int, a_fname: Text(20), a_lname: Text(20), a_mname: Text(20), a_dob: Big, a_bio: Text(500)
    ],
    key: "a_id",
    indexes: &["a_lname"],
    ..Table::BARE
};

const ITEM: Table = Table {
    name: "item",
    columns: columns![
        i_id: Int, i_title: Text(60), i_a_id: Int, i_pub_date: Big, i_publisher: Text(60),
        i_subject: Text(60), i_desc: Text(500), i_related1: Int, i_related2: Int, i_related3: Int,
        i_related4: Int, i_related5: Int, i_thumbnail: Text(40), i_image: Text(40), i_srp: Big,
        i_cost: Big, i_avail: Big, i_stock: Big, i_isbn: Text(13), i_page: Int, i_backing: Text(15),
        i_dimensions: Text(25), i_stock_initial: Big, i_restocked: Big
    ],
    key: "i_id",
    indexes: &["i_a_id", "i_subject", "i_title"],
    foreign: &[("i_a_id", "author", "a_id")],
    ..Table::BARE
};

const ORDERS: Table = Table {
    name: "orders",
    columns: columns![
        o_id: Serial, o_c_id: Big, o_date: Big, o_sub_total: Big, o_tax: Big, o_total: Big,
        o_ship_type: Text(10), o_ship_date: Big, o_bill_addr_id: Big, o_ship_addr_id: Big,
        o_status: Text(16); o_token: Text(64)
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
    columns: columns![
        ol_o_id: Big, ol_id: Int, ol_i_id: Int, ol_qty: Int,
        // Unit price in this order.
        ol_cost: Big, ol_discount: Int, ol_comments: Text(110)
    ],
    key: "ol_o_id, ol_id",
    indexes: &["ol_i_id", "ol_o_id"],
    foreign: &[("ol_o_id", "orders", "o_id"), ("ol_i_id", "item", "i_id")],
    ..Table::BARE
};

const CC_XACTS: Table = Table {
    name: "cc_xacts",
    columns: columns![
        cx_o_id: Big, cx_type: Text(10), cx_num: Text(20), cx_name: Text(31), cx_expire: Big,
        cx_auth_id: Text(15), cx_xact_amt: Big, cx_xact_date: Big, cx_co_id: Int
    ],
    key: "cx_o_id",
    foreign: &[("cx_o_id", "orders", "o_id"), ("cx_co_id", "country", "co_id")],
    ..Table::BARE
};

const SHOPPING_CART: Table = Table {
    name: "shopping_cart",
    columns: columns![sc_id: Serial, sc_time: Big, sc_sub_total: Big, sc_total: Big],
    key: "sc_id",
    ..Table::BARE
};

const SHOPPING_CART_LINE: Table = Table {
    name: "shopping_cart_line",
    columns: columns![scl_sc_id: Big, scl_i_id: Int, scl_qty: Int, scl_cost: Big],
    key: "scl_sc_id, scl_i_id",
    indexes: &["scl_i_id"],
    foreign: &[("scl_sc_id", "shopping_cart", "sc_id"), ("scl_i_id", "item", "i_id")],
    ..Table::BARE
};
