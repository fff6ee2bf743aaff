//! Files of a run: their placement, their extents on the device, free space, and work on many of them.

pub(crate) mod extents;
pub(crate) mod free_space;
pub(crate) mod parallel;
pub(crate) mod placement;
pub(crate) mod walk;
