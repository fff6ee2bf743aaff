//! YAML specifications with errors that name file, line, field and remedy.
//!
//! A [`Document`] is a YAML file whose every node remembers its line. It turns into a typed value with
//! [`Document::parse`], or [`Document::parse_all`], which finds every problem at once; whatever is wrong with it, in shape or in meaning, becomes a [`Problem`] that names
//! the file, the line, the field, what was found, what is allowed and, where a name was mistyped, the
//! nearest one.
//!
//! What a specification lets a user set has a [`Setting`] with a [`Kind`]; what is set gets into configurations and commands as
//! a [`template::Value`] alone. [`name_problem`] says what a name is.

mod document;
mod explain;
mod index;
mod name;
mod problem;
mod setting;
pub mod template;
mod tree;

pub use document::{Document, read_text};
pub use index::files_by_name;
pub use name::{host_problem, name_problem, quoted};
pub use problem::{Problem, Problems, nearest, one_of};
pub use setting::{Kind, Setting};
