//! Checks of the file system options of a study.

use crate::cells::settings_of_cells;
use crate::filesystem::FileSystem;
use crate::fs_option::{PREFIX, text};
use crate::spec::Study;
use crate::testbed::Testbed;

/// Problems, by field: an option that the file system of a cell does not have, or an invalid value.
pub(crate) fn check(study: &Study, testbed: Testbed) -> Vec<(String, String)> {
    let varied = study.factors.filesystem_options.clone().unwrap_or_default();
    let field = |name: &str| {
        let part = if varied.contains_key(name) { "factors" } else { "hold" };
        format!("{part}.{PREFIX}{name}")
    };
    if testbed.is_virtual() {
        // In a study of both testbeds the simulator ignores held options. It cannot ignore varied ones.
        let held = if study.testbed.are_two() { None } else { study.hold.filesystem_options.keys().next() };
        return held.map_or_else(Vec::new, |name| {
            let message = "is an option of a file system without a counterpart in virtual time: leave it out";
            vec![(field(name), message.to_owned())]
        });
    }
    let mut found: Vec<(String, String)> = Vec::new();
    for settings in settings_of_cells(study) {
        // Another check reports an unknown file system.
        let Some(filesystem) = FileSystem::load(&settings.filesystem) else { continue };
        for (name, value) in &settings.filesystem_options {
            let problem = match filesystem.options.get(name) {
                None => Some(lacks(&filesystem, name)),
                Some(option) => match text(value) {
                    None => Some(format!("is {value}; write a number or a text")),
                    Some(value) => option.kind.problem(&value),
                },
            };
            let problem = problem.map(|message| (field(name), message));
            found.extend(problem.filter(|problem| !found.contains(problem)));
        }
    }
    found
}

fn lacks(filesystem: &FileSystem, name: &str) -> String {
    let known: Vec<&str> = filesystem.options.keys().map(String::as_str).collect();
    let has = if known.is_empty() { "no options".to_owned() } else { known.join(", ") };
    format!(
        "is set, but {0} has no `{name}` (it has {has}): leave it out, or write a separate study for {0}",
        filesystem.name
    )
}

#[cfg(test)]
mod tests {
    use weir_specs::template::placeholders;

    use super::*;
    use crate::spec::Settings;

    #[test]
    fn every_option_is_set_in_exactly_one_way_and_read_back() {
        let mut count = 0;
        for filesystem in FileSystem::names().filter_map(FileSystem::load) {
            for (name, option) in &filesystem.options {
                let place = format!("{}.{name}", filesystem.name);
                let ways = [option.default.is_some(), !option.set.is_empty(), option.by.is_some()];
                assert_eq!(ways.iter().filter(|way| **way).count(), 1, "{place}: is set in {ways:?}");
                assert!(!option.read.is_empty() || option.by.is_some() || option.of_servers, "{place}: read");
                assert!(!option.of_servers || filesystem.network.is_some(), "{place}: has no servers here");
                if let Some(default) = &option.default {
                    assert_eq!(option.kind.problem(default), None, "{place}");
                    let access = filesystem.network.as_ref().expect(&place);
                    let mut texts = access.client.iter().chain(access.files.values());
                    let used = texts.any(|text| text.contains(&format!("{{{name}}}")));
                    assert_eq!(used, !option.of_servers, "{place}: is not what the client's texts say");
                }
                count += 1;
            }
        }
        assert!(count > 0);
    }

    #[test]
    fn no_placeholder_stands_in_the_program_text_of_a_shell() {
        for filesystem in FileSystem::names().filter_map(FileSystem::load) {
            let network = filesystem.network.iter();
            let of_client = network.flat_map(|access| [&access.client, &access.once_mounted]);
            let of_options = filesystem.options.values().flat_map(|option| [&option.set, &option.read]);
            for words in of_client.chain(of_options) {
                let is_shell = words.first().is_some_and(|program| program == "sh");
                let program = words.get(2).filter(|_| is_shell);
                let found = program.and_then(|text| placeholders(text).next());
                assert_eq!(found, None, "{}: give it to the shell as an argument", filesystem.name);
            }
        }
    }

    #[test]
    fn what_a_run_sets_takes_the_place_of_the_default() {
        let settings = Settings {
            filesystem_options: [("io_threads".to_owned(), 4.into())].into(),
            ..Settings::default()
        };
        let found = FileSystem::load("glusterfs").unwrap().with(&settings);
        assert_eq!(found.options["io_threads"].default.as_deref(), Some("4"));
        let untouched = FileSystem::load("glusterfs").unwrap();
        assert_ne!(untouched.options["io_threads"].default.as_deref(), Some("4"));
    }
}
