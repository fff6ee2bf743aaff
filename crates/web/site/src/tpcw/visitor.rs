//! Emulated browser of TPC-W (clause 5): parameters from the last pages.

use rand::RngExt;
use rand::seq::IndexedRandom;
use serde_json::Value;

use super::words::{CARDS, COUNTRIES, SHIPPING, SUBJECTS};
use crate::Error;
use crate::browse::{Asked, Receipt, Session, Visitor};
use crate::facts::{self, Facts};
use crate::text::{digits, digsyl, letters, nurand, words};

/// Sessions of customers that are known; the others register when they buy (clause 5.3.1).
const KNOWN_CUSTOMERS: f64 = 0.8;
/// Largest quantity that a browser writes into its cart.
const LARGEST_QUANTITY: i64 = 10;

/// A reader of books.
pub(super) struct Reader {
    session: Session,
    items: u64,
    customers: u64,
    c_id: Option<i64>,
    sc_id: Option<i64>,
    /// Books on the last page.
    seen: Vec<i64>,
    /// The book of the last page, if that page showed one book.
    product: Option<i64>,
    /// Books in the cart, from the last page that showed the cart.
    cart: Vec<i64>,
}

/// A of NURand by the number of values (clause 2.1.13).
fn unevenness(most: u64, table: [(u64, u64); 5]) -> u64 {
    table.iter().rev().find(|(from, _)| most >= *from).map_or(table[0].1, |(_, a)| *a)
}

const CUSTOMER_A: [(u64, u64); 5] =
    [(0, 1023), (10_000, 4095), (40_000, 16_383), (160_000, 65_535), (640_000, 262_143)];
const ITEM_A: [(u64, u64); 5] =
    [(0, 63), (10_000, 511), (100_000, 4095), (1_000_000, 32_767), (10_000_000, 524_287)];

impl Reader {
    pub(super) fn new(facts: &Facts, session: Session) -> Result<Self, Error> {
        Ok(Reader {
            session,
            items: facts::number(facts, "items")?.max(1) as u64,
            customers: facts::number(facts, "customers")?.max(1) as u64,
            c_id: None,
            sc_id: None,
            seen: Vec::new(),
            product: None,
            cart: Vec::new(),
        })
    }

    fn any_item(&mut self) -> i64 {
        let a = unevenness(self.items, ITEM_A);
        nurand(&mut self.session.rng, a, 1, self.items) as i64
    }

    fn any_customer(&mut self) -> i64 {
        let a = unevenness(self.customers, CUSTOMER_A);
        nurand(&mut self.session.rng, a, 1, self.customers) as i64
    }

    fn subject(&mut self) -> &'static str {
        SUBJECTS[self.session.rng.random_range(0..SUBJECTS.len())]
    }

    /// A book of the last page, or any where it showed none.
    fn some_item(&mut self) -> i64 {
        match self.seen.choose(&mut self.session.rng) {
            Some(item) => *item,
            None => self.any_item(),
        }
    }

    fn search(&mut self, asked: &mut Asked) {
        match self.session.rng.random_range(0..3) {
            0 => asked.put("type", "subject").put("subject", self.subject()),
            1 => {
                let number = self.session.rng.random_range(1..=(self.items / 10).max(1));
                asked.put("type", "author").put("search", &digsyl(number, 7))
            }
            _ => {
                let number = self.session.rng.random_range(1..=(self.items / 5).max(1));
                asked.put("type", "title").put("search", &digsyl(number, 7))
            }
        };
    }

    fn cart(&mut self, asked: &mut Asked) {
        asked.post().put_maybe("sc_id", self.sc_id);
        if self.session.last == "SHOP" {
            let quantities: Vec<String> = self
                .cart
                .iter()
                .map(|item| format!("{item}:{}", self.session.rng.random_range(0..=LARGEST_QUANTITY)))
                .collect();
            asked.put("qty", &quantities.join(","));
        } else {
            asked.put_maybe("i_id", self.product);
        }
    }

    fn log_in(&mut self, c_id: i64, asked: &mut Asked) {
        let name = digsyl(c_id as u64, 0);
        asked.put("uname", &name).put("passwd", &name.to_lowercase());
    }

    fn address(&mut self, prefix: &str, asked: &mut Asked) {
        let rng = &mut self.session.rng;
        let country = COUNTRIES[rng.random_range(0..COUNTRIES.len())];
        for (name, value) in [
            ("street1", words(rng, 15, 40)),
            ("street2", words(rng, 15, 40)),
            ("city", words(rng, 4, 30)),
            ("state", letters(rng, 2, 20)),
            ("zip", digits(rng, 5)),
            ("country", country.to_owned()),
        ] {
            asked.put(&format!("{prefix}{name}"), &value);
        }
    }

    fn register(&mut self, asked: &mut Asked) {
        self.address("", asked);
        let rng = &mut self.session.rng;
        for (name, value) in [
            ("fname", letters(rng, 8, 15)),
            ("lname", letters(rng, 8, 15)),
            ("phone", digits(rng, 16)),
            ("email", format!("{}@{}.com", letters(rng, 8, 12), letters(rng, 2, 9))),
            ("birthdate", rng.random_range(-2_840_140_800i64..=1_000_000_000).to_string()),
            ("data", words(rng, 100, 500)),
        ] {
            asked.put(name, &value);
        }
    }

    fn buy(&mut self, asked: &mut Asked) {
        asked.post().put_maybe("sc_id", self.sc_id).put_maybe("c_id", self.c_id);
        asked.put("token", self.session.next_token());
        let rng = &mut self.session.rng;
        for (name, value) in [
            ("cc_type", CARDS[rng.random_range(0..CARDS.len())].to_owned()),
            ("cc_num", digits(rng, 16)),
            ("cc_name", words(rng, 14, 30)),
            ("cc_expire", rng.random_range(1_800_000_000i64..=1_900_000_000).to_string()),
            ("shipping", SHIPPING[rng.random_range(0..SHIPPING.len())].to_owned()),
        ] {
            asked.put(name, &value);
        }
        // One order in twenty has another shipping address (clause 2.7).
        if rng.random_range(0..20) == 0 {
            self.address("ship_", asked);
        }
    }
}

impl Visitor for Reader {
    fn begin(&mut self) {
        self.c_id = self.session.rng.random_bool(KNOWN_CUSTOMERS).then(|| self.any_customer());
        self.sc_id = None;
        self.seen.clear();
        self.product = None;
        self.cart.clear();
        self.session.last.clear();
    }

    fn ask(&mut self, page: &str, asked: &mut Asked) {
        match page {
            "HOME" | "CREG" | "ORDI" => {
                asked.put_maybe("c_id", self.c_id);
            }
            "NEWP" | "BESS" => {
                asked.put("subject", self.subject());
            }
            "PROD" => {
                let item = self.some_item();
                asked.put("i_id", &item.to_string());
            }
            "ADMR" => {
                let item = self.product.unwrap_or_else(|| self.any_item());
                asked.put("i_id", &item.to_string());
            }
            "ADMC" => {
                let item = self.product.unwrap_or_else(|| self.any_item());
                let cost = self.session.rng.random_range(100..=999_999);
                asked.post().put("i_id", &item.to_string()).put("cost", &cost.to_string());
                asked
                    .put("image", &format!("image_{item}.gif"))
                    .put("thumbnail", &format!("thumb_{item}.gif"));
            }
            "SRES" => self.search(asked),
            "SHOP" => self.cart(asked),
            "BUYR" => {
                asked.post().put_maybe("sc_id", self.sc_id);
                match self.c_id {
                    Some(c_id) => self.log_in(c_id, asked),
                    None => self.register(asked),
                }
            }
            "BUYC" => self.buy(asked),
            "ORDD" => {
                let c_id = self.c_id.unwrap_or_else(|| self.any_customer());
                self.log_in(c_id, asked);
            }
            _ => {}
        }
    }

    fn take(&mut self, page: &str, answer: &Value) -> Option<Receipt> {
        self.session.last = page.to_owned();
        let ids = |list: &str| -> Option<Vec<i64>> {
            let list = answer.get(list)?.as_array()?;
            Some(list.iter().filter_map(|one| one.get("i_id")?.as_i64()).collect())
        };
        let number = |name: &str| answer.get(name).and_then(Value::as_i64);
        self.seen = ids("items").or_else(|| ids("lines")).unwrap_or_default();
        self.product = matches!(page, "PROD" | "ADMR").then(|| number("i_id")).flatten();
        match page {
            "SHOP" => {
                self.sc_id = number("sc_id");
                self.cart = self.seen.clone();
            }
            "BUYR" => self.c_id = number("c_id"),
            "BUYC" => {
                self.sc_id = None;
                self.cart.clear();
                let (id, amount) = (number("o_id")?, number("total")?);
                return Some(self.session.receipt("order", id, amount));
            }
            _ => {}
        }
        None
    }

    fn refused(&mut self, page: &str) {
        self.session.last = page.to_owned();
        // A missing or empty cart is abandoned.
        if matches!(page, "SHOP" | "BUYR" | "BUYC") {
            self.sc_id = None;
            self.cart.clear();
        }
    }
}
