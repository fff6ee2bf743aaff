//! What a benchmark's client has to say.

use rand_chacha::ChaCha8Rng;
use serde_json::Value;

use crate::http::form;

/// The page of a state: its name without what is not a letter or a digit.
pub fn page_of(state: &str) -> String {
    state.chars().filter(char::is_ascii_alphanumeric).collect()
}

/// Something that a site acknowledged, and must never lose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// What it is: `order`, `bid` and so on.
    pub kind: &'static str,
    /// The browser's token.
    pub token: String,
    /// The id that the site gave.
    pub id: i64,
    /// Its total in cents, or what else the site holds of it.
    pub amount: i64,
}

/// The parameters of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asked {
    /// Whether it changes something.
    pub posted: bool,
    /// The parameters.
    pub form: String,
}

impl Asked {
    /// Makes it a request that changes something.
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

/// What every client has: its draws, its tokens, and the page that it was on.
pub struct Session {
    /// Draws what the client does.
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

    /// Makes it a request that changes something, with a token of its own.
    pub(crate) fn post(&mut self, asked: &mut Asked) {
        asked.post().put("token", self.next_token());
    }

    pub(crate) fn receipt(&self, kind: &'static str, id: i64, amount: i64) -> Receipt {
        Receipt { kind, token: self.token.clone(), id, amount }
    }
}

/// A client of a benchmark: what it asks a page for, and what it keeps of the answers.
pub trait Visitor: Send {
    /// A session begins: as another customer, with nothing seen.
    fn begin(&mut self);

    /// Fills in the parameters of a page.
    fn ask(&mut self, page: &str, asked: &mut Asked);

    /// Keeps what it needs of an answer; returns what the site has acknowledged with it.
    fn take(&mut self, page: &str, answer: &Value) -> Option<Receipt>;

    /// The site refused the last request, and it will not be repeated.
    fn refused(&mut self, page: &str);
}
