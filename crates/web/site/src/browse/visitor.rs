//! Interface of a benchmark's client: request parameters and receipts.

use rand_chacha::ChaCha8Rng;
use serde_json::Value;

use crate::http::form;

/// The page of a state: its name reduced to letters and digits.
pub fn page_of(state: &str) -> String {
    state.chars().filter(char::is_ascii_alphanumeric).collect()
}

/// An acknowledged change, which the site must never lose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// Kind of change: `order`, `bid` and so on.
    pub kind: &'static str,
    /// The browser's token.
    pub token: String,
    /// The id from the site.
    pub id: i64,
    /// Its total in cents, or another value that the site stores.
    pub amount: i64,
}

/// The parameters of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asked {
    /// Whether it is a POST request.
    pub posted: bool,
    /// The parameters.
    pub form: String,
}

impl Asked {
    /// Makes it a POST request.
    pub fn post(&mut self) -> &mut Self {
        self.posted = true;
        self
    }

    /// Adds a parameter.
    pub fn put(&mut self, name: &str, value: &str) -> &mut Self {
        form::put(&mut self.form, name, value);
        self
    }

    /// Adds a number, if there is one.
    pub fn put_maybe(&mut self, name: &str, value: Option<i64>) -> &mut Self {
        if let Some(value) = value {
            form::put(&mut self.form, name, &value.to_string());
        }
        self
    }
}

/// State of every client: random numbers, tokens and the last page.
pub struct Session {
    /// Random numbers of the client.
    pub(crate) rng: ChaCha8Rng,
    /// Begins every token of this client; no other client's do.
    mark: String,
    tokens: u64,
    /// Marks the last request that changed something: a repeated one does nothing twice.
    pub(crate) token: String,
    /// The last page that was answered.
    pub(crate) last: String,
}

impl Session {
    pub(crate) fn new(rng: ChaCha8Rng, mark: String) -> Self {
        Session { rng, mark, tokens: 0, token: String::new(), last: String::new() }
    }

    /// A token that no other request has.
    pub(crate) fn next_token(&mut self) -> &str {
        self.tokens += 1;
        self.token = format!("{}-{}", self.mark, self.tokens);
        &self.token
    }

    /// Makes it a POST request with a new token.
    pub(crate) fn post(&mut self, asked: &mut Asked) {
        asked.post().put("token", self.next_token());
    }

    pub(crate) fn receipt(&self, kind: &'static str, id: i64, amount: i64) -> Receipt {
        Receipt { kind, token: self.token.clone(), id, amount }
    }
}

/// A client of a benchmark: request parameters, and state from the answers.
pub trait Visitor: Send {
    /// Begins a session as another customer, without state.
    fn begin(&mut self);

    /// Fills in the parameters of a page.
    fn ask(&mut self, page: &str, asked: &mut Asked);

    /// Updates the state from an answer; returns acknowledged receipts.
    fn take(&mut self, page: &str, answer: &Value) -> Option<Receipt>;

    /// The site refused the last request; it is not repeated.
    fn refused(&mut self, page: &str);
}
