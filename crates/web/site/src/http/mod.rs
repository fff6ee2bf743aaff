//! What of HTTP an application server needs.

pub mod form;
pub mod request;
pub mod server;

pub use request::{Form, Request};
pub use server::{Application, Context, Site};
