//! One run of a study on this host.
//!
//! [`carry_out`] puts the devices in the state that the run asks for, writes its files, sends its requests,
//! captures what the block layer did, judges whether the data may be believed, and leaves a folder that is
//! whole or not there. Whatever it changes on the host it writes down first, so that a run that is killed can
//! be undone by the next ([`recover`]).

mod access;
mod apart;
mod array;
mod block_device;
mod capture;
mod carry_out;
mod children;
mod control;
mod cost;
mod cost_probe;
mod error;
mod extents;
mod fill;
mod fio;
mod fio_log;
mod fs_options;
#[doc(hidden)]
pub mod fuzzing;
mod given;
mod helper;
mod hot;
mod joint;
mod journal;
mod kept_files;
mod limits;
mod live;
mod measure;
mod medium;
mod mount;
mod networked;
mod open_loop;
mod place;
mod prepare;
mod queue;
mod queue_record;
mod room;
mod run_folder;
mod service;
mod several;
mod simulate;
mod site;
mod stage;
mod testbed;
mod tree;
mod usage;
mod verdict;
mod warm;
mod web;

pub use carry_out::{Options, Outcome, Timing, carry_out};
pub use children::wait_for_children;
pub use error::Error;
pub use joint::{Joined, Meet, join, observe};
pub use journal::{Recovered, recover};
pub use medium::{Medium, of_classes, of_devices};
pub use queue_record::{PutBack, put_back as put_queues_back};
pub use run_folder::{sweep, sweep_parts};
pub use simulate::simulate;
pub use site::remove_kept;
pub use testbed::{Device, Disk, Testbed};
pub use verdict::{Ruling, Status, Verdict, is_invalid, is_skipped};
