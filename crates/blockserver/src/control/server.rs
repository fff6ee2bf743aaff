//! Server side of the control socket.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::{Answer, Command};
use crate::engine::Engines;
use crate::sockets::Listening;
use crate::sockets::connections::{Gate, Limits};

/// Maximum length of a command: room for 64 classes, or some ten thousand extents.
const MAX_LINE_BYTES: u64 = 1 << 20;

/// Limits on connections. A run keeps one connection to each device, which may be idle for hours, also before its first command:
/// time is not limited.
const LIMITS: Limits =
    Limits { what: "control", newcomers: 16, handshake: None, clients: 64, remedy: "end one of them" };
/// A client that does not read its answers for this long is disconnected.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// Listens on `path`, for root and the user of this process only, until the process ends.
pub(crate) fn listen(path: &Path, engines: Arc<Engines>) -> io::Result<()> {
    let listener = Listening::at_path(path)?;
    thread::Builder::new().name("control".to_owned()).spawn(move || {
        Gate::new(LIMITS).serve(&listener, move |stream, place| {
            // A client that disconnects within a line affects no other one.
            let _ = stream.set_write_timeout(WRITE_TIMEOUT).and_then(|()| {
                let writer = stream.try_clone()?;
                answer_all(stream, writer, &engines, || place.settle().map(|()| place.activate()))
            });
        });
    })?;
    Ok(())
}

/// Answers each line until the client disconnects, is not admitted, or sends a line that is too long.
fn answer_all(
    stream: impl Read,
    mut writer: impl Write,
    engines: &Engines,
    admit: impl FnOnce() -> Result<(), String>,
) -> io::Result<()> {
    let mut admit = Some(admit);
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = Vec::new();
        if reader.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let is_whole = line.ends_with(b"\n") || (line.len() as u64) < MAX_LINE_BYTES;
        let refused = admit.take().and_then(|admit| admit().err());
        let goes_on = is_whole && refused.is_none();
        let answer = match serde_json::from_slice(&line) {
            _ if refused.is_some() => Answer::Error(refused.unwrap_or_default()),
            _ if !is_whole => {
                Answer::Error(format!("the command is too long: it may have at most {MAX_LINE_BYTES} bytes"))
            }
            Ok(command) => execute(command, engines),
            Err(error) => Answer::Error(format!("{error}. The commands are {COMMANDS}")),
        };
        let mut text = serde_json::to_string(&answer)?;
        text.push('\n');
        writer.write_all(text.as_bytes())?;
        if !goes_on {
            return Ok(());
        }
    }
}

/// An example of each command.
const COMMANDS: &str = r#"{"cmd":"timing","on":false}, {"cmd":"stats","reset":true}, {"cmd":"discard"}, {"cmd":"live"}, {"cmd":"classes"}, {"cmd":"set_class","class":{"name":"video"}}, {"cmd":"remove_class","name":"video"}, {"cmd":"set_policy","policy":"fcfs"}, {"cmd":"arrange","arrangement":{"policy":"fcfs","queue_depth":1,"seed":0,"classes":[]}}, {"cmd":"arrangement"}, {"cmd":"begin","at_ns":1000000000}"#;

fn execute(command: Command, engines: &Engines) -> Answer {
    let done = |done: Result<(), String>| done.map_or_else(Answer::Error, |()| Answer::Done);
    match command {
        Command::Timing { on } => {
            engines.set_timing(on);
            Answer::Done
        }
        Command::Stats { reset } => Answer::Stats(Box::new(engines.stats(reset))),
        Command::Discard {} => done(engines.discard().map_err(|error| format!("cannot discard: {error}"))),
        Command::Live {} => {
            engines.scheduling_stats().map_or_else(Answer::Error, |stats| Answer::Live(Box::new(stats)))
        }
        Command::Classes {} => engines.classes().map_or_else(Answer::Error, Answer::Classes),
        Command::SetClass { class } => done(engines.set_class(*class)),
        Command::RemoveClass { name } => done(engines.remove_class(&name)),
        Command::SetPolicy { policy } => done(engines.set_policy(&policy)),
        Command::Arrange { arrangement } => done(engines.arrange(&arrangement)),
        Command::Arrangement {} => engines
            .arrangement()
            .map_or_else(Answer::Error, |arrangement| Answer::Arrangement(Box::new(arrangement))),
        Command::Begin { at_ns } => done(engines.begin_at(at_ns)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::spec::ServeSpec;

    fn engines_of(yaml: &str) -> Engines {
        Engines::new(&ServeSpec::parse(yaml, "test.yml", Path::new(".")).unwrap()).unwrap()
    }

    fn answers(engines: &Engines, text: &[u8]) -> Vec<Answer> {
        let mut written = Vec::new();
        answer_all(text, &mut written, engines, || Ok(())).unwrap();
        written
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| serde_json::from_slice(line).unwrap())
            .collect()
    }

    #[test]
    fn a_client_above_the_limit_is_told_so_and_cut_off() {
        let mut written = Vec::new();
        let text = &b"{\"cmd\":\"stats\"}\n{\"cmd\":\"stats\"}\n"[..];
        answer_all(text, &mut written, &engines_of(LIVE), || Err("there are too many".to_owned())).unwrap();
        assert_eq!(written, b"{\"error\":\"there are too many\"}\n");
    }

    const LIVE: &str = "{name: live, profile: \"null\", size_mib: 8, live: {policy: sfq}}";

    #[test]
    fn what_is_no_command_gets_an_error() {
        let engines = engines_of(LIVE);
        let lines = [
            "",
            "{}",
            "{\"cmd\":\"live\",\"x\":1}",
            "\u{fffd}\0",
            "{\"cmd\":\"set_class\",\"class\":{\"name\":\"a b\"}}",
            "{\"cmd\":\"set_policy\",\"policy\":\"fcsf\"}",
            "{\"cmd\":\"remove_class\",\"name\":\"nobody\"}",
            "{\"cmd\":\"arrange\",\"arrangement\":{\"policy\":\"fcfs\",\"queue_depth\":0,\"seed\":0,\"classes\":[]}}",
            "{\"cmd\":\"arrange\",\"arrangement\":{\"policy\":\"fcfs\"}}",
            "{\"cmd\":\"begin\",\"at_ns\":18446744073709551615}",
        ];
        for line in lines {
            let all = answers(&engines, format!("{line}\n").as_bytes());
            assert!(matches!(all[..], [Answer::Error(_)]), "{line}: {all:?}");
        }
        let all = answers(&engines, &vec![b'['; 3 * MAX_LINE_BYTES as usize]);
        assert!(matches!(&all[..], [Answer::Error(error)] if error.contains("at most")), "{all:?}");
        let text = b"{\"cmd\":\"set_class\",\"class\":{\"name\":\"video\"}}\n{\"cmd\":\"classes\"}\n";
        assert!(
            matches!(&answers(&engines, text)[..], [Answer::Done, Answer::Classes(all)] if all.len() == 1)
        );
    }

    #[test]
    fn a_server_without_a_policy_has_no_classes() {
        let engines = engines_of("{name: plain, profile: \"null\", size_mib: 8}");
        for line in ["live", "classes"] {
            let all = answers(&engines, format!("{{\"cmd\":\"{line}\"}}\n").as_bytes());
            assert!(matches!(&all[..], [Answer::Error(error)] if error.contains("--policy")), "{all:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
        #[test]
        fn any_lines_get_an_answer_each(
            lines in prop::collection::vec(prop_oneof![
                prop::collection::vec(any::<u8>(), 1..80),
                "\\{\"cmd\":\"(live|classes|stats|timing|set_policy|arrange|arrangement|begin)\",?[ -~]{0,30}\\}?".prop_map(String::into_bytes),
            ], 0..8),
        ) {
            let engines = engines_of(LIVE);
            let lines: Vec<Vec<u8>> = lines.into_iter().map(|mut line| {
                line.retain(|byte| *byte != b'\n');
                line.push(b'\n');
                line
            }).collect();
            prop_assert_eq!(answers(&engines, &lines.concat()).len(), lines.len());
        }
    }
}
