//! HTTP/1.1 for the application server.

pub mod form;
pub mod request;
pub mod server;

pub use request::{Form, Request};
pub(crate) use server::Answers;
pub use server::{Application, Context, Site};
