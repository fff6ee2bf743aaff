//! Starting, finding and stopping servers, and removing their devices.

pub(crate) mod background;
pub(crate) mod down;
mod ownership;
pub(crate) mod serve;
pub(crate) mod status;
