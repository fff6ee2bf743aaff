//! The round scheduler of Wijayaratne and Reddy ("Providing QOS guarantees for disk I/O", sections 2.1 and 2.3, Fig. 2).
//!
//! Time is cut into rounds. Periodic requests (real-time classes) are there when a round begins and are done when it ends.
//! They and those aperiodic requests (classes that want throughput) that are guaranteed are merged in SCAN order and
//! broken into subgroups. Between subgroups interactive requests are served, first come, first served, as far as the slack
//! of the round goes; in what is left of the round, anything else.

mod bucket;
mod groups;
mod round;
#[cfg(test)]
mod tests;

use self::bucket::Interactive;
use self::round::{Shares, WrRound};
use crate::entry::Entry;
use crate::policy::Policy;
use crate::request::Class;
use crate::settings::{SettingError, Settings};

pub(crate) const ENTRY: Entry = Entry {
    name: "wr-round",
    label: "Rounds (W.-R.)",
    about: "rounds: periodic and guaranteed aperiodic requests in SCAN order, interactive ones in the slack between \
            subgroups, the rest in what is left (Wijayaratne and Reddy 1999)",
    promises: "periodic requests that are there when a round begins, within their share, are done when it ends, if no \
               request takes longer than its estimate; so are as many of the aperiodic ones that wait then as fit in \
               theirs; interactive ones in order of arrival, no more than the leaky bucket lets through",
    settings: &[
        ("round_ms", "length of a round; default 500"),
        ("periodic", "share of a round for periodic requests, in %; default 50"),
        (
            "aperiodic",
            "share that aperiodic requests are guaranteed, in %; default 25; the rest is for interactive ones",
        ),
        ("subgroup", "requests in a subgroup, or, below 1, their part of the round's; default 4"),
        (
            "interactive_per_s",
            "interactive requests that the leaky bucket lets through in a second; default 12",
        ),
        ("burst", "of these, how many at once; default a second's"),
        (
            "estimate",
            "bound: with whole revolutions; expected: with half ones, without the promises; default bound",
        ),
    ],
    build,
};

/// How many requests are in a subgroup.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Subgroup {
    Requests(usize),
    Part(f64),
}

fn build(classes: &[Class], settings: &Settings) -> Result<Box<dyn Policy>, SettingError> {
    let round_ms = settings.number("round_ms", 500.0, 0.001, 1e9)?;
    let round_ns = (round_ms * 1e6).round() as u64;
    let periodic = settings.number("periodic", 50.0, 0.0, 100.0)?;
    let aperiodic = settings.number("aperiodic", 25.0, 0.0, 100.0)?;
    if periodic + aperiodic > 100.0 {
        let expected = format!("at most {}, what periodic={periodic} leaves of a round", 100.0 - periodic);
        return Err(SettingError::Value {
            key: "aperiodic".to_owned(),
            value: aperiodic.to_string(),
            expected,
        });
    }
    let subgroup = settings.number("subgroup", 4.0, 1e-6, 1e6)?;
    let subgroup = match subgroup < 1.0 {
        true => Subgroup::Part(subgroup),
        false => Subgroup::Requests(settings.count("subgroup", 4, 1, 1_000_000)? as usize),
    };
    let per_s = settings.number("interactive_per_s", 12.0, 1e-3, 1e6)?;
    let burst = settings.count("burst", per_s.ceil() as u64, 1, 1_000_000)?;
    let bound = settings.word("estimate", &["bound", "expected"])? == "bound";
    let share_ns = |percent: f64| (round_ns as f64 * percent / 100.0).floor() as u64;
    let shares = Shares { round_ns, periodic_ns: share_ns(periodic), aperiodic_ns: share_ns(aperiodic) };
    let kinds = classes.iter().map(|class| class.kind).collect();
    Ok(Box::new(WrRound::new(kinds, shares, subgroup, Interactive::new(per_s, burst), bound)))
}
