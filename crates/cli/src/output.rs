//! `--json`: the option that every command has, and how results are printed.

use std::fmt::Display;
use std::path::Path;

use anyhow::Context as _;
use clap::{Arg, ArgAction, ArgMatches, Command};
use serde::Serialize;

/// Name of the option, and its id for `requires` and `conflicts_with` of other options.
const JSON: &str = "json";

/// The form of a command's result on standard output.
#[derive(Clone, Copy)]
pub struct Output {
    json: bool,
}

/// Gives each command the option, also between a command and its subcommand. Commands of the Python package have their
/// own (`analysis/weir/arguments.py`).
pub fn with_json(command: Command) -> Command {
    let option = Arg::new(JSON)
        .long(JSON)
        .global(true)
        .action(ArgAction::SetTrue)
        .help("Print the result as JSON; messages go to standard error");
    command.mut_subcommands(|one| {
        let is_of_package = one.is_disable_help_flag_set();
        if is_of_package || one.is_hide_set() { one } else { one.arg(option.clone()) }
    })
}

impl Output {
    /// The form that the arguments of a command ask for.
    pub fn of(matches: &ArgMatches) -> Self {
        let of_command = matches.subcommand().map(|(_, of_command)| of_command);
        let json = of_command.and_then(|one| one.try_get_one::<bool>(JSON).ok()).flatten();
        Self { json: json.copied().unwrap_or(false) }
    }

    /// Whether standard output gets JSON only.
    pub fn is_json(self) -> bool {
        self.json
    }

    /// Prints a result as a JSON document, or as text.
    pub fn result(self, document: &impl Serialize, text: impl Display) -> anyhow::Result<()> {
        if self.json {
            return self::document(document);
        }
        println!("{text}");
        Ok(())
    }

    /// Prints what a command has removed or stopped.
    pub fn removed(self, removed: &[String]) -> anyhow::Result<()> {
        if self.json {
            return line(&serde_json::json!({"removed": removed}));
        }
        removed.iter().for_each(|one| println!("taken down: {one}"));
        Ok(())
    }

    /// Prints a message that is no result: with `--json` on standard error.
    pub fn say(self, message: impl Display) {
        if self.json { eprintln!("{message}") } else { println!("{message}") }
    }
}

/// Prints a JSON document on lines of its own. Numbers that are not finite are null.
pub fn document(value: &impl Serialize) -> anyhow::Result<()> {
    println!("{}", serde_json::to_string_pretty(value)?);
    Ok(())
}

/// Prints a JSON document as one line: one of several, or one that a program waits for.
pub fn line(value: &impl Serialize) -> anyhow::Result<()> {
    println!("{}", serde_json::to_string(value)?);
    Ok(())
}

/// A path in a result. A name that is not UTF-8 is no error, as it is none in text.
pub fn text(path: &Path) -> String {
    path.display().to_string()
}

/// A written file in a result.
#[derive(Serialize)]
pub struct WrittenFile {
    path: String,
    size_bytes: u64,
}

impl WrittenFile {
    /// The file at this path.
    ///
    /// # Errors
    /// It cannot be looked at.
    pub fn at(path: &Path) -> anyhow::Result<Self> {
        let facts = std::fs::metadata(path).with_context(|| path.display().to_string())?;
        Ok(Self { path: text(path), size_bytes: facts.len() })
    }
}
