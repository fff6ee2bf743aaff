//! Block devices: identity, users, contents, formatting and wiping, queue settings.
//!
//! The order is always the same: look at identities ([`Identity`]), hold the device exclusively ([`Claim`]), check that it is
//! blank ([`contents::check_blank`]), record, act. Undoing compares the identity and the UUID that weir itself gave, under an
//! exclusive claim, and leaves the device as it is where anything differs.

mod claim;
pub mod contents;
mod format;
mod identity;
mod loop_info;
pub mod queue;
mod users;

pub use claim::Claim;
pub use format::{GivenBack, Mark, Written, check_before_writing, make_file_system, random_uuid};
pub use identity::{Backing, Identity};
pub use loop_info::LoopInfo;
pub use users::find as find_user;
