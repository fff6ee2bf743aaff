//! Errors of a replay: targets, streams and the ring.

use std::io;
use std::path::PathBuf;

/// Error of a replay.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A target cannot be opened, or its properties cannot be read.
    #[error("target {path}: {doing}: {source}")]
    Target {
        /// The target as it was named.
        path: PathBuf,
        /// What was attempted.
        doing: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// A target is neither a block device, a regular file nor a directory.
    #[error(
        "target {path}: wrong type (found {found}, expected a block device, a regular file or a directory of files)"
    )]
    Kind {
        /// The target as it was named.
        path: PathBuf,
        /// What it is.
        found: &'static str,
    },
    /// A device that would be written is mounted or in use.
    #[error(
        "target {path} is in use (mounted, or held by another device) and the stream may write to it; \
         unmount it, or name a device that is free"
    )]
    InUse {
        /// The target as it was named.
        path: PathBuf,
    },
    /// A directory holds no file of a file set.
    #[error(
        "target directory {path} has no file of a file set (expected names such as {example}). Prepare the file set first"
    )]
    EmptyDirectory {
        /// The directory.
        path: PathBuf,
        /// Example of a file name.
        example: String,
    },
    /// More files than the process may hold open.
    #[error(
        "target directory {path} holds {files} files but this process may open only {limit}; \
         raise the limit (ulimit -n) or use fewer files"
    )]
    TooManyFiles {
        /// The directory.
        path: PathBuf,
        /// Files found.
        files: usize,
        /// The hard limit on open files.
        limit: u64,
    },
    /// A request that cannot be sent.
    #[error("request {request} (class {class}): {reason}")]
    Request {
        /// Number of the request in its stream.
        request: u64,
        /// Its class.
        class: String,
        /// The problem and its remedy.
        reason: String,
    },
    /// An option outside its range.
    #[error("{option}: wrong value (found {found}, expected {allowed})")]
    Option {
        /// The option.
        option: &'static str,
        /// Its value.
        found: String,
        /// What it may be.
        allowed: &'static str,
    },
    /// Completions of a target cannot be polled for.
    #[error(
        "target {path}: its completions cannot be polled for: {reason}. Leave --poll-completions out, or give the driver polling \
         queues (such as nvme.poll_queues=2 on the kernel's command line)"
    )]
    NoPolling {
        /// The target.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The ring could not be made or used.
    #[error("io_uring: {doing}: {source}{hint}")]
    Ring {
        /// What was attempted.
        doing: &'static str,
        /// The system's reason.
        source: io::Error,
        /// What to do, where it is known.
        hint: &'static str,
    },
    /// The record of lateness could not be made.
    #[error("cannot make the histogram of lateness: {0}")]
    Histogram(#[from] hdrhistogram::CreationError),
    /// A thread of the replay panicked.
    #[error("the {thread} thread of the replay panicked")]
    Thread {
        /// Which one.
        thread: &'static str,
    },
}
