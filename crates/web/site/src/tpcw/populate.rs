//! Initial content of TPC-W: cardinalities of clause 4.3, content of clause 4.7.

use rand::RngExt;
use rand::seq::IndexedRandom;

use super::words::{BACKINGS, CARDS, COUNTRIES, SHIPPING, STATUS, SUBJECTS};
use crate::Error;
use crate::database::{Row, Value};
use crate::population::{DAY_S, MADE_AT_S, Population, Scale, int, out_of_range, row};
use crate::schema::Table;
use crate::text::{digits, digsyl, letters, row_generator, words};

/// Customers for each emulated browser.
pub const CUSTOMERS_PER_BROWSER: u64 = 2880;

/// Initial content of a TPC-W site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Books {
    /// Items. The specification defines 1,000, 10,000, 100,000 and so on.
    pub items: u64,
    /// Emulated browsers that the database is made for.
    pub browsers: u64,
    /// The seed.
    pub seed: u64,
}

impl Books {
    pub(crate) fn new(scale: Scale) -> Result<Self, Error> {
        let Scale { items, browsers, seed, .. } = scale;
        if !(20..=10_000_000).contains(&items) {
            return Err(out_of_range("items", items, "20 to 10,000,000"));
        }
        if !(1..=100_000).contains(&browsers) {
            return Err(out_of_range("browsers", browsers, "1 to 100,000"));
        }
        Ok(Books { items, browsers, seed })
    }

    /// Customers.
    pub fn customers(&self) -> u64 {
        self.browsers * CUSTOMERS_PER_BROWSER
    }

    /// Authors: one for four items.
    pub fn authors(&self) -> u64 {
        (self.items / 4).max(1)
    }

    /// Addresses: two for each customer.
    pub fn addresses(&self) -> u64 {
        2 * self.customers()
    }

    /// Orders: nine for ten customers.
    pub fn orders(&self) -> u64 {
        self.customers() * 9 / 10
    }

    /// Prices of an item, in cents: the suggested retail price, and this price less up to a half.
    fn prices(&self, item: u64) -> (i64, i64) {
        let mut rng = row_generator(self.seed, "price", item);
        let srp: i64 = rng.random_range(100..=999_999);
        (srp, srp - srp * rng.random_range(0..=50) / 100)
    }

    /// A customer's discount, in per cent.
    fn discount(&self, customer: u64) -> i64 {
        row_generator(self.seed, "discount", customer).random_range(0..=50)
    }

    fn order(&self, order: u64) -> Order {
        let mut rng = row_generator(self.seed, "order", order);
        let customer = rng.random_range(1..=self.customers());
        let discount = self.discount(customer);
        let mut lines: Vec<Line> = Vec::new();
        for _ in 0..rng.random_range(1..=5) {
            let item = rng.random_range(1..=self.items);
            let cost = discounted(self.prices(item).1, discount);
            lines.push(Line {
                item,
                quantity: rng.random_range(1..=300),
                cost,
                comments: words(&mut rng, 20, 100),
            });
        }
        let date = MADE_AT_S - rng.random_range(DAY_S..=60 * DAY_S);
        Order { customer, discount, date, lines }
    }
}

/// A price less a customer's discount, rounded to a cent.
pub(super) fn discounted(cost: i64, discount_percent: i64) -> i64 {
    (cost * (100 - discount_percent) + 50) / 100
}

/// Tax and total of an order: 8.25 % of the subtotal; 3.00 and 1.00 for each line for shipping (clauses 2.6, 2.7).
pub(super) fn tax_and_total(sub_total: i64, lines: i64) -> (i64, i64) {
    let tax = (sub_total * 825 + 5000) / 10_000;
    (tax, sub_total + tax + 300 + 100 * lines)
}

struct Line {
    item: u64,
    quantity: i64,
    cost: i64,
    comments: String,
}

struct Order {
    customer: u64,
    discount: i64,
    date: i64,
    lines: Vec<Line>,
}

impl Order {
    fn sub_total(&self) -> i64 {
        self.lines.iter().map(|line| line.quantity * line.cost).sum()
    }
}

impl Population for Books {
    fn tables(&self) -> &'static [Table] {
        super::schema::TABLES
    }

    fn units(&self, table: &str) -> u64 {
        match table {
            "country" => COUNTRIES.len() as u64,
            "address" => self.addresses(),
            "customer" => self.customers(),
            "author" => self.authors(),
            "item" => self.items,
            "orders" | "order_line" | "cc_xacts" => self.orders(),
            _ => 0,
        }
    }

    fn rows(&self, table: &str, unit: u64, to: &mut Vec<Row>) {
        match table {
            "country" => to.push(self.country(unit)),
            "address" => to.push(self.address(unit)),
            "customer" => to.push(self.customer(unit)),
            "author" => to.push(self.author(unit)),
            "item" => to.push(self.item(unit)),
            "orders" => to.push(self.order_row(unit)),
            "order_line" => self.order_lines(unit, to),
            "cc_xacts" => to.push(self.card(unit)),
            _ => {}
        }
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        vec![
            ("benchmark", "tpcw".into()),
            ("items", self.items.to_string()),
            ("browsers", self.browsers.to_string()),
            ("customers", self.customers().to_string()),
            ("orders", self.orders().to_string()),
            ("seed", self.seed.to_string()),
        ]
    }
}

impl Books {
    fn country(&self, id: u64) -> Row {
        let mut rng = row_generator(self.seed, "country", id);
        let name = COUNTRIES[id as usize - 1];
        let exchange = if id == 1 { 1_000_000 } else { rng.random_range(100_000..=9_999_999) };
        row([int(id), name.into(), Value::Int(exchange), name.chars().take(18).collect::<String>().into()])
    }

    fn address(&self, id: u64) -> Row {
        let mut rng = row_generator(self.seed, "address", id);
        row([
            int(id),
            words(&mut rng, 15, 40).into(),
            words(&mut rng, 15, 40).into(),
            words(&mut rng, 4, 30).into(),
            letters(&mut rng, 2, 20).into(),
            digits(&mut rng, 5).into(),
            Value::Int(rng.random_range(1..=COUNTRIES.len() as i64)),
        ])
    }

    fn customer(&self, id: u64) -> Row {
        let mut rng = row_generator(self.seed, "customer", id);
        let name = digsyl(id, 0);
        let since = MADE_AT_S - rng.random_range(DAY_S..=730 * DAY_S);
        let visit = (since + rng.random_range(0..=60 * DAY_S)).min(MADE_AT_S);
        row([
            int(id),
            name.as_str().into(),
            name.to_lowercase().into(),
            letters(&mut rng, 8, 15).into(),
            letters(&mut rng, 8, 15).into(),
            Value::Int(rng.random_range(1..=self.addresses() as i64)),
            digits(&mut rng, 16).into(),
            format!("{name}@{}.com", letters(&mut rng, 2, 9)).into(),
            Value::Int(since),
            Value::Int(visit),
            Value::Int(MADE_AT_S),
            Value::Int(MADE_AT_S + 7200),
            Value::Int(self.discount(id)),
            Value::Int(0),
            Value::Int(rng.random_range(0..=99_999)),
            Value::Int(rng.random_range(-2_840_140_800..=MADE_AT_S)),
            words(&mut rng, 100, 500).into(),
        ])
    }

    /// Last names begin with a syllable name of which ten items' worth of authors share one: a search finds some 10 items.
    fn author(&self, id: u64) -> Row {
        let mut rng = row_generator(self.seed, "author", id);
        let groups = (self.items / 10).max(1);
        let name = format!("{}{}", digsyl(1 + (id - 1) % groups, 7), letters(&mut rng, 1, 6));
        row([
            int(id),
            letters(&mut rng, 3, 20).into(),
            name.into(),
            letters(&mut rng, 1, 20).into(),
            Value::Int(rng.random_range(-5_364_662_400..=631_152_000)),
            words(&mut rng, 125, 500).into(),
        ])
    }

    /// Titles begin with a syllable name that five items share.
    fn item(&self, id: u64) -> Row {
        let mut rng = row_generator(self.seed, "item", id);
        let title =
            format!("{} {}", digsyl(1 + (id - 1) % (self.items / 5).max(1), 7), words(&mut rng, 1, 45));
        // Every author has an item; the others are shared out by chance.
        let author = if id <= self.authors() { id } else { rng.random_range(1..=self.authors()) };
        let (srp, cost) = self.prices(id);
        let published = rng.random_range(-1_262_304_000..=MADE_AT_S);
        let stock = rng.random_range(10..=30);
        let related = related(&mut rng, id, self.items);
        let pick = |from: &[&'static str], rng: &mut _| Value::from(*from.choose(rng).unwrap_or(&""));
        let mut values = vec![
            int(id),
            title.into(),
            int(author),
            Value::Int(published),
            words(&mut rng, 14, 60).into(),
            pick(&SUBJECTS, &mut rng),
            words(&mut rng, 100, 500).into(),
        ];
        values.extend(related.map(int));
        values.extend([
            format!("thumb_{id}.gif").into(),
            format!("image_{id}.gif").into(),
            Value::Int(srp),
            Value::Int(cost),
            Value::Int(published + rng.random_range(1..=30) * DAY_S),
            Value::Int(stock),
            letters(&mut rng, 13, 13).into(),
            Value::Int(rng.random_range(20..=9999)),
            pick(&BACKINGS, &mut rng),
            format!(
                "{}x{}x{}",
                rng.random_range(1..=9999),
                rng.random_range(1..=9999),
                rng.random_range(1..=9999)
            )
            .into(),
            Value::Int(stock),
            Value::Int(0),
        ]);
        Row(values)
    }

    fn order_row(&self, id: u64) -> Row {
        let order = self.order(id);
        let mut rng = row_generator(self.seed, "orders", id);
        let sub_total = order.sub_total();
        let (tax, total) = tax_and_total(sub_total, order.lines.len() as i64);
        row([
            int(id),
            int(order.customer),
            Value::Int(order.date),
            Value::Int(sub_total),
            Value::Int(tax),
            Value::Int(total),
            SHIPPING[rng.random_range(0..SHIPPING.len())].into(),
            Value::Int(order.date + rng.random_range(0..=7) * DAY_S),
            Value::Int(rng.random_range(1..=self.addresses() as i64)),
            Value::Int(rng.random_range(1..=self.addresses() as i64)),
            STATUS[rng.random_range(0..STATUS.len())].into(),
            Value::Null,
        ])
    }

    fn order_lines(&self, id: u64, to: &mut Vec<Row>) {
        let order = self.order(id);
        to.extend(order.lines.into_iter().zip(1..).map(|(line, number)| {
            row([
                int(id),
                Value::Int(number),
                int(line.item),
                Value::Int(line.quantity),
                Value::Int(line.cost),
                Value::Int(order.discount),
                line.comments.into(),
            ])
        }));
    }

    fn card(&self, id: u64) -> Row {
        let order = self.order(id);
        let mut rng = row_generator(self.seed, "card", id);
        let (_, total) = tax_and_total(order.sub_total(), order.lines.len() as i64);
        row([
            int(id),
            CARDS[rng.random_range(0..CARDS.len())].into(),
            digits(&mut rng, 16).into(),
            words(&mut rng, 14, 30).into(),
            Value::Int(order.date + rng.random_range(10..=730) * DAY_S),
            letters(&mut rng, 15, 15).into(),
            Value::Int(total),
            Value::Int(order.date),
            Value::Int(rng.random_range(1..=COUNTRIES.len() as i64)),
        ])
    }
}

/// Five other items, all different where there are as many.
fn related(rng: &mut impl rand::Rng, id: u64, items: u64) -> [u64; 5] {
    let mut found = [0; 5];
    for place in 0..5 {
        found[place] = loop {
            let item = rng.random_range(1..=items);
            if items < 7 || (item != id && !found[..place].contains(&item)) {
                break item;
            }
        };
    }
    found
}
