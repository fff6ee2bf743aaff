//! RUBBoS: a bulletin board after slashdot.org, with 24 pages (Amza et al., WWC-5, 2002).

mod check;
mod look;
pub mod populate;
pub mod schema;
pub(crate) mod site;
mod visitor;
mod write;

pub use check::check;
pub use populate::Board;
pub use site::BulletinBoard;
pub use visitor::Poster;
