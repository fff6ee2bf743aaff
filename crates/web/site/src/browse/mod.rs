//! Emulated browsers: page transitions of `weir-workload` with the parameters of a benchmark's client.

mod emulated;
mod log;
mod status;
mod summary;
mod visitor;

pub use emulated::{Browsers, RETRY_AFTER};
pub use log::OrderLog;
pub use status::{Status, read_status};
pub use summary::{PageReport, Pages};
pub use visitor::{Asked, Receipt, Session, Visitor, page_of};
