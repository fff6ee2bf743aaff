//! YAML specifications, read with errors that a person can act on.
//!
//! A [`Document`] is a YAML file whose every node remembers its line. It turns into a typed value with
//! [`Document::parse`]; whatever is wrong with it, in shape or in meaning, becomes a [`Problem`] that names
//! the file, the line, the field, what was found, what is allowed and, where a name was mistyped, the
//! nearest one.

mod document;
mod problem;
mod tree;

pub use document::{Document, read_text};
pub use problem::{Problem, Problems, nearest, one_of};
