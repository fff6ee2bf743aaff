//! Contents of the files and devices that weir writes, so that what is read back can be checked.

mod file_name;
pub mod fill;
pub mod pattern;

pub use file_name::{file_id, file_name};
