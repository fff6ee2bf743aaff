//! Course of a run on this host: prepare, measure, check, record, undo.

pub(crate) mod barrier;
pub(crate) mod carry_out;
pub(crate) mod finish;
pub(crate) mod folder;
pub(crate) mod gather;
pub(crate) mod load;
pub(crate) mod measure;
pub(crate) mod outcome;
pub(crate) mod prepare;
pub(crate) mod series;
pub(crate) mod sweep;
pub(crate) mod tables;
pub(crate) mod undo;
pub(crate) mod usage;
