//! The 14 interactions of TPC-W, clause 2, as pages.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use crate::Error;
use crate::database::Row;
use crate::facts::{self, Facts};
use crate::http::{Answers, Context, Form};

/// The bookshop's pages.
pub(super) struct Bookshop {
    /// Items in the shop.
    pub(super) items: i64,
    draws: AtomicU64,
}

pub(super) const PAGES: &[&str] = &[
    "HOME", "NEWP", "BESS", "PROD", "SREQ", "SRES", "SHOP", "CREG", "BUYR", "BUYC", "ORDI", "ORDD", "ADMR",
    "ADMC",
];
/// Pages that change something.
pub(super) const CHANGES: &[&str] = &["SHOP", "BUYR", "BUYC", "ADMC"];

impl Bookshop {
    pub(super) fn new(facts: &Facts) -> Result<Self, Error> {
        Ok(Bookshop { items: facts::number(facts, "items")?, draws: AtomicU64::new(0) })
    }

    /// A pseudo-random number from 1 to `most` (splitmix64, Steele et al.).
    pub(super) fn draw(&self, most: i64) -> i64 {
        let mut bits = self.draws.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ bits >> 31) % most.max(1) as u64) as i64 + 1
    }
}

impl Answers for Bookshop {
    fn answer(&self, page: &str, form: &Form, context: &mut Context<'_>) -> Result<Value, Error> {
        match page {
            "HOME" => self.home(form, context),
            "NEWP" => self.new_products(form, context),
            "BESS" => self.best_sellers(form, context),
            "PROD" => self.product(form, context),
            "SREQ" => self.search_request(form, context),
            "SRES" => self.search_results(form, context),
            "SHOP" => self.cart(form, context),
            "CREG" => self.registration(form, context),
            "BUYR" => self.buy_request(form, context),
            "BUYC" => self.buy_confirm(form, context),
            "ORDI" => self.order_inquiry(form, context),
            "ORDD" => self.order_display(form, context),
            "ADMR" => self.admin_request(form, context),
            "ADMC" => self.admin_confirm(form, context),
            other => Err(Error::absent(format!("no page {other}"))),
        }
    }
}

/// Books in a list: id, title, author's first and last name.
pub(super) fn list(rows: &[Row]) -> Result<Value, Error> {
    rows.iter()
        .map(|row| {
            Ok(json!({"i_id": row.int(0)?, "title": row.text(1)?, "author": format!("{} {}", row.text(2)?, row.text(3)?)}))
        })
        .collect()
}
