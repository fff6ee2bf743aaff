//! Streams of requests and of sessions as a user of the crate has them.

mod calibration;
mod recorded;
mod session_tables;
mod sessions;
mod streams;
