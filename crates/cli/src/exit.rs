//! How a command ends: the exit codes that scripts may rely on.

use std::any::Any;
use std::fmt;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
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

/// Exit code of a command whose output pipe was closed: the code that a shell reports for SIGPIPE.
const CLOSED_PIPE: u8 = 128 + libc::SIGPIPE as u8;

/// Error text of a panic of `println!`; `None` for other panics.
fn print_failure(panic: &(dyn Any + Send)) -> Option<&str> {
    let text = panic.downcast_ref::<String>()?;
    text.starts_with("failed printing to std").then_some(text)
}

/// Runs a command. A command that holds devices or servers must not abort because its output cannot be written: it undoes its
/// changes, and ends quietly if the pipe was closed, otherwise with an error.
pub fn undone_on_closed_pipe(command: impl FnOnce() -> anyhow::Result<ExitCode>) -> ExitCode {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if print_failure(panic.payload()).is_none() {
            hook(panic);
        }
    }));
    match catch_unwind(AssertUnwindSafe(command)) {
        Ok(done) => code(done),
        Err(panic) => match print_failure(&*panic) {
            Some(failure) if failure.contains("Broken pipe") => ExitCode::from(CLOSED_PIPE),
            Some(failure) => code(Err(anyhow::anyhow!("{failure}: free space where the output goes"))),
            None => resume_unwind(panic),
        },
    }
}

/// Prints an error, if there is one, and chooses the exit code.
fn code(done: anyhow::Result<ExitCode>) -> ExitCode {
    match done {
        Ok(code) => code,
        Err(error) => {
            // Nobody may be left to read it.
            let _ = writeln!(std::io::stderr(), "error: {error:#}");
            ExitCode::from(if error.downcast_ref::<BadInput>().is_some() { 2 } else { 1 })
        }
    }
}
