//! What of HTTP an application server needs.

pub mod form;
