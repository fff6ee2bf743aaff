//! HTTP/1.1 for the application server.

mod answers;
pub mod form;
pub mod request;
pub mod server;

pub(crate) use answers::Answers;
pub use answers::Context;
pub use request::{Form, Request};
pub use server::{Application, Site};
