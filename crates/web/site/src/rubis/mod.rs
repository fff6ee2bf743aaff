//! RUBiS: an auction site after eBay.com, with 27 pages (Amza et al., WWC-5, 2002).

mod check;
mod look;
pub mod populate;
pub mod schema;
pub(crate) mod site;
mod trade;
mod visitor;

pub use check::check;
pub use populate::Auctions;
pub use site::AuctionSite;
pub use visitor::Bidder;
