//! What a benchmark's client has to say.

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
