//! What was recorded elsewhere: reading and writing trace formats, one file per format.

pub mod blktrace;
pub mod frame_sizes;
