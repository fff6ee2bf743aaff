//! TPC-W, version 1.8: an on-line bookshop with 14 interactions.

pub mod populate;
pub mod schema;
pub mod words;

pub use populate::Books;
