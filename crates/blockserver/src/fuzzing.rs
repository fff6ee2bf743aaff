//! Entry points of fuzz targets: parsers of bytes from outside. Not part of the interface.

use std::path::Path;

use crate::control::{Answer, Command};
use crate::engine::scheduled::{ClassesFile, PolicyText, classes};
use crate::{ServeSpec, State};

/// A line of the control socket, from a client or from the server.
pub fn control_line(line: &[u8]) {
    let command = serde_json::from_slice::<Command>(line);
    let _ = serde_json::from_slice::<Answer>(line);
    if let Ok(Command::Arrange { arrangement }) = command {
        let _ = arrangement.completed();
    }
}

/// Data from an NBD client.
pub fn nbd(data: &[u8]) {
    crate::exports::nbd::fuzzing(data);
}

/// The specification of a server; no device is made.
pub fn spec(text: &str) {
    let Ok(document) = weir_specs::Document::from_text(Path::new("fuzzed.yml"), text) else { return };
    let _ = document.parse::<ServeSpec>();
    if let Ok(file) = document.parse::<ClassesFile>() {
        let _ = classes::check(&file.classes, Some(1024));
    }
}

/// A policy with its settings.
pub fn policy(text: &str) {
    let _ = PolicyText::parse(text);
}

/// A server's state file.
pub fn state(data: &[u8]) {
    let _ = serde_json::from_slice::<State>(data);
}
