//! Help of the `weir` command: subcommands in groups; commands of the playbook come last.

use std::fmt::Write as _;

use clap::Command;

/// Headings with the subcommands below them, in the order of the help.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Studies", &["init", "list", "schema", "check", "plan", "run", "simulate", "gather", "verify", "clean"]),
    (
        "Results",
        &[
            "summary",
            "report",
            "watch",
            "exporter",
            "compare",
            "power",
            "variation",
            "capacity",
            "precision",
            "export",
            "pack",
            "import",
            "metrics",
            "figures",
            "claims",
            "lab",
            "trace-page",
        ],
    ),
    ("Workloads and traces", &["generate", "workload", "replay", "trace", "admit"]),
    (
        "Devices and schedulers",
        &["device", "disks", "serve", "class", "top", "collect", "controllers", "fsbench"],
    ),
    ("Web sites, daemons and networks", &["browse", "documents", "site", "service", "cluster", "network"]),
    ("Installation", &["doctor", "completions", "man"]),
];

/// Subcommands that the playbook calls.
pub const INTERNAL: &str = "internal";

/// Gives the command its grouped help.
pub fn grouped(command: Command) -> Command {
    let mut text = String::from("{about-with-newline}\n{usage-heading} {usage}\n");
    for (heading, names) in GROUPS {
        let _ = write!(text, "\n{heading}:\n{}", lines(&command, names));
    }
    text += "\nOptions:\n{options}\n\n`weir help COMMAND` explains one, `weir help internal` lists what the playbook calls. Every command has --json.\n";
    let internal = lines(&command, &internal_names(&command));
    command
        .help_template(text)
        .mut_subcommand(INTERNAL, |one| one.help_template(format!("{{about-with-newline}}\n{internal}")))
}

/// The subcommands of no group.
fn internal_names(command: &Command) -> Vec<&str> {
    let listed = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));
    command
        .get_subcommands()
        .map(Command::get_name)
        .filter(|name| !listed(name) && *name != INTERNAL)
        .collect()
}

fn lines(command: &Command, names: &[&str]) -> String {
    names.iter().filter_map(|name| command.find_subcommand(name)).fold(String::new(), |mut text, one| {
        let about = one.get_about().map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(text, "  {:<12} {}", one.get_name(), about.trim_end_matches('.'));
        text
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn every_group_names_subcommands_that_exist() {
        let command = crate::Cli::command();
        for name in GROUPS.iter().flat_map(|(_, names)| *names) {
            assert!(command.find_subcommand(name).is_some(), "{name}");
        }
    }

    #[test]
    fn only_what_the_playbook_calls_is_in_no_group() {
        let command = crate::Cli::command();
        let mut names = internal_names(&command);
        names.sort_unstable();
        assert_eq!(names, ["cgroup", "join", "observe", "queue"]);
    }

    #[test]
    fn every_option_refers_to_options_that_exist() {
        crate::command().debug_assert();
    }

    #[test]
    fn the_help_lists_groups_and_hides_the_rest() {
        let mut command = crate::command();
        let help = command.render_help().to_string();
        assert!(help.contains("Studies:\n  init ") && help.contains("--version"), "{help}");
        assert!(!help.contains("  join "), "{help}");
        let internal = command.find_subcommand_mut(INTERNAL).unwrap().render_help().to_string();
        assert!(internal.contains("  join "), "{internal}");
    }
}
