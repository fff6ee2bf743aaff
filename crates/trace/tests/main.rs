//! Formats, statistics and filters as a user of the crate has them.

#[allow(dead_code, reason = "the bench uses the rest")]
mod common;
mod contributing;
mod filter;
mod formats;
mod huge_requests;
mod made;
mod packed;
mod samples;
mod statistics;
mod write;
