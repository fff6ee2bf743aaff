//! From a study's file to its plan. One program for all: each would be linked by itself otherwise.

mod accesses;
mod admission;
mod clockwise;
mod control_groups;
mod device_scheduler;
mod hds;
mod joint;
mod limits;
mod one_load;
mod services;
mod support;
mod trials;
