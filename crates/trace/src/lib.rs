//! Recorded traces: reading and writing trace formats, one file per format.
//!
//! [`open`] opens a trace of any format of [`FORMATS`], compressed or not, and yields [`TraceRequest`]s one by one
//! in bounded memory. Damaged records are errors with their place, or are skipped and counted.

mod binary;
pub mod blktrace;
pub mod catalog;
mod error;
pub mod filter;
mod formats;
pub mod frame_sizes;
mod input;
pub mod packed;
mod reader;
mod request;
pub mod stat;
mod table;
mod text;
mod units;
pub mod write;

pub use error::{Bad, Error, Place};
pub use formats::{FORMATS, Format, Open, Options, csv, frames, open, open_input};
pub use input::{HEAD_BYTES, Input};
pub use reader::{Reader, Skipping};
pub use request::{Devices, TraceOp, TraceRequest};
pub use table::Table;
pub use units::{Keys, Span, Unit};
