//! Client of RUBiS: parameters from the items, users and categories of the last pages.

use rand::RngExt;
use rand::seq::IndexedRandom;
use serde_json::Value;

use super::populate::{CATEGORIES, REGIONS};
use crate::browse::{Asked, Receipt, Session, Visitor};
use crate::facts::{self, Facts};
use crate::text::words;
use crate::{Error, account};

/// A visitor of auctions.
pub(super) struct Bidder {
    session: Session,
    users: i64,
    items: i64,
    old_items: i64,
    user: i64,
    region: i64,
    category: i64,
    number: i64,
    seen: Vec<i64>,
    item: i64,
    /// Highest bid on the item, or its price.
    bid: i64,
    quantity: i64,
    other: i64,
}

impl Bidder {
    pub(super) fn new(facts: &Facts, session: Session) -> Result<Self, Error> {
        let number = |name| facts::number(facts, name).map(|number| number.max(1));
        Ok(Bidder {
            users: number("users")?,
            items: number("items")?,
            old_items: number("old_items")?,
            session,
            user: 1,
            region: 1,
            category: 1,
            number: 0,
            seen: Vec::new(),
            item: 1,
            bid: 100,
            quantity: 1,
            other: 1,
        })
    }

    /// One of the items that were for sale initially.
    fn any_item(&mut self) -> i64 {
        self.old_items + self.session.rng.random_range(1..=self.items)
    }

    fn log_in(&self, asked: &mut Asked) {
        account::log_in(self.user, asked);
    }

    /// Page of a list: the next one while the last was not empty.
    fn list(&mut self, page: &str, asked: &mut Asked) {
        let again = self.session.last == page && !self.seen.is_empty();
        self.number = if again { self.number + 1 } else { 0 };
        if !again {
            self.category = self.session.rng.random_range(1..=CATEGORIES as i64);
        }
        asked.put_maybe("category", Some(self.category)).put_maybe("number", Some(self.number));
    }

    fn register_item(&mut self, asked: &mut Asked) {
        self.session.post(asked);
        self.log_in(asked);
        let price = self.session.rng.random_range(100..=500_000);
        let rng = &mut self.session.rng;
        asked.put("name", &words(rng, 5, 60)).put("description", &words(rng, 100, 2000));
        for (name, value) in [
            ("initial_price", price),
            ("reserve_price", if rng.random_bool(0.4) { price + 1000 } else { 0 }),
            ("buy_now", if rng.random_bool(0.1) { price + 2000 } else { 0 }),
            ("quantity", rng.random_range(1..=10)),
            ("category", self.category),
        ] {
            asked.put_maybe(name, Some(value));
        }
    }

    fn register_user(&mut self, asked: &mut Asked) {
        account::register(&mut self.session, asked);
        asked.put_maybe("region", Some(self.region));
    }
}

impl Visitor for Bidder {
    fn begin(&mut self) {
        self.user = self.session.rng.random_range(1..=self.users);
        self.region = self.session.rng.random_range(1..=REGIONS as i64);
        self.category = self.session.rng.random_range(1..=CATEGORIES as i64);
        self.item = self.any_item();
        self.other = self.session.rng.random_range(1..=self.users);
        (self.number, self.bid, self.quantity) = (0, 100, 1);
        self.seen.clear();
        self.session.last.clear();
    }

    fn ask(&mut self, page: &str, asked: &mut Asked) {
        let item = |this: &Self, asked: &mut Asked| {
            asked.put_maybe("item", Some(this.item));
        };
        match page {
            "SearchItemsInCategory" => self.list(page, asked),
            "SearchItemsInRegion" => {
                self.list(page, asked);
                asked.put_maybe("region", Some(self.region));
            }
            "BrowseCategoriesInRegion" => {
                self.region = self.session.rng.random_range(1..=REGIONS as i64);
                asked.put_maybe("region", Some(self.region));
            }
            "ViewItem" | "PutBidAuth" | "BuyNowAuth" => {
                if let Some(seen) = self.seen.choose(&mut self.session.rng) {
                    self.item = *seen;
                }
                item(self, asked);
            }
            "ViewBidHistory" | "PutCommentAuth" => item(self, asked),
            "ViewUserInfo" => {
                asked.put_maybe("user", Some(self.other));
            }
            "BuyNow" | "PutBid" | "PutComment" => {
                item(self, asked);
                self.log_in(asked);
            }
            "StoreBid" => {
                self.session.post(asked);
                item(self, asked);
                self.log_in(asked);
                let bid = self.bid + self.session.rng.random_range(100..=1000);
                asked
                    .put_maybe("bid", Some(bid))
                    .put_maybe("max_bid", Some(bid + 1000))
                    .put_maybe("qty", Some(1));
            }
            "StoreBuyBow" => {
                self.session.post(asked);
                item(self, asked);
                self.log_in(asked);
                let quantity = self.session.rng.random_range(1..=self.quantity.max(1));
                asked.put_maybe("qty", Some(quantity));
            }
            "StoreComment" => {
                self.session.post(asked);
                item(self, asked);
                self.log_in(asked);
                let rating = self.session.rng.random_range(-5..=5);
                asked.put_maybe("to", Some(self.other)).put_maybe("rating", Some(rating));
                asked.put("comment", &words(&mut self.session.rng, 20, 1000));
            }
            "SelectCategoryToSellItem" | "AboutMe" => self.log_in(asked),
            "SellItemForm" => {
                asked.put_maybe("category", Some(self.category));
            }
            "RegisterItem" => self.register_item(asked),
            "RegisterUser" => self.register_user(asked),
            _ => {}
        }
    }

    fn take(&mut self, page: &str, answer: &Value) -> Option<Receipt> {
        self.session.last = page.to_owned();
        let number = |name: &str| answer.get(name).and_then(Value::as_i64);
        if let Some(items) = answer.get("items").and_then(Value::as_array) {
            self.seen = items.iter().filter_map(|item| item.get("id")?.as_i64()).collect();
        }
        if let Some(seller) = number("seller") {
            self.other = seller;
            self.bid = number("max_bid").unwrap_or(0).max(number("initial_price").unwrap_or(100));
            self.quantity = number("quantity").unwrap_or(1);
            // Items that are no longer for sale accept no bids.
            if answer.get("for_sale") == Some(&Value::Bool(false)) {
                self.item = self.any_item();
            }
        }
        let kind = match page {
            "StoreBid" => "bid",
            "StoreBuyBow" => "purchase",
            "StoreComment" => "comment",
            "RegisterItem" => "item",
            "RegisterUser" => "user",
            _ => return None,
        };
        let (id, amount) = (number("id")?, number("amount")?);
        // Id 0: nothing was left to buy.
        (id > 0).then(|| self.session.receipt(kind, id, amount))
    }

    fn refused(&mut self, page: &str) {
        self.session.last = page.to_owned();
        self.item = self.any_item();
        self.seen.clear();
    }
}
