//! Names of studies, labels, classes, devices, daemons and hosts.
//!
//! Names become folders, files, processes, control groups and labels. One rule holds for all of them.

/// Longest name, in characters.
const LONGEST: usize = 40;
/// Longest name of a host, in characters: inventories name hosts by their domain names and addresses.
const LONGEST_HOST: usize = 128;

/// The problem of a name. `None` if it is valid.
///
/// A name has 1 to 40 ASCII letters, digits, `-` and `_`. It does not start with `-`, which programs would read as an
/// option.
pub fn name_problem(name: &str) -> Option<String> {
    let right = starts_well(name) && name.len() <= LONGEST && name.chars().all(is_plain);
    (!right).then(|| {
        format!(
            "is {}; use 1 to {LONGEST} letters, digits, - and _ only, no - at the beginning",
            quoted(name)
        )
    })
}

/// The problem of a host name. `None` if it is valid. It can have `.` and up to 128 characters.
pub fn host_problem(name: &str) -> Option<String> {
    let right =
        starts_well(name) && name.len() <= LONGEST_HOST && name.chars().all(|c| is_plain(c) || c == '.');
    (!right).then(|| {
        format!(
            "is {}; use 1 to {LONGEST_HOST} letters, digits, -, _ and . only, no - or . at the beginning",
            quoted(name)
        )
    })
}

/// The problem of the label of runs. `None` if it is valid. It can have `.` and `+`, as versions have.
pub fn label_problem(label: &str) -> Option<String> {
    let right = starts_well(label)
        && label.len() <= LONGEST
        && label.chars().all(|c| is_plain(c) || ".+".contains(c));
    (!right).then(|| {
        format!(
            "is {}; use 1 to {LONGEST} letters, digits, -, _, . and + only, no -, . or + at the beginning",
            quoted(label)
        )
    })
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '_'
}

fn starts_well(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
}

/// A text as shown in an error: in backquotes on one line, cut to its length.
pub fn quoted(text: &str) -> String {
    const SHOWN: usize = 80;
    let shown: String = text.chars().take(SHOWN).flat_map(char::escape_debug).collect();
    if text.chars().nth(SHOWN).is_some() {
        format!("`{shown}...` ({} characters)", text.chars().count())
    } else {
        format!("`{shown}`")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_no_part_of_a_path_pass_and_others_do_not() {
        for name in ["quick", "hds_alone", "4k", "_x", "a-b"] {
            assert_eq!(name_problem(name), None);
            assert_eq!(host_problem(name), None);
        }
        let long = "n".repeat(129);
        for name in
            ["", ".", "..", "-rf", ".x", "a/b", "../x", "a b", "a\n", "a\0", "\u{e9}", "$(x)", "a;b", &long]
        {
            assert!(name_problem(name).is_some(), "{name:?}");
            assert!(host_problem(name).is_some(), "{name:?}");
            assert!(label_problem(name).is_some(), "{name:?}");
        }
        for label in ["6.12", "v6.12-rc1+", "patched", "3f2a9c1"] {
            assert_eq!(label_problem(label), None);
        }
        assert!(label_problem("a@b").is_some());
        assert!(name_problem("host-1.example.org").is_some());
        assert_eq!(host_problem("host-1.example.org"), None);
        assert!(name_problem(&"n".repeat(41)).is_some());
    }

    #[test]
    fn what_an_error_shows_is_one_short_line() {
        assert_eq!(quoted("a\nb"), "`a\\nb`");
        assert!(quoted(&"x".repeat(1 << 20)).len() < 120);
    }
}
