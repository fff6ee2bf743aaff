//! Values of a daemon's placeholders. Settings are checked here once more before they reach a configuration file.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use weir_specs::template::{Filled, Value, Values, fill};
use weir_specs::{Setting, one_of};

use crate::Error;
use crate::description::Daemon;
use crate::start::Start;
use crate::user::User;

/// Problem of a setting of a daemon; `None` if the daemon has the setting and the value is valid.
fn setting_problem(daemon: &Daemon, name: &str, value: &str) -> Option<String> {
    match daemon.settings.get(name) {
        None => Some(one_of("setting", name, daemon.settings.keys().map(String::as_str))),
        Some(setting) => setting.kind.problem(value).map(|problem| format!("setting `{name}`: {problem}")),
    }
}

/// Settings of a daemon by name: given values, else defaults.
fn settings(daemon: &Daemon, set: &BTreeMap<String, String>) -> Result<Values, Error> {
    let refused = |problem| Error::Refused(format!("daemon {}: {problem}", daemon.name));
    if let Some(problem) = set.iter().find_map(|(name, value)| setting_problem(daemon, name, value)) {
        return Err(refused(problem));
    }
    let value = |(name, setting): (&String, &Setting)| {
        let given = set.get(name).or(setting.default.as_ref());
        let given = given.ok_or_else(|| {
            refused(format!(
                "setting `{name}` ({}) has no default. Set it to {}",
                setting.about,
                setting.kind.describe()
            ))
        })?;
        let value = setting.kind.value(given);
        value
            .map(|value| (name.clone(), value))
            .map_err(|problem| refused(format!("setting `{name}`: {problem}")))
    };
    daemon.settings.iter().map(value).collect()
}

/// Checks that a daemon has these settings and that the values are valid.
///
/// # Errors
/// [`Error::Refused`] with daemon, setting, found and expected value.
pub fn check_settings(daemon: &Daemon, set: &BTreeMap<String, String>) -> Result<(), Error> {
    settings(daemon, set).map(drop)
}

/// Values of all placeholders of a daemon.
///
/// # Errors
/// It has no such setting, one does not accept its value, or a path is not allowed in a configuration.
pub(crate) fn values(
    daemon: &Daemon,
    wanted: &Start,
    program: &Path,
    user: Option<&User>,
) -> Result<Values, Error> {
    let refused = |problem: String| Error::Refused(format!("daemon {}: {problem}", daemon.name));
    let mut values = settings(daemon, &wanted.set)?;
    for (name, text) in &daemon.defaults {
        let value = match wanted.own.get(name) {
            Some(value) => value.clone(),
            None => Value::constant(text).map_err(refused)?,
        };
        values.insert(name.clone(), value);
    }
    let paths = [
        ("run", Some(wanted.run.as_path())),
        ("program_folder", Some(program.parent().unwrap_or(Path::new("/")))),
        ("root", wanted.root.as_deref()),
        ("data", wanted.data.as_deref()),
    ];
    for (name, path) in paths {
        if let Some(path) = path {
            values.insert(name.to_owned(), Value::path(path).map_err(refused)?);
        }
    }
    let (owner, group) =
        (user.map_or("root", |user| user.name.as_str()), group_name(user.map_or(0, |user| user.gid)));
    for (name, value) in [
        ("address", Value::address(wanted.address)),
        ("port", Value::number(wanted.port.into())),
        ("memory_mib", Value::number(wanted.memory_mib)),
        ("user", Value::constant(owner).map_err(refused)?),
        ("group", Value::constant(&group).map_err(refused)?),
    ] {
        values.insert(name.to_owned(), value);
    }
    match (wanted.tier.upstream, daemon.passes_on()) {
        (Some(upstream), true) => drop(values.insert("upstream".to_owned(), Value::socket(upstream))),
        (None, false) => {}
        (Some(_), false) => {
            return Err(Error::Refused(format!(
                "daemon {} is not a proxy. Leave `before` (--upstream) out",
                daemon.name
            )));
        }
        (None, true) => {
            return Err(Error::Refused(format!(
                "daemon {} is a proxy. Name the daemon that it is before (--upstream)",
                daemon.name
            )));
        }
    }
    add_hot(daemon, wanted, &mut values)?;
    Ok(values)
}

/// Adds the values of documents in a separate folder.
fn add_hot(daemon: &Daemon, wanted: &Start, values: &mut Values) -> Result<(), Error> {
    let refused = |error| Error::Refused(format!("daemon {}: {error}", daemon.name));
    let texts = match (&daemon.hot, &wanted.tier.hot) {
        (None, None) => return Ok(()),
        (None, Some(_)) => {
            return Err(Error::Refused(format!(
                "daemon {} cannot serve some documents from memory. Use nginx, or leave hot_mib out",
                daemon.name
            )));
        }
        (Some(known), None) => &known.without,
        (Some(known), Some(hot)) => {
            values.insert("hot".to_owned(), Value::path(&hot.folder).map_err(refused)?);
            let mut each = Filled::default();
            for uri in &hot.uris {
                values.insert("uri".to_owned(), Value::path(Path::new(uri)).map_err(refused)?);
                each.push(&fill(&known.each, values).map_err(refused)?);
            }
            values.insert("each".to_owned(), each.into());
            &known.with
        }
    };
    let filled =
        texts.iter().map(|(name, text)| Ok((name.clone(), fill(text, values).map_err(refused)?.into())));
    let filled = filled.collect::<Result<Values, Error>>()?;
    values.extend(filled);
    Ok(())
}

/// Name of a group of users; its number if it has none.
fn group_name(gid: u32) -> String {
    let table = fs::read_to_string("/etc/group").unwrap_or_default();
    let named = table.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == gid.to_string()).then(|| name.to_owned())
    });
    named.unwrap_or_else(|| gid.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_has_a_name_or_its_number() {
        assert_eq!(group_name(0), "root");
        assert_eq!(group_name(4_000_001), "4000001");
    }
}
