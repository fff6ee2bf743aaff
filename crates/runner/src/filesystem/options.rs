//! Options of a file system, set by a run and read back.

use std::collections::BTreeMap;
use std::process::Command;

use weir_specs::template::{Filled, Value, Values, fill};
use weir_study::FsOption;

use crate::Error;
use crate::context::run_context::RunContext;
use crate::filesystem::mount_point::MountPoint;

/// Options that a run sets, with their values.
fn wanted<'a>(context: &RunContext<'a>) -> Result<Vec<(&'a String, &'a FsOption, String)>, Error> {
    let RunContext { run, filesystem, .. } = *context;
    let found = |(name, value): (String, String)| {
        let (name, option) = filesystem.options.get_key_value(&name).ok_or_else(|| {
            Error::Refused(format!("filesystem_options.{name}: file system {} has no option of this name. See weir list filesystems", filesystem.name))
        })?;
        if let Some(problem) = option.kind.problem(&value) {
            return Err(Error::Refused(format!("filesystem_options.{name}: {problem}")));
        }
        Ok((name, option, value))
    };
    run.settings.options().into_iter().map(found).collect()
}

/// Value that a role of the playbook reported.
fn told<'a>(context: &RunContext<'a>, name: &str) -> Option<&'a str> {
    context.testbed.options.get(&context.filesystem.name)?.get(name).map(String::as_str)
}

/// Refuses a run if a role of the playbook has not set its options.
///
/// # Errors
/// [`Error::Refused`] with the option and the role.
pub(crate) fn check(context: &RunContext<'_>) -> Result<(), Error> {
    let filesystem = context.filesystem;
    for (name, option, value) in wanted(context)? {
        if option.default.is_some() && filesystem.network.is_none() {
            return Err(Error::Refused(format!(
                "filesystem_options.{name}: the run cannot set mount options, since {} was mounted before. Leave the file system out of weir_mounts, or leave the option out",
                filesystem.name
            )));
        }
        let Some(by) = &option.by else { continue };
        let told = told(context, name);
        if told != Some(value.as_str()) {
            return Err(Error::Refused(format!(
                "filesystem_options.{name}: wrong value (found {}, expected {value}). Use the playbook: its role {} sets the option between runs",
                told.unwrap_or("none"),
                by.role
            )));
        }
    }
    Ok(())
}

/// Runs the commands that set options, on the empty folder of the run.
///
/// # Errors
/// A command is not installed or fails; the error has the command's output.
pub(crate) fn set(context: &RunContext<'_>, points: &[MountPoint]) -> Result<(), Error> {
    for (name, option, value) in wanted(context)? {
        for point in points.iter().filter(|_| !option.set.is_empty()) {
            said(name, &filled(&option.set, point, Some((option, &value)))?)?;
        }
    }
    Ok(())
}

/// Values of options as read back, or as the playbook's role reported them if this host cannot read them.
///
/// # Errors
/// An option differs from what was set, or cannot be read.
pub(crate) fn read(
    context: &RunContext<'_>,
    points: &[MountPoint],
) -> Result<BTreeMap<String, String>, Error> {
    let mut all = BTreeMap::new();
    for (name, option, value) in wanted(context)? {
        let mut found = told(context, name).unwrap_or(&value).to_owned();
        for point in points.iter().filter(|_| !option.read.is_empty()) {
            found = said(name, &filled(&option.read, point, None)?)?;
            if !is(option, &found, &value) {
                return Err(Error::Failed(format!(
                    "filesystem_options.{name}: wrong value after setting (found `{found}`, expected {value})"
                )));
            }
        }
        all.insert(name.clone(), found);
    }
    Ok(all)
}

/// Text for an option that differs from its value.
pub(crate) fn problem(context: &RunContext<'_>, points: &[MountPoint]) -> Option<String> {
    read(context, points).err().map(|error| error.to_string())
}

/// Whether the value read is the wanted one.
fn is(option: &FsOption, found: &str, wanted: &str) -> bool {
    let parts = |text: &'static [char], all: &str| -> Vec<String> {
        all.split(text).filter(|part| !part.is_empty()).map(str::to_owned).collect()
    };
    if option.among {
        let there = parts(&[',', ' ', '\n'], found);
        return parts(&[',', ' '], wanted).iter().all(|part| there.contains(part));
    }
    found == wanted
}

/// A command with its placeholders filled in, such as `{value}`.
fn filled(
    words: &[String],
    point: &MountPoint,
    set: Option<(&FsOption, &str)>,
) -> Result<Vec<String>, Error> {
    let mut values = Values::new();
    for (name, path) in [("point", &point.path), ("files", &point.files)] {
        values.insert(name.to_owned(), Value::path(path).map_err(Error::Refused)?);
    }
    if let Some((option, value)) = set {
        values.insert("value".to_owned(), option.kind.value(value).map_err(Error::Refused)?);
    }
    let fill = |word: &String| fill(word, &values).map(Filled::into_string).map_err(Error::Refused);
    words.iter().map(fill).collect()
}

/// Output of a command, trimmed.
fn said(name: &str, words: &[String]) -> Result<String, Error> {
    let told = |what: &str| Error::Failed(format!("filesystem_options.{name}: {}: {what}", words.join(" ")));
    let (program, arguments) = words.split_first().ok_or_else(|| told("the command is empty"))?;
    let done = Command::new(program).args(arguments).output().map_err(|error| told(&error.to_string()))?;
    if !done.status.success() {
        return Err(told(String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).trim()));
    }
    Ok(String::from_utf8_lossy(&done.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn option(text: &str) -> FsOption {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn words_are_filled_and_output_is_compared() {
        let point = MountPoint {
            device: "shared".to_owned(),
            source: "x".into(),
            path: "/mnt/x".into(),
            files: "/mnt/x/weir-1".into(),
            owner: None,
        };
        let words = ["lfs", "setstripe", "-c", "{value}", "{files}", "{point}"].map(str::to_owned);
        let plain = option(r#"{"type": {"integer": {"from": 1, "to": 4}}, "set": ["a"], "read": ["b"]}"#);
        let told = filled(&words, &point, Some((&plain, "2"))).unwrap();
        assert_eq!(told.join(" "), "lfs setstripe -c 2 /mnt/x/weir-1 /mnt/x");
        assert!(
            filled(&words, &point, Some((&plain, "2; id"))).unwrap_err().to_string().contains("from 1 to 4")
        );
        let odd = MountPoint { path: "/mnt/$(id)".into(), ..point };
        assert!(filled(&words, &odd, Some((&plain, "2"))).unwrap_err().to_string().contains("/mnt/$(id)"));
        assert!(is(&plain, "4", "4") && !is(&plain, "44", "4"));
        let among = option(r#"{"type": "name", "set": ["a"], "read": ["b"], "among": true}"#);
        assert!(is(&among, "rw,noatime,rsize=65536", "rsize=65536,noatime"));
        assert!(!is(&among, "rw,rsize=655360", "rsize=65536"));
    }

    #[test]
    fn a_command_that_fails_is_named_with_what_it_said() {
        let error = said("x", &["ls".to_owned(), "/nonexistent".to_owned()]).unwrap_err().to_string();
        assert!(
            error.starts_with("filesystem_options.x: ls /nonexistent: ") && error.contains("No such file")
        );
        assert!(said("x", &["nonesuch".to_owned()]).unwrap_err().to_string().contains("No such file"));
        assert_eq!(said("x", &["printf".to_owned(), " 7\\n".to_owned()]).unwrap(), "7");
    }
}
