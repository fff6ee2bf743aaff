//! The server's side of the control socket.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::thread;

use crate::control::{Answer, Command};
use crate::engine::Engine;

/// No command is longer.
const MAX_LINE_BYTES: u64 = 4096;

/// Listens on `path`, for the user of this process alone, until the process ends.
pub(crate) fn listen(path: &Path, engine: Arc<Engine>) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    thread::Builder::new().name("control".to_owned()).spawn(move || {
        for stream in listener.incoming().flatten() {
            let engine = Arc::clone(&engine);
            // A client that goes away in the middle of a line concerns nobody else.
            let _ = thread::Builder::new()
                .name("control-client".to_owned())
                .spawn(move || answer_all(&stream, &engine));
        }
    })?;
    Ok(())
}

fn answer_all(stream: &UnixStream, engine: &Engine) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = String::new();
        if reader.by_ref().take(MAX_LINE_BYTES).read_line(&mut line)? == 0 {
            return Ok(());
        }
        let answer = match serde_json::from_str(&line) {
            Ok(command) => execute(&command, engine),
            Err(error) => Answer::Error(format!(
                "{error}; the commands are {{\"cmd\":\"timing\",\"on\":false}}, {{\"cmd\":\"stats\",\"reset\":true}} \
                 and {{\"cmd\":\"discard\"}}"
            )),
        };
        let mut text = serde_json::to_string(&answer)?;
        text.push('\n');
        (&*stream).write_all(text.as_bytes())?;
    }
}

fn execute(command: &Command, engine: &Engine) -> Answer {
    match command {
        Command::Timing { on } => {
            engine.set_timing(*on);
            Answer::Done
        }
        Command::Stats { reset } => Answer::Stats(Box::new(engine.stats(*reset))),
        Command::Discard => match engine.discard(0, engine.size_bytes()) {
            Ok(()) => Answer::Done,
            Err(error) => Answer::Error(format!("cannot discard: {error}")),
        },
    }
}
