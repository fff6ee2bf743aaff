//! `weir device`: identity of a disk, and whether a study may use it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;
use serde_json::{Value, json};
use weir_host::device::{Claim, Identity, contents, find_user};

use crate::exit::bad_input;
use crate::output::{self, Output};

/// Identify disks and check whether a study may use them.
///
/// Changes nothing on disks. `show` prints what identifies each disk (serial number, WWN, links), what uses it, and
/// whether it is blank. `check` makes the checks of a run, and ends with exit code 2 if a run would refuse the disk.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Print identity, users and contents of disks
    Show {
        /// Links below /dev/disk, or nodes
        #[arg(required = true)]
        paths: Vec<PathBuf>,
    },
    /// Check whether a run would accept a disk
    Check {
        /// A link below /dev/disk, or a node
        path: PathBuf,
        /// The disk whose data may be lost: its serial number, its WWN or the name of its link
        #[arg(long, value_name = "NAME")]
        overwrite: Option<String>,
    },
}

pub fn run(args: Args, output: Output) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::Show { paths } => show(&paths, output),
        Command::Check { path, overwrite } => check(&path, overwrite.as_deref(), output),
    }
}

/// Facts of a disk.
struct Looked {
    path: PathBuf,
    identity: Identity,
    links: Vec<PathBuf>,
    user: Option<String>,
    /// Content found on it; `None` if it is blank.
    found: Option<String>,
}

fn look(path: &Path) -> anyhow::Result<Looked> {
    let identity = Identity::at(path).map_err(bad_input)?;
    let user = find_user(&identity.kernel_name);
    // Without an exclusive claim: a mounted disk is looked at as well.
    let found =
        Claim::pin(path).and_then(|claim| contents::check_blank(&claim)).err().map(|error| error.to_string());
    let links = links(&identity.kernel_name);
    Ok(Looked { path: path.to_owned(), identity, links, user, found })
}

/// Links below `/dev/disk/by-id` that lead to a disk.
fn links(kernel_name: &str) -> Vec<PathBuf> {
    let entries =
        std::fs::read_dir("/dev/disk/by-id").into_iter().flatten().flatten().map(|entry| entry.path());
    let node = Path::new("/dev").join(kernel_name);
    let mut links: Vec<PathBuf> =
        entries.filter(|path| path.canonicalize().is_ok_and(|found| found == node)).collect();
    links.sort();
    links
}

fn show(paths: &[PathBuf], output: Output) -> anyhow::Result<ExitCode> {
    let all = paths.iter().map(|path| look(path)).collect::<anyhow::Result<Vec<_>>>()?;
    let mut same = Vec::new();
    for (at, one) in all.iter().enumerate() {
        let others = all[at + 1..].iter();
        same.extend(others.filter_map(|other| Some((one, other, one.identity.same_disk(&other.identity)?))));
    }
    if output.is_json() {
        let devices: Vec<Value> = all.iter().map(document).collect();
        let same: Vec<Value> = same.iter().map(|(one, other, _)| json!([one.path, other.path])).collect();
        output::line(&json!({"devices": devices, "same_disk": same}))?;
        return Ok(ExitCode::SUCCESS);
    }
    for looked in &all {
        let Looked { path, identity, links, user, found } = looked;
        let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "none".to_owned());
        println!("{}", path.display());
        println!("  kernel name    {}", identity.kernel_name);
        println!("  size           {} MiB", identity.size_bytes >> 20);
        println!("  serial number  {}", or_none(&identity.serial));
        println!("  WWN            {}", or_none(&identity.wwn));
        links.iter().for_each(|link| println!("  link           {}", link.display()));
        if let Some(backing) = &identity.backing {
            println!("  backing file   {}, inode {}", backing.path.display(), backing.inode);
        }
        println!("  in use         {}", user.as_deref().unwrap_or("no"));
        println!(
            "  blank          {}",
            found.as_ref().map_or("yes".to_owned(), |found| format!("no: {found}"))
        );
    }
    for (one, other, why) in same {
        println!("{} and {} are one disk: {why}", one.path.display(), other.path.display());
    }
    Ok(ExitCode::SUCCESS)
}

fn document(looked: &Looked) -> Value {
    let Looked { path, identity, links, user, found } = looked;
    json!({
        "path": path,
        "node": Path::new("/dev").join(&identity.kernel_name),
        "kernel_name": identity.kernel_name,
        "size_bytes": identity.size_bytes,
        "serial": identity.serial,
        "wwn": identity.wwn,
        "by_id": links,
        "backing_file": identity.backing.as_ref().map(|backing| &backing.path),
        "in_use": user.as_deref().unwrap_or_default(),
        "blank": found.is_none(),
        "found": found.as_deref().unwrap_or_default(),
    })
}

fn check(path: &Path, overwrite: Option<&str>, output: Output) -> anyhow::Result<ExitCode> {
    let claim = Claim::take(path).map_err(bad_input)?;
    match overwrite {
        Some(name) if claim.identity().is_named_by(name) => {}
        Some(name) => {
            let found = claim.identity().describe();
            return Err(bad_input(format!(
                "--overwrite {name}: does not name {found}. Give its serial number, its WWN or the name of its link"
            )));
        }
        None => contents::check_blank(&claim).map_err(bad_input)?,
    }
    let text = format!("{}: may be used", claim.identity().describe());
    output.result(&json!({"usable": true, "device": document(&look(path)?)}), text)?;
    Ok(ExitCode::SUCCESS)
}
