//! Emulated browsers: the walks of `weir-workload` with what a benchmark's client puts into its requests.

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
