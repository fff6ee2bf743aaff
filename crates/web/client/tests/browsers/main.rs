//! The browsers against servers that answer as they are told, and against a real one. One program: building several costs
//! more than running them.

mod answers;
mod clients;
mod common;
mod open_loop;
mod parser;
mod trees;
mod with_nginx;
