//! YAML specifications with errors that name file, line, field and remedy.
//!
//! A [`Document`] is a YAML file with the line of each node. [`Document::parse`] makes a typed value of it;
//! [`Document::parse_all`] also finds all problems at once. A [`Problem`] names the file, the line, the field, what was
//! found, what is expected and, for a mistyped name, the nearest one.
//!
//! A field with a unit in its name also takes a text with a unit, such as `4k` or `100ms` (`unit.rs`).
//!
//! A [`Setting`] describes a value that a user can set, with its type ([`Kind`]). A value enters configurations and
//! commands only as a [`template::Value`]. [`name_problem`] checks names.

mod document;
mod explain;
mod index;
mod name;
mod problem;
mod setting;
pub mod template;
mod tree;
mod unit;

pub use document::{Document, read_text};
pub use index::files_by_name;
pub use name::{host_problem, label_problem, name_problem, quoted};
pub use problem::{Problem, Problems, nearest, one_of};
pub use setting::{Kind, Setting};
pub use unit::{accept_units, bytes};
