//! Every accepted setting becomes one value of one directive in a configuration. The tests cover every setting of every
//! daemon in the registry, including new ones.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use weir_specs::template::{Filled, Values, fill};
use weir_specs::{Kind, Setting};
use weir_study::FileSystem;

use crate::Error;
use crate::cgroup::Group;
use crate::cluster::Description;
use crate::description::Daemon;
use crate::process::Scope;
use crate::start::{Hot, Start, Tier};
use crate::values::values;

/// Mark in place of the setting under test in a parsed template. No directive contains it.
const MARK: &str = "MARK0";

/// Texts that mean something to a shell, or to the configuration of some daemon.
fn payloads() -> Vec<String> {
    let mut all: Vec<String> = [
        "",
        " ",
        "on; server { listen 0.0.0.0:8080; }",
        "2; load_module /tmp/x.so",
        "; }",
        "}",
        "{",
        "{run}",
        "{data}",
        "1\nListen 0.0.0.0:8080",
        "1\r\nLoadModule x /tmp/x.so",
        "1\tx",
        "1\0",
        "\"",
        "'",
        "1\" x \"",
        "1' x '",
        "\\",
        "1\\",
        "$(touch /tmp/x)",
        "`touch /tmp/x`",
        "$HOME",
        "%{ENV:HOME}",
        "1 # comment",
        "# comment",
        "; comment",
        "%include /etc/passwd",
        "!include /etc/passwd",
        "!includedir /etc",
        "Include /etc/passwd",
        "include /etc/passwd;",
        "../",
        "../../etc/passwd",
        "a/../b",
        "-x",
        "--config=/etc/passwd",
        "1,file=/etc/shadow",
        "1,if=none",
        "json:{}",
        "1 2",
        "1|id",
        "1&id",
        "1>x",
        "1<x",
        "*",
        "~root",
        "option x y",
        "1\nend-volume\nvolume x",
        "\u{e9}",
        "\u{ff11}",
        "\u{2028}",
        "\u{202e}1",
        "\u{1f4a5}",
        "+1; x",
        "1 ",
        " 1",
    ]
    .map(str::to_owned)
    .into();
    all.push("1".repeat(1 << 20));
    all.push("a".repeat(1 << 20));
    all
}

/// Texts that some programs take for a number, and others not or for another.
const ODD_NUMBERS: [&str; 7] = ["1e3", "0x10", "+1", "01", "1.5", "18446744073709551616", "1k"];

/// Every setting of every daemon.
fn settings() -> impl Iterator<Item = (Daemon, String, Setting)> {
    Daemon::names().filter_map(Daemon::load).flat_map(|daemon| {
        let all = daemon.settings.clone();
        all.into_iter().map(move |(name, setting)| (daemon.clone(), name, setting))
    })
}

/// Some value that a setting takes.
fn example(setting: &Setting) -> String {
    setting.default.clone().unwrap_or_else(|| "/srv/weir/file".to_owned())
}

fn start(daemon: &Daemon, name: &str, value: &str) -> Start {
    let mut set: BTreeMap<String, String> =
        daemon.settings.iter().map(|(name, setting)| (name.clone(), example(setting))).collect();
    set.insert(name.to_owned(), value.to_owned());
    Start {
        name: daemon.name.clone(),
        scope: Scope::Run,
        run: "/run/weir/x".into(),
        root: Some("/srv/root".into()),
        data: Some("/srv/data".into()),
        address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        port: 8080,
        namespace: None,
        group: Group::of_state(Path::new("/run/weir")),
        memory_mib: 0,
        set,
        own: Values::new(),
        log: "/run/weir/x.log".into(),
        tier: Tier {
            upstream: daemon.passes_on().then_some(SocketAddr::from(([127, 0, 0, 1], 80))),
            hot: None,
        },
    }
}

fn valued(daemon: &Daemon, start: &Start) -> Result<Values, Error> {
    values(daemon, start, Path::new("/usr/sbin/x"), None)
}

#[test]
fn no_payload_gets_into_any_setting_of_any_daemon() {
    let payloads = payloads();
    let mut tried = 0;
    for (daemon, name, setting) in settings() {
        let is_number = matches!(setting.kind, Kind::Integer { .. });
        let odd = ODD_NUMBERS.iter().filter(|_| is_number).map(|text| (*text).to_owned());
        for payload in payloads.iter().cloned().chain(odd) {
            let place = format!("{}.{name}: {:?}", daemon.name, &payload[..payload.len().min(40)]);
            let said = setting.kind.problem(&payload).unwrap_or_else(|| panic!("{place} passes the check"));
            assert!(said.len() < 1000 && !said.contains('\n'), "{place}: {said}");
            match valued(&daemon, &start(&daemon, &name, &payload)) {
                Err(Error::Refused(said)) => {
                    assert!(said.contains(&format!("setting `{name}`")), "{place}: {said}")
                }
                other => panic!("{place} gets into a file: {other:?}"),
            }
            tried += 1;
        }
    }
    let count = settings().count();
    eprintln!("{tried} payloads were refused by {count} settings");
    assert!(count >= 30 && tried > count * 50, "{count} settings, {tried} payloads");
}

#[test]
fn a_placeholder_of_the_harness_is_no_setting() {
    for daemon in Daemon::names().filter_map(Daemon::load) {
        let own = [
            "run", "root", "data", "address", "port", "user", "group", "upstream", "first", "index",
            "clients",
        ];
        let own = own.into_iter().chain(daemon.defaults.keys().map(String::as_str));
        for name in own.filter(|name| !daemon.settings.contains_key(*name)) {
            match valued(&daemon, &start(&daemon, name, "1")) {
                Err(Error::Refused(said)) => assert!(said.contains("unknown setting"), "{said}"),
                other => panic!("{}: {name}: {other:?}", daemon.name),
            }
        }
    }
}

#[test]
fn a_path_that_means_something_stands_in_no_configuration() {
    type Change = fn(&mut Start, PathBuf);
    let changes: [Change; 3] = [
        |start, path| start.run = path,
        |start, path| start.root = Some(path),
        |start, path| start.data = Some(path),
    ];
    for path in [
        "/a b", "/a;b", "/a\nb", "/a\"b", "/a'b", "/a{run}", "/$(id)", "/`id`", "/a/../b", "a", "/a#b",
        "/a,b",
    ] {
        for daemon in Daemon::names().filter_map(Daemon::load) {
            for change in changes {
                let mut wanted = start(&daemon, "", "");
                wanted.set.remove("");
                valued(&daemon, &wanted).unwrap();
                change(&mut wanted, path.into());
                assert!(
                    matches!(valued(&daemon, &wanted), Err(Error::Refused(_))),
                    "{}: {path}",
                    daemon.name
                );
            }
        }
    }
}

#[test]
fn a_document_that_means_something_stands_in_no_table() {
    let daemon = Daemon::load("nginx").unwrap();
    let mut wanted = start(&daemon, "workers", "1");
    for uri in ["/c/a\"; }", "/c/a b", "/c/../a", "/c/$uri", "/c/a\nb"] {
        wanted.tier.hot = Some(Hot { folder: "/hot".into(), uris: vec![uri.to_owned()] });
        assert!(matches!(valued(&daemon, &wanted), Err(Error::Refused(_))), "{uri}");
    }
    wanted.tier.hot = Some(Hot { folder: "/hot".into(), uris: vec!["/c/000001.dat".to_owned()] });
    assert!(valued(&daemon, &wanted).is_ok());
}

#[test]
fn options_of_servers_are_settings_of_their_daemons_and_take_the_same() {
    let mut count = 0;
    for filesystem in FileSystem::names().filter_map(FileSystem::load) {
        let Some(network) = &filesystem.network else { continue };
        let members = Description::load(&network.cluster).unwrap().daemons;
        let daemons: Vec<Daemon> = members.iter().filter_map(|member| Daemon::load(&member.daemon)).collect();
        for (name, option) in filesystem.options.iter().filter(|(_, option)| option.of_servers) {
            let setting = daemons.iter().find_map(|daemon| daemon.settings.get(name));
            let setting = setting.unwrap_or_else(|| panic!("{}: no daemon has {name}", filesystem.name));
            assert_eq!((&setting.kind, &setting.default), (&option.kind, &option.default), "{name}");
            count += 1;
        }
    }
    assert!(count > 0);
}

#[test]
fn no_payload_gets_into_any_option_of_any_file_system() {
    let mut tried = 0;
    for filesystem in FileSystem::names().filter_map(FileSystem::load) {
        for (name, option) in &filesystem.options {
            for payload in payloads() {
                let passes = option.kind.problem(&payload).is_none();
                // Rules of Lustre are parsed by the role and are not copied into a text.
                let gets_in = option.kind.value(&payload).is_ok();
                assert!(!gets_in || passes, "{}.{name}: {payload:?}", filesystem.name);
                assert!(
                    !passes || matches!(option.kind, Kind::Text { .. }),
                    "{}.{name}: {payload:?}",
                    filesystem.name
                );
                tried += 1;
            }
        }
    }
    eprintln!("{tried} payloads");
}

/// The directives of a configuration: words with single blanks between them, and what opens and closes blocks. Comments are
/// none, and quotes are none of a word.
fn directives(path: &str, text: &str) -> Vec<String> {
    if path.ends_with("nginx.conf") { nginx(text) } else { lines(text) }
}

/// As nginx reads it: a directive ends with `;`, `{` or `}`, and lines mean nothing.
fn nginx(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = text.chars().peekable();
    while let Some(c) = letters.next() {
        match c {
            '#' if word.is_none() => drop(letters.by_ref().find(|c| *c == '\n')),
            '"' | '\'' if word.is_none() => {
                let mut quoted = String::new();
                while let Some(inner) = letters.next() {
                    match inner {
                        '\\' => quoted.extend(letters.next()),
                        inner if inner == c => break,
                        inner => quoted.push(inner),
                    }
                }
                word = Some(quoted);
            }
            '\\' => word.get_or_insert_default().extend(letters.next()),
            c if c.is_ascii_whitespace() => words.extend(word.take()),
            ';' | '{' | '}' => {
                words.extend(word.take());
                found.push(format!("{}{c}", words.join(" ")));
                words.clear();
            }
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    found.extend((!words.is_empty()).then(|| words.join(" ")));
    found
}

/// As Apache, MariaDB, Ceph, GlusterFS and MooseFS read it: a directive is a line.
fn lines(text: &str) -> Vec<String> {
    let lines = text.split(['\n', '\r']).map(str::trim);
    let bare = lines.map(|line| line.split(['#']).next().unwrap_or_default().replace(['"', '\''], ""));
    bare.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|line| !line.is_empty())
        .collect()
}

/// Whether a value is exactly one argument in a daemon's texts: they have the same directives and arguments as with a
/// mark in its place, and the value is only at the mark's position.
fn stands_as_one(daemon: &Daemon, name: &str, value: &str) -> Result<(), TestCaseError> {
    let values = valued(daemon, &start(daemon, name, value))
        .map_err(|error| TestCaseError::fail(error.to_string()))?;
    let filled = |text: &String| fill(text, &values).map(Filled::into_string).map_err(TestCaseError::fail);
    let marked = |text: &String| filled(&text.replace(&format!("{{{name}}}"), MARK));
    let mut uses = 0;
    let mut same = |found: Vec<String>, marked: Vec<String>| {
        uses += marked.iter().filter(|one| one.contains(MARK)).count();
        let wanted: Vec<String> = marked.iter().map(|one| one.replace(MARK, value)).collect();
        prop_assert_eq!(found, wanted);
        Ok(())
    };
    for (path, text) in &daemon.files {
        same(directives(path, &filled(text)?), directives(path, &marked(text)?))?;
    }
    let ready = match &daemon.ready {
        crate::Ready::Command(words) => Some(words),
        _ => None,
    };
    for words in daemon.prepare.iter().chain([&daemon.arguments]).chain(ready) {
        let all = |fill: &dyn Fn(&String) -> Result<String, TestCaseError>| {
            words.iter().map(fill).collect::<Result<Vec<String>, TestCaseError>>()
        };
        same(all(&filled)?, all(&marked)?)?;
    }
    prop_assert!(uses > 0, "{} is used nowhere", name);
    Ok(())
}

/// Texts similar to those that a type accepts: many are accepted.
fn near(kind: &Kind) -> BoxedStrategy<String> {
    match kind {
        Kind::Integer { from, to, .. } => (*from..=*to).prop_map(|number| number.to_string()).boxed(),
        Kind::Size { .. } => "[0-9]{1,6}(KB|MB|GB|TB)".boxed(),
        Kind::Duration { .. } => "[0-9]{1,5}[smhd]".boxed(),
        Kind::OneOf(words) => proptest::sample::select(words.clone()).boxed(),
        Kind::OnOff => "(on|off)".boxed(),
        Kind::Network => "[0-9]{1,3}\\.[0-9]{1,3}\\.[0-9]{1,2}\\.[0-9]{1,2}/[0-9]{1,2}".boxed(),
        Kind::Endpoint => "[0-9]{1,3}\\.[0-9]{1,3}\\.[0-9]{1,2}\\.[0-9]{1,2}:[0-9]{1,5}".boxed(),
        Kind::File => "(/[A-Za-z0-9._+@:=-]{1,12}){1,4}".boxed(),
        Kind::Name => "[A-Za-z0-9_-]{1,40}".boxed(),
        Kind::Word { characters, longest, .. } => {
            let characters: Vec<char> = characters.chars().collect();
            proptest::collection::vec(proptest::sample::select(characters), 1..=*longest)
                .prop_map(|all| all.into_iter().collect())
                .boxed()
        }
        Kind::Parts { separator, parts, alone, .. } => {
            let each = parts.iter().map(|(name, kind)| match kind {
                None => Just(name.clone()).boxed(),
                Some(kind) => {
                    let name = name.clone();
                    near(kind).prop_map(move |value| format!("{name}={value}")).boxed()
                }
            });
            let (separator, alone) = (separator.clone(), alone.clone());
            let some = proptest::collection::vec(proptest::strategy::Union::new(each), 1..4);
            let some = some.prop_map(move |all| all.join(&separator));
            if alone.is_empty() {
                some.boxed()
            } else {
                prop_oneof![some, proptest::sample::select(alone)].boxed()
            }
        }
        Kind::Text { .. } => "[a-z =;,]{1,40}".boxed(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_taken_stands_as_one_value_of_one_directive(seed in any::<prop::sample::Index>(), odd in "\\PC{0,24}") {
        let all: Vec<_> = settings().collect();
        let (daemon, name, setting) = &all[seed.index(all.len())];
        if setting.kind.problem(&odd).is_none() {
            stands_as_one(daemon, name, &odd)?;
        }
    }
}

#[test]
fn each_setting_stands_as_one_value_of_one_directive() {
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(32) };
    let taken = std::cell::Cell::new(0);
    for (daemon, name, setting) in settings() {
        stands_as_one(&daemon, &name, &example(&setting)).unwrap();
        let (value, place) = (near(&setting.kind), format!("{}.{name}", daemon.name));
        // Unchanged, and with one arbitrary character at an arbitrary position.
        let strategy = (value, any::<prop::sample::Index>(), proptest::option::weighted(0.5, any::<char>()));
        let mut runner = proptest::test_runner::TestRunner::new(config.clone());
        let outcome = runner.run(&strategy, |(mut value, at, odd)| {
            if let Some(odd) = odd {
                let places: Vec<usize> =
                    value.char_indices().map(|(at, _)| at).chain([value.len()]).collect();
                value.insert(places[at.index(places.len())], odd);
            }
            if setting.kind.problem(&value).is_none() {
                taken.set(taken.get() + 1);
                stands_as_one(&daemon, &name, &value)?;
            }
            Ok(())
        });
        outcome.unwrap_or_else(|error| panic!("{place}: {error}"));
    }
    eprintln!("{} values were taken, and stand as one", taken.get());
    assert!(taken.get() > 300);
}

#[test]
fn the_parser_of_this_test_sees_an_injected_directive() {
    let plain = nginx("http { sendfile \"on\"; }");
    assert_eq!(plain, ["http{", "sendfile on;", "}"]);
    assert_eq!(nginx("http { sendfile on; server { listen 1; }; }").len(), 7);
    assert_eq!(nginx("a b # c;\n;"), ["a b;"]);
    assert_eq!(lines("a = b # c\n\n d  \"e\"\n# f"), ["a = b", "d e"]);
}
