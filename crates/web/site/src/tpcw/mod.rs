//! TPC-W, version 1.8: an on-line bookshop with 14 interactions.

mod admin;
mod browse;
mod cart;
mod check;
mod customer;
mod order;
pub mod populate;
pub mod schema;
pub(crate) mod site;
mod visitor;
pub mod words;

pub use check::check;
pub use populate::Books;
pub use site::Bookshop;
pub use visitor::Reader;
