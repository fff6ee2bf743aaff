//! Control groups of a run: limits of memory and reads, groups of classes, and the kernel's I/O cost model.

pub(crate) mod class_groups;
pub(crate) mod cost_model;
mod cost_probe;
pub(crate) mod limits;
