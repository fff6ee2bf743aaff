//! Life cycle of servers: start, status, stop, and removal of devices.

pub(crate) mod background;
pub(crate) mod down;
mod ownership;
pub(crate) mod serve;
pub(crate) mod status;
