//! Names that become part of a path: of runs, studies, classes, devices and services.
//!
//! They are checked where a run is parsed, so that no reader of a plan or of `run.json` has one that leads out of its folder.

use serde::{Deserialize, Deserializer, de};

/// The longest name: with what is put before and behind it, a file's name has at most 255 bytes.
const MOST_BYTES: usize = 100;

/// Whether a name is one of letters, digits, `-` and `_` alone, not empty and not too long for a file's name.
pub fn is_plain_name(name: &str) -> bool {
    (1..=MOST_BYTES).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

/// Reads a plain name, with an error that names the field.
fn plain<'de, D: Deserializer<'de>>(field: &str, from: D) -> Result<String, D::Error> {
    let name = String::deserialize(from)?;
    if is_plain_name(&name) {
        return Ok(name);
    }
    Err(de::Error::custom(format!(
        "{field}: names a file (found {name:?}, expected letters, digits, - and _ only, at most {MOST_BYTES}). \
         Plan the study again: weir plan STUDY --json"
    )))
}

/// Functions for `#[serde(deserialize_with)]`, each with the name of its field.
macro_rules! fields {
    ($($function:ident: $field:literal;)+) => {$(
        pub(crate) fn $function<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
            plain($field, from)
        }
    )+};
}

fields! {
    id: "id";
    study: "study";
    class: "classes.name";
    device: "devices.name";
    asked_device: "classes.device";
    service: "services.name";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leads_out_of_a_folder_is_no_plain_name() {
        for name in [
            "",
            ".",
            "..",
            "../outside",
            "/etc",
            "a/b",
            ".hidden",
            "a b",
            "a\0b",
            "a.b",
            "\u{e4}",
            &"a".repeat(101),
        ] {
            assert!(!is_plain_name(name), "{name:?}");
        }
        for name in ["0a1b2c3d4e5f", "hdd-7200", "a_b", &"a".repeat(100)] {
            assert!(is_plain_name(name), "{name:?}");
        }
    }
}
