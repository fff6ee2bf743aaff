//! Spec files: messages of errors.

use std::path::Path;

use weir_blockserver::{ServeSpec, State, down};

fn error(yaml: &str) -> String {
    let error = ServeSpec::parse(yaml, "my.yml", Path::new("/specs")).unwrap_err();
    assert!(error.is_bad_input());
    error.to_string()
}

#[test]
fn defaults_and_relative_paths() {
    let spec =
        ServeSpec::parse("{name: a, profile: hdd-7200, size_mib: 1024}", "my.yml", Path::new(".")).unwrap();
    assert_eq!((spec.heads, spec.stripe_unit_kib, spec.backing.as_str()), (1, 64, "memory"));
    assert_eq!((spec.size_bytes(), spec.backing_file()), (1 << 30, None));
    let yaml = "{name: a, profile: hdd-7200, size_mib: 1024, backing: ./a.img}";
    let spec = ServeSpec::parse(yaml, "my.yml", Path::new("/specs")).unwrap();
    assert_eq!(spec.backing_file().unwrap(), Path::new("/specs/./a.img"));
}

#[test]
fn errors_name_file_field_value_and_remedy() {
    for (yaml, expected) in [
        (
            "{name: a, profile: hdd7200, size_mib: 64}",
            &["my.yml", "`profile`", "`hdd7200`", "did you mean `hdd-7200`"][..],
        ),
        ("{name: a, profile: hdd-7200, size_mib: 4}", &["my.yml", "4194304 bytes", "55 to"]),
        ("{name: a, profile: hdd-7200, size_mib: 64, heads: 4}", &["a disk with this profile"]),
        ("{name: a, profile: \"null\", size_mib: 0}", &["`size_mib` is 0"]),
        ("{name: a, profile: \"null\", size_mib: 1, heads: 0}", &["`heads` is 0", "1 to 64"]),
        ("{name: a, profile: \"null\", size_mib: 1, stripe_unit_kib: 1}", &["`stripe_unit_kib` is 1"]),
        ("{name: ../a, profile: \"null\", size_mib: 1}", &["`name` is `../a`", "letters"]),
        (
            "{name: a, profile: \"null\", size_mib: 1, backing: memroy}",
            &["`backing` is `memroy`", "did you mean `memory`"],
        ),
        ("{name: a, profile: \"null\", size_mb: 1}", &["my.yml", "size_mb", "size_mib"]),
        ("{name: a, profile: \"null\"}", &["size_mib"]),
        ("{name: a, profile: ./gone.yml, size_mib: 1}", &["/specs/./gone.yml", "No such file"]),
        ("[", &["my.yml"]),
    ] {
        let message = error(yaml);
        assert!(expected.iter().all(|part| message.contains(part)), "{yaml}: {message}");
    }
    let gone = ServeSpec::load(Path::new("/nowhere/my.yml")).unwrap_err().to_string();
    assert!(gone.contains("/nowhere/my.yml: cannot be read: No such file"), "{gone}");
}

#[test]
fn a_file_that_is_no_state_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.json");
    std::fs::write(&file, "{\"pid\": 1}").unwrap();
    let error = State::load(&file).unwrap_err();
    assert!(error.is_bad_input() && error.to_string().contains("x.json is not a state file"), "{error}");
    assert!(down(&file).is_err());
    assert!(file.exists());
}
