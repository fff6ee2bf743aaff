//! How a command ends: the exit codes that scripts may rely on.

use std::fmt;
use std::process::ExitCode;

/// The input is wrong and nothing was touched: exit code 2.
#[derive(Debug)]
pub struct BadInput(pub String);

impl fmt::Display for BadInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadInput {}

/// Wraps any displayable error as [`BadInput`].
pub fn bad_input(error: impl fmt::Display) -> anyhow::Error {
    anyhow::Error::new(BadInput(error.to_string()))
}

/// Lets a command that only prints be ended quietly by the reader of a pipe, as `head` does.
pub fn quiet_on_closed_pipe() {
    // SAFETY: SIG_DFL for SIGPIPE is always valid; no other thread exists yet.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

/// Prints an error, if there is one, and chooses the exit code.
pub fn code(done: anyhow::Result<ExitCode>) -> ExitCode {
    match done {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(if error.downcast_ref::<BadInput>().is_some() { 2 } else { 1 })
        }
    }
}
