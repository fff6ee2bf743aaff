//! `weir class`: the classes of a running server, changed while requests go on.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Subcommand;
use serde_json::json;
use weir_blockserver::{ClassSpec, Control, Error, State, state_path, states};

use crate::exit::{self, bad_input};
use crate::output::{self, Output};
use crate::serve::classify;
use crate::state::StateArgs;

/// Show and change the classes and the scheduler of a running block server; no request is lost.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

/// Which server.
#[derive(clap::Args)]
pub struct Which {
    /// Name of the server; not needed where the state folder has one only.
    #[arg(long, value_name = "NAME")]
    pub server: Option<String>,
    #[command(flatten)]
    pub state: StateArgs,
}

#[derive(Subcommand)]
enum Action {
    /// Print the classes as JSON.
    List {
        #[command(flatten)]
        which: Which,
    },
    /// Add a class, or change the one of that name.
    Set {
        /// The class as JSON or YAML: `{name: video, weight: 3, range_mib: [0, 512]}`.
        class: String,
        #[command(flatten)]
        which: Which,
    },
    /// Remove a class; its queued requests move to the default class.
    Remove {
        /// Its name.
        name: String,
        #[command(flatten)]
        which: Which,
    },
    /// Replace the scheduler.
    Policy {
        /// Name and settings, as in "sfq depth=4".
        policy: String,
        #[command(flatten)]
        which: Which,
    },
}

pub fn run(args: Args, output: Output) -> anyhow::Result<ExitCode> {
    exit::quiet_on_closed_pipe();
    match args.action {
        Action::List { which } => {
            output::document(&which.connect()?.classes().map_err(refused)?)?;
        }
        Action::Set { class, which } => {
            let document =
                weir_specs::Document::from_text(Path::new("the class"), &class).map_err(bad_input)?;
            let class: ClassSpec = document.parse_all().map_err(bad_input)?;
            let mut control = which.connect()?;
            control.set_class(class).map_err(refused)?;
            show(&mut control, output)?;
        }
        Action::Remove { name, which } => {
            let mut control = which.connect()?;
            control.remove_class(&name).map_err(refused)?;
            show(&mut control, output)?;
        }
        Action::Policy { policy, which } => {
            let mut control = which.connect()?;
            control.set_policy(&policy).map_err(refused)?;
            show(&mut control, output)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints scheduler and classes after a change, for programs only.
fn show(control: &mut Control, output: Output) -> anyhow::Result<()> {
    if output.is_json() {
        let policy = control.live().map_err(refused)?.policy;
        output::document(&json!({"policy": policy, "classes": control.classes().map_err(refused)?}))?;
    }
    Ok(())
}

impl Which {
    /// Connects to the server.
    ///
    /// # Errors
    /// There is none, or it is not clear which.
    pub fn connect(&self) -> anyhow::Result<Control> {
        let file = match &self.server {
            Some(name) => state_path(self.state.folder(), name),
            None => match states(self.state.folder()).map_err(classify)?.as_slice() {
                [file] => file.clone(),
                [] => {
                    let folder = self.state.folder().display();
                    return Err(bad_input(format!("{folder} has no state file of a server; give --state")));
                }
                several => {
                    let name = |file: &PathBuf| Some(file.file_stem()?.to_string_lossy().into_owned());
                    let names: Vec<String> = several.iter().filter_map(name).collect();
                    return Err(bad_input(format!(
                        "there are several servers; give --server {}",
                        names.join("|")
                    )));
                }
            },
        };
        let state = State::load(&file).map_err(bad_input)?;
        Control::connect(&state).with_context(|| format!("the server of {} does not answer", file.display()))
    }
}

/// A refusal by the server is bad input: nothing has changed.
pub fn refused(error: Error) -> anyhow::Error {
    match error {
        Error::Refused(_) => bad_input(error),
        other => other.into(),
    }
}
