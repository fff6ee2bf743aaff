//! Disks and arrays as a user of the crate has them.

mod atlas;
#[path = "../examples/validate_drives/demerit.rs"]
mod demerit;
mod disk_schedule;
mod every_profile;
mod flash;
mod profiles;
mod properties;
mod queues;
mod service_model;
mod theory;
#[path = "../examples/validate_drives/trace.rs"]
mod trace;
mod validation;
