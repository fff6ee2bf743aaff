//! Content and names of files that weir writes, to check what is read back.

mod file_name;
pub mod fill;
pub mod pattern;

pub use file_name::{file_id, file_name};
