//! Trace formats: one file each, one line in `registry.rs`.

mod alibaba;
mod auspex;
mod biosnoop;
mod blkparse;
mod blktrace;
mod cache2k;
pub mod csv;
mod csv_options;
mod disksim;
mod disksim_validate;
mod fio_log;
mod format;
mod frame_options;
pub mod frames;
mod iolog;
mod libcachesim_csv;
mod lirs;
mod mqsim;
mod msr;
mod nfsdump;
mod options;
mod oracle_general;
mod registry;
mod scsi;
mod spc;
mod srt;
mod systor;
mod tencent;
mod under_way;
mod vscsi;
mod weir;
mod worldcup;

pub use format::{Format, Open};
pub use options::Options;
pub use registry::{FORMATS, open, open_input};
