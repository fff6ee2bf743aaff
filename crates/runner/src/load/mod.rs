//! Load of a run: files of its classes, and engines that send their requests.

pub(crate) mod access;
pub(crate) mod browsers;
pub(crate) mod class_process;
pub(crate) mod fill;
pub(crate) mod fio;
pub(crate) mod fio_log;
pub(crate) mod gate;
pub(crate) mod kept_files;
pub(crate) mod open_loop;
pub(crate) mod replay_process;
pub(crate) mod warm_start;
