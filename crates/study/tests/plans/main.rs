//! Tests from a study file to its plan, in one program to link only once.

mod accesses;
mod admission;
mod alike;
mod clockwise;
mod control_groups;
mod device_scheduler;
mod hds;
mod joint;
mod kernels;
mod labels;
mod limits;
mod one_load;
mod services;
mod support;
mod trials;
mod units;
