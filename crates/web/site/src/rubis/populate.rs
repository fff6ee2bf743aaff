//! Initial content of RUBiS: a share of the published database (Amza et al., 2002) with 1,000,000 users, 33,000 items for
//! sale with about 10 bids each, 500,000 sold items with a comment each, 20 categories and 62 regions.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::account;
use crate::database::{Row, Value};
use crate::population::{DAY_S, MADE_AT_S, Population, Share, int, row};
use crate::schema::Table;
use crate::text::{row_generator, words};

/// Categories.
pub const CATEGORIES: u64 = 20;
/// Regions.
pub const REGIONS: u64 = 62;
/// Auctions end long after any run: 2036.
const ENDS_AT_S: i64 = MADE_AT_S + 3652 * DAY_S;

/// Initial content of a RUBiS site.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Auctions(pub Share);

impl Auctions {
    /// Users.
    pub fn users(&self) -> u64 {
        self.0.of(1e6)
    }

    /// Items for sale; their ids follow those of the old items.
    pub fn items(&self) -> u64 {
        self.0.of(33e3)
    }

    /// Items that were sold, and comments.
    pub fn old_items(&self) -> u64 {
        self.0.of(500e3)
    }

    /// The seller of an old item: users take turns, so the comments on a user follow from its id.
    fn old_seller(&self, item: u64) -> u64 {
        (item - 1) % self.users() + 1
    }

    /// The rating in the comment on an old item, -5 to 5.
    fn rating(&self, item: u64) -> i64 {
        row_generator(self.0.seed, "rating", item).random_range(-5..=5)
    }

    /// An item's price at first, and the bids on it: bidder and amount.
    fn bids(&self, item: u64) -> (i64, Vec<(u64, i64)>) {
        let mut rng = row_generator(self.0.seed, "bids of an item", item);
        let price = rng.random_range(100..=500_000);
        let mut amount = price;
        let bids = (0..rng.random_range(0..=20))
            .map(|_| {
                amount += rng.random_range(100..=1000);
                (rng.random_range(1..=self.users()), amount)
            })
            .collect();
        (price, bids)
    }

    fn item(&self, id: u64, seller: u64, sold: bool, mut rng: ChaCha8Rng) -> Row {
        let (price, bids) = self.bids(id);
        let quantity = if rng.random_bool(0.8) { 1 } else { rng.random_range(2..=10) };
        let reserve = if rng.random_bool(0.4) { price + rng.random_range(100..=100_000) } else { 0 };
        let buy_now = if rng.random_bool(0.1) { price + rng.random_range(100..=100_000) } else { 0 };
        let end = if sold {
            MADE_AT_S - rng.random_range(0..=730 * DAY_S)
        } else {
            ENDS_AT_S + rng.random_range(0..=7 * DAY_S)
        };
        let start = if sold { end - 7 * DAY_S } else { MADE_AT_S - rng.random_range(0..=7 * DAY_S) };
        row([
            int(id),
            format!("item {id} {}", words(&mut rng, 5, 40)).into(),
            words(&mut rng, 100, 2000).into(),
            Value::Int(price),
            Value::Int(if sold { 0 } else { quantity }),
            Value::Int(reserve),
            Value::Int(buy_now),
            Value::Int(bids.len() as i64),
            Value::Int(bids.last().map_or(0, |(_, amount)| *amount)),
            Value::Int(start),
            Value::Int(end),
            int(seller),
            Value::Int(rng.random_range(1..=CATEGORIES as i64)),
            Value::Int(quantity),
            Value::Null,
        ])
    }

    fn user(&self, id: u64) -> Row {
        let mut rng = row_generator(self.0.seed, "users", id);
        let ratings = (id..=self.old_items()).step_by(self.users() as usize).map(|item| self.rating(item));
        let account = account::of_population(id, &mut rng);
        row([int(id)].into_iter().chain(account).chain([
            Value::Int(ratings.sum()),
            Value::Int(0),
            Value::Int(MADE_AT_S - rng.random_range(0..=730 * DAY_S)),
            Value::Int(rng.random_range(1..=REGIONS as i64)),
            Value::Null,
        ]))
    }

    fn comment(&self, id: u64) -> Row {
        let mut rng = row_generator(self.0.seed, "comments", id);
        row([
            int(id),
            int(rng.random_range(1..=self.users())),
            int(self.old_seller(id)),
            int(id),
            Value::Int(self.rating(id)),
            Value::Int(MADE_AT_S - rng.random_range(0..=730 * DAY_S)),
            words(&mut rng, 20, 1000).into(),
            Value::Null,
        ])
    }
}

impl Population for Auctions {
    fn tables(&self) -> &'static [Table] {
        super::schema::TABLES
    }

    fn units(&self, table: &str) -> u64 {
        match table {
            "categories" => CATEGORIES,
            "regions" => REGIONS,
            "users" => self.users(),
            "items" | "bids" => self.items(),
            "old_items" | "comments" => self.old_items(),
            _ => 0,
        }
    }

    fn rows(&self, table: &str, unit: u64, to: &mut Vec<Row>) {
        match table {
            "categories" => to.push(row([int(unit), format!("category {unit}").into()])),
            "regions" => to.push(row([int(unit), format!("region {unit}").into()])),
            "users" => to.push(self.user(unit)),
            "old_items" => {
                let rng = row_generator(self.0.seed, "old_items", unit);
                to.push(self.item(unit, self.old_seller(unit), true, rng));
            }
            "items" => {
                let mut rng = row_generator(self.0.seed, "items", unit);
                let seller = rng.random_range(1..=self.users());
                to.push(self.item(self.old_items() + unit, seller, false, rng));
            }
            "bids" => {
                let item = self.old_items() + unit;
                // The id of a bid is computed from the item and the bid's number, with room for 32 on each item.
                to.extend(self.bids(item).1.into_iter().zip(1..).map(|((user, amount), place)| {
                    row([
                        int(unit * 32 + place),
                        int(user),
                        int(item),
                        Value::Int(1),
                        Value::Int(amount),
                        Value::Int(amount),
                        Value::Int(MADE_AT_S - 21 + place as i64),
                        Value::Null,
                    ])
                }));
            }
            "comments" => to.push(self.comment(unit)),
            _ => {}
        }
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let counts = [("users", self.users()), ("items", self.items()), ("old_items", self.old_items())];
        self.0.facts("rubis", &counts)
    }
}
